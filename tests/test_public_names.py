"""What is public is what is listed."""

from __future__ import annotations

import inspect

import chatledger
from chatledger import errors


def test_all_is_sorted_and_equals_what_is_exported() -> None:
    assert chatledger.__all__ == sorted(chatledger._HOME_OF, key=lambda name: (name.islower(), name))


def test_every_listed_name_can_be_had() -> None:
    assert all(getattr(chatledger, name) is not None for name in chatledger.__all__)


def test_every_error_is_public() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert {value.__name__ for value in classes} <= set(chatledger.__all__)
