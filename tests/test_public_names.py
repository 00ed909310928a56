"""What is public is what is listed."""

from __future__ import annotations

import inspect

import chatledger
from chatledger import errors


def exported() -> set[str]:
    """Everything that the package binds and that is no module, typing machinery or private name."""
    bound = {name for name, value in vars(chatledger).items() if not inspect.ismodule(value) and name[0] != "_"}
    return (bound | chatledger._WITH_ALEMBIC) - {"annotations", "TYPE_CHECKING", "Any"}


def test_all_is_sorted_and_equals_what_is_exported() -> None:
    assert chatledger.__all__ == sorted(exported(), key=lambda name: (name.islower(), name))


def test_every_listed_name_can_be_had() -> None:
    assert all(getattr(chatledger, name) is not None for name in chatledger.__all__)


def test_every_error_is_public() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert {value.__name__ for value in classes} <= set(chatledger.__all__)
