"""The public API stays small: names, calls and parameters are counted in the source, and held to tests/face.toml."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import chatledger
from tests.public_names import MODULES, Definition, exported, find

BUDGET = tomllib.loads(Path(__file__).with_name("face.toml").read_text(encoding="utf-8"))
LEDGER = [("chatledger.ledger", "Ledger"), ("chatledger.repositories", "Repositories")]
DRAFT = ("chatledger", "Draft")
ANSWERS = [
    ("chatledger.repositories", "AnswerRepository"),
    ("chatledger.answers", "Answer"),
    ("chatledger.answers", "Turn"),
]


def classes() -> Iterator[Definition]:
    """The ledger, what it shares with a transaction, its repositories, and a draft."""
    for module, name in [*LEDGER, DRAFT]:
        yield _find(module, name)
    for statement in _node(_find(*LEDGER[1])).body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) != ANSWERS[0][1]:
            yield _find("chatledger.repositories", ast.unparse(statement.annotation))


def classes_of_answers() -> Iterator[Definition]:
    for module, name in ANSWERS:
        yield _find(module, name)


def _find(module: str, name: str) -> Definition:
    found = find(module, name)
    assert found is not None, name
    return found


def _node(of: Definition) -> ast.ClassDef:
    assert isinstance(of.node, ast.ClassDef)
    return of.node


def calls() -> Iterator[tuple[str, int]]:
    """Each public call, and the number of its parameters."""
    for found in classes():
        yield from _calls(found)


def _calls(found: Definition) -> Iterator[tuple[str, int]]:
    for node in _node(found).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_call(node):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield f"{found.name}.{node.name}", len(given) - 1  # without self or cls


def _is_call(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    return not node.name.startswith("_") and not decorators & {"property"} and node.name != "over"


def calls_of_answers() -> Iterator[tuple[str, int]]:
    for found in classes_of_answers():
        yield from _calls(found)


CALLS = list(calls())
FOUND = {
    "calls": len(CALLS),
    "parameters": sum(count for _, count in CALLS),
    "longest": max(count for _, count in CALLS),
    "append": max(count for name, count in CALLS if name == "MessageRepository.append"),
    "history": max(count for name, count in CALLS if name.rpartition(".")[2] == "history"),
}


def test_programs_need_few_names() -> None:
    assert len(chatledger.__all__) == BUDGET["names"]["chatledger"]


def test_the_other_public_modules_are_listed() -> None:
    listed = {f"chatledger.{name}" for name in BUDGET["others"]}
    assert listed == set(MODULES) - {"chatledger", "chatledger.admin", "chatledger.errors", "chatledger.types"}


@pytest.mark.parametrize("module", BUDGET["others"])
def test_the_other_public_modules_keep_their_names(module: str) -> None:
    assert sorted(exported(f"chatledger.{module}")) == BUDGET["others"][module].split()


@pytest.mark.parametrize("what", FOUND)
def test_the_calls_stay_within_their_budget(what: str) -> None:
    """Lower the number with the code: a budget that is too large holds nothing."""
    assert FOUND[what] == BUDGET["calls"][what], sorted(CALLS, key=lambda one: -one[1])


def test_the_core_stays_below_its_most() -> None:
    calls, parameters = BUDGET["most"]["core"]
    assert FOUND["calls"] <= calls
    assert FOUND["parameters"] <= parameters
    assert FOUND["longest"] <= 14
    assert len(chatledger.__all__) <= 45


def test_answers_stay_within_their_budget() -> None:
    found = list(calls_of_answers())
    calls, parameters = BUDGET["most"]["answers"]
    assert (len(found), sum(count for _, count in found)) == (calls, parameters), found


def test_a_repository_is_counted_once() -> None:
    names = [name for name, _ in CALLS]
    assert len(names) == len(set(names))
    assert "Draft.feed" in names
    assert "KvRepository.put" in names


if __name__ == "__main__":
    for name, count in sorted(CALLS, key=lambda one: (-one[1], one[0])):
        print(f"{count:4}  {name}")
    print(", ".join(f"{name} {count}" for name, count in {"names": len(chatledger.__all__), **FOUND}.items()))
    print(", ".join(f"{part} ≤ {most[0]} calls, {most[1]} parameters" for part, most in BUDGET["most"].items()))
