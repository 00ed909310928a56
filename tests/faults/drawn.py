"""Draws the generated mutants: small faults in the functions of core, spread over its modules by their lines."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from tests.core import is_core, modules
from tests.faults.mutant import Fault, path_of

SEED = 7
NUMBER = 600

_OPERATORS: Mapping[type[ast.AST], type[Any]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def draw() -> Sequence[Fault]:
    """By the seed and the sources alone. The order is random too, so that the first ones are a sample."""
    chance = random.Random(SEED)
    faults, lines = {}, {}
    for module, path in sorted(modules().items()):
        source = path.read_text()
        file = path.relative_to(path_of("")).as_posix()
        if is_core(module) and (found := list(faults_of(file, source))):
            chance.shuffle(found)
            faults[file], lines[file] = found, source.count("\n")
    drawn: list[Fault] = []
    while len(drawn) < NUMBER:
        (file,) = chance.choices(list(faults), [lines[file] for file in faults])
        drawn.append(faults[file].pop())
        if not faults[file]:
            del faults[file]
    return drawn


def faults_of(file: str, source: str) -> Iterator[Fault]:
    """All faults in the bodies of functions: what a module does when it is imported belongs to no test."""
    lines = source.splitlines()
    for node, kind, replacement in _faults(ast.parse(source), within=False):
        line = lines[node.lineno - 1]
        column = len(line.encode()[: node.col_offset].decode())
        replaced = ast.get_source_segment(source, node) or ""
        if kind == "condition":
            replacement = f"not ({replaced})"
        yield Fault(file, node.lineno, column, line, replaced, replacement, kind)


def _faults(node: ast.AST, *, within: bool) -> Iterator[tuple[ast.stmt | ast.expr, str, str]]:
    """Each node that can be another, the kind of fault, and the other's source."""
    if isinstance(node, (ast.Assert, ast.JoinedStr)):  # no behaviour; and Python 3.11 misplaces what is in an f-string
        return
    if within:
        match node:
            case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.Compare(ops=[op]) if type(op) in _OPERATORS:
                other, swapped = copy(node), _OPERATORS[type(op)]()
                if isinstance(other, ast.Compare):
                    other.ops = [swapped]
                else:
                    other.op = swapped
                yield node, "operator", f"({ast.unparse(other)})"
            case ast.Constant(value=bool() as value):
                yield node, "constant", repr(not value)
            case ast.Constant(value=int() as value):
                yield node, "constant", repr(value + 1)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test, "condition", ""
            case ast.comprehension(ifs=[test, *_]):
                yield test, "condition", ""
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Delete():
                yield node, "statement", "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield node, "statement", "pass"
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list", "type_params"):
            inner = within or (field == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _faults(child, within=inner)
