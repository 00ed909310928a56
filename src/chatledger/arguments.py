"""Checks of arguments: each public call names the types that it takes, and refuses others before it does anything.

    require(STR, thread_id=thread_id)
    require(INT_OR_NONE, branch=branch, limit=limit)

Pydantic models check what is inside of metadata, dates and feedback; `refusing` in `models/base.py` makes their errors
an InvalidArgument.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from types import NoneType
from typing import Any, cast

from chatledger.errors import InvalidArgument


class Kind:
    """The types or the words that an argument may have. `expected` names them in the error. `later` is the place of one
    more type.
    """

    __slots__ = ("expected", "later", "plain", "types", "words")

    def __init__(self, expected: str, *types: type[Any], words: Sequence[str] = (), later: str | None = None) -> None:
        self.later = later
        self.expected = expected
        self.types = types
        self.words = frozenset(words)
        self.plain = frozenset(types) & {str, int, float, bool, NoneType, list, tuple}
        """Types that need no further check."""

    def refuse_unless(self, name: str, value: object) -> None:
        # To Python a bool is an int, but `last=True` is a mistake.
        if isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool)):
            return
        if isinstance(value, str) and value in self.words:
            return
        if self.later is not None and is_of(value, self.later):
            return
        shown = repr(value) if value is None or (self.words and isinstance(value, str)) else type(value).__name__
        if shown in [known.__name__ for known in self.types]:  # the blocking Ledger, where the other one is meant
            shown = f"{type(value).__module__}.{shown}"
        raise InvalidArgument(name, f"must be {self.expected}, not {shown}")


def is_of(value: object, place: str) -> bool:
    """Whether the value is of the type at a place, `module:name`. The module is not imported for it: as long as nobody
    has done so, there is no such value.
    """
    module, name = place.split(":")
    return isinstance(value, getattr(sys.modules.get(module), name, ()))


def require(kind: Kind, /, **arguments: object) -> None:
    """Raises InvalidArgument with the name of the first argument that does not fit the kind."""
    for name, value in arguments.items():
        if type(value) not in kind.plain:
            kind.refuse_unless(name, value)


def require_items(kind: Kind, **arguments: Iterable[object]) -> None:
    """Raises InvalidArgument for the first argument that is no list or tuple, or has an item that does not fit."""
    for name, items in arguments.items():
        if not isinstance(items, (list, tuple)):
            raise InvalidArgument(name, f"must be a list, each item {kind.expected}, not {type(items).__name__}")
        for index, item in enumerate(items):
            kind.refuse_unless(f"{name}[{index}]", item)


def require_between(low: float, high: float, **numbers: float) -> None:
    """Raises InvalidArgument for the first number out of bounds, and for NaN."""
    for name, number in numbers.items():
        if not low <= number <= high:
            raise InvalidArgument(name, f"must be from {low:,} to {high:,}")


_FUNCTION = cast(type, Callable)

STR = Kind("a str", str)
STR_OR_NONE = Kind("a str or None", str, NoneType)
INT = Kind("an int", int)
INT_OR_NONE = Kind("an int or None", int, NoneType)
NUMBER = Kind("a number", int, float)
BOOL = Kind("True or False", bool)
BOOL_OR_NONE = Kind("True or False or None", bool, NoneType)
FUNCTION_OR_NONE = Kind("a function or None", _FUNCTION, NoneType)
PATH = Kind("a str or a path", str, os.PathLike)
DICT_OR_NONE = Kind("a dict or None", dict, NoneType)
STRINGS = Kind("a list of str", list, tuple, Iterable)
MESSAGES = Kind("a list of ChatMessage", list, tuple, Sequence)
RULES = Kind("'lenient', 'strict' or 'ordered'", words=("lenient", "strict", "ordered"))
RULES_OR_NONE = Kind("'lenient', 'strict', 'ordered' or None", NoneType, words=("lenient", "strict", "ordered"))
AFTER = Kind("the seq or the id of a message, or None", int, str, NoneType)
ON_OPEN_CALLS = Kind("'error', 'close' or 'interrupt'", words=("error", "close", "interrupt"))
