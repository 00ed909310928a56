"""Every public name stands on a page below docs/reference/api."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import chatledger
from chatledger import admin, blocking, errors, formats, message_file, server, testing, types
from chatledger.blocking.face import FACES
from tests.docs.pages import code
from tests.docs.parts import DOCS

MODULES = [chatledger, admin, blocking, errors, formats, message_file, server, testing, types]
PAGES = sorted((DOCS / "reference" / "api").glob("*.md"))
_DIRECTIVE = re.compile(r"^::: (\S+)\n((?: {4}.*\n)*)", re.MULTILINE)
_MEMBERS = re.compile(r"^ +members: \[(.*)\]$", re.MULTILINE)


def described() -> Iterator[str]:
    """What the pages describe; `path.*` for a class or a module whose members are all on the page."""
    for page in PAGES:
        for path, options in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            yield path
            members = _MEMBERS.search(options)
            yield from (f"{path}.{name}" for name in members[1].split(", ")) if members else (f"{path}.*",)


DESCRIBED = list(described())


def public_members(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize("module", MODULES, ids=lambda it: it.__name__)
def test_the_public_names_of_the_module_are_on_a_page(module: ModuleType) -> None:
    names = {name for name in module.__all__ if (module, name) != (blocking, "open")}
    if module is errors:  # some stand in `chatledger` too, and there on the page
        names -= set(chatledger.__all__)
    assert {f"{module.__name__}.{name}" for name in names} - set(DESCRIBED) == set()
    assert "chatledger.blocking.Ledger.open" in DESCRIBED


def test_the_calls_of_a_ledger_are_on_a_page() -> None:
    missing = [name for name in public_members(chatledger.Ledger) if f"chatledger.Ledger.{name}" not in DESCRIBED]
    assert missing == []


def test_the_repositories_of_a_ledger_are_on_a_page() -> None:
    repositories = [kind for kind in FACES if kind.__name__.endswith("Repository")]
    assert len(repositories) == 9
    assert [kind for kind in repositories if f"{kind.__module__}.{kind.__qualname__}.*" not in DESCRIBED] == []


def test_a_name_is_described_once() -> None:
    assert len(DESCRIBED) == len(set(DESCRIBED))


def test_the_pages_describe_nothing_that_is_not_there() -> None:
    for path in DESCRIBED:
        if not path.startswith("chatledger.adapters."):  # those need their frameworks
            assert _found(path.removesuffix(".*")) is not None, path


def _found(path: str) -> object:
    module = path
    rest: list[str] = []
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for name in rest:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").rglob("*.md")), ids=lambda page: page.stem)
def test_what_a_guide_imports_is_on_a_page(guide: object) -> None:
    imported = [
        f"{statement.module}.{name.name}"
        for source in code(guide)  # type: ignore[arg-type]
        for statement in ast.walk(compile(source, "guide", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("chatledger")
        for name in statement.names
    ]
    modules = {"chatledger.blocking", "chatledger.formats"}
    assert [name for name in imported if name not in DESCRIBED and name not in modules] == []
