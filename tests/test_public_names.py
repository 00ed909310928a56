"""The public names are listed alike in `__all__`, for type checkers, and in the table of lazy imports."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import chatledger
from chatledger import admin, errors, types

SOURCE = ast.parse(Path(chatledger.__file__).read_text())


def imported() -> dict[str, str]:
    """The module that each name comes from, as a type checker reads it."""
    return {
        name.name: statement.module or ""
        for statement in ast.walk(SOURCE)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("chatledger.")
        for name in statement.names
    }


def test_all_is_sorted_and_equals_what_is_exported() -> None:
    assert chatledger.__all__ == sorted(imported(), key=lambda name: (not name.isupper(), name.islower(), name))


def test_names_are_loaded_from_where_type_checkers_see_them() -> None:
    assert imported() == chatledger._HOME_OF


@pytest.mark.parametrize("module", [admin, errors, types], ids=lambda it: it.__name__)
def test_the_names_of_each_module_are_sorted_and_there(module: ModuleType) -> None:
    assert module.__all__ == sorted(set(module.__all__), key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(module, name) for name in module.__all__)


def test_a_name_has_one_home_but_the_errors_that_programs_catch() -> None:
    homes = Counter(name for module in (chatledger, admin, types) for name in module.__all__)
    assert [name for name, count in homes.items() if count > 1] == []
    assert {name for name in chatledger.__all__ if hasattr(errors, name)} <= set(errors.__all__)


@pytest.mark.parametrize("name", chatledger.__all__)
def test_every_listed_name_can_be_imported(name: str) -> None:
    value = getattr(chatledger, name)
    assert value is getattr(importlib.import_module(chatledger._HOME_OF[name]), name)
    if inspect.isfunction(value) or (inspect.isclass(value) and value is not Any):  # an alias has no name of its own
        assert value.__name__ == name


def test_an_unlisted_name_cannot_be_imported() -> None:
    with pytest.raises(AttributeError, match="module 'chatledger' has no attribute 'Chat'"):
        _ = chatledger.Chat


def test_every_error_is_public() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert {value.__name__ for value in classes} <= set(errors.__all__)
