"""The types of `chatledger.blocking`, made of the source of the asynchronous classes.

`python -m tests.blocking.stub` writes the file; a test holds it to the source.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import chatledger.blocking
from chatledger.blocking.face import FACES
from chatledger.repositories import Repositories

STUB = Path(chatledger.blocking.__file__).with_suffix(".pyi")
HEAD = (
    "# Made by `python -m tests.blocking.stub` of the asynchronous classes, whose docstrings say what each call does."
)
NAMES = {kind.__name__ for kind in FACES}


def stub() -> str:
    classes, imports = [], {"from collections.abc import Generator"}
    for kind in [*FACES][3:] + [*FACES][:3]:
        source = ast.parse(Path(inspect.getfile(kind)).read_text())
        own = _class(source, kind.__name__)
        members = [*_attributes(own), *_methods(own)]
        imports |= _imports(source, kind, members)
        if Repositories in kind.__mro__:
            shared = ast.parse(Path(inspect.getfile(Repositories)).read_text())
            more = [*_attributes(_class(shared, "Repositories")), *_methods(_class(shared, "Repositories"))]
            imports |= _imports(shared, Repositories, more)
            members = [*more, *members]
        classes.append(f"class {kind.__name__}:\n" + "\n".join(f"    {line}" for line in _lines(members)))
    exported = f"__all__ = {sorted(chatledger.blocking.__all__)!r}"
    text = "\n\n".join([HEAD, "\n".join(sorted(imports)), exported, *classes, "open = Ledger.open"])
    for command in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", STUB, "-"],
            input=text, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    return text


def _class(source: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in source.body if isinstance(node, ast.ClassDef) and node.name == name)


def _lines(members: list[ast.stmt]) -> list[str]:
    return [line for member in members for line in ast.unparse(member).splitlines()]


def _attributes(owner: ast.ClassDef) -> list[ast.stmt]:
    """The public attributes that the class declares."""
    return [node for node in owner.body if isinstance(node, ast.AnnAssign) and node.value is None]


def _methods(owner: ast.ClassDef) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "over":
            name = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(node.name, node.name)
            if not name.startswith("_") or name != node.name:
                found.append(_method(node, name))
    return found


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.stmt:
    arguments = node.args
    arguments.kw_defaults = [one and _default(one) for one in arguments.kw_defaults]
    arguments.defaults = [_default(one) for one in arguments.defaults]
    decorators = [one for one in node.decorator_list if ast.unparse(one) in ("property", "classmethod", "staticmethod")]
    is_block = any(ast.unparse(one) == "asynccontextmanager" for one in node.decorator_list)
    assert node.returns is not None, node.name
    return ast.FunctionDef(
        name=name,
        args=arguments,
        body=[ast.Expr(ast.Constant(...))],
        decorator_list=decorators,
        returns=ast.parse(_returned(ast.unparse(node.returns), is_block=is_block), mode="eval").body,
        lineno=0,
    )


def _default(value: ast.expr) -> ast.expr:
    return value if isinstance(value, ast.Constant) else ast.Constant(...)


def _returned(annotation: str, *, is_block: bool) -> str:
    kind, _, item = annotation.partition("[")
    item = item.removesuffix("]").removesuffix(", None")
    if is_block:
        return f"AbstractContextManager[{item}]"
    if kind in ("AsyncIterator", "AsyncGenerator"):
        return f"Generator[{item}]"
    return "Ledger" if annotation == "Opening" else annotation


def _imports(source: ast.Module, owner: type[Any], members: list[ast.stmt]) -> set[str]:
    """An import of each name that the members use. ruff puts them in order."""
    used = {node.id for member in members for node in ast.walk(member) if isinstance(node, ast.Name)}
    origins = {
        name.asname or name.name: f"from {node.module} import {name.name}"
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    modules = {
        name.name: f"import {name.name}"
        for node in ast.walk(source)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    given = {"AbstractContextManager": "from contextlib import AbstractContextManager"}
    given["Generator"] = "from collections.abc import Generator"
    declared = {ast.unparse(member.target) for member in members if isinstance(member, ast.AnnAssign)}
    found = set()
    for name in used - NAMES:
        if name in given | modules | origins:
            found.add((given | modules | origins)[name])
        elif hasattr(importlib.import_module(owner.__module__), name):
            found.add(f"from {owner.__module__} import {name}")
        else:
            assert hasattr(builtins, name) or name in declared, name
    return found


if __name__ == "__main__":
    STUB.write_text(stub())
