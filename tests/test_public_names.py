"""What is public is what is listed: in `__all__`, for type checkers, and where each name is loaded from."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import chatledger
from chatledger import errors

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
    assert chatledger.__all__ == sorted(imported(), key=lambda name: (name.islower(), name))


def test_names_are_loaded_from_where_type_checkers_see_them() -> None:
    assert imported() == chatledger._HOME_OF


@pytest.mark.parametrize("name", chatledger.__all__)
def test_every_listed_name_can_be_had(name: str) -> None:
    assert getattr(chatledger, name).__name__ == name


def test_another_name_cannot() -> None:
    with pytest.raises(AttributeError, match="module 'chatledger' has no attribute 'Chat'"):
        _ = chatledger.Chat


def test_every_error_is_public() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert {value.__name__ for value in classes} <= set(chatledger.__all__)
