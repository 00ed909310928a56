"""What the arguments of public calls are is said once, in their annotations, and held against what is given.

    @checked
    class ThreadRepository: ...

Each public method then first refuses what its signature does not allow, by InvalidArgument with the argument's name and
before anything else is done. Annotations are read as text: nothing is evaluated. What a model judges when it is built
(metadata, dates, feedback) is left to it. Where nothing is wrong, a call costs a look at the type of what it is given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from inspect import iscoroutinefunction
from types import FunctionType, NoneType
from typing import Any, NamedTuple, TypeVar, cast, get_args

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from chatledger.errors import InvalidArgument
from chatledger.models import Limits, PartialMessage, RulesLevel, RunStatus, Usage
from chatledger.storage.rows.keys import KeyRing

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=type)

_FUNCTION = ("a function", (cast(type, Callable),))
_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "None": ("None", (NoneType,)),
    "str": ("a str", (str,)),
    "int": ("an int", (int,)),
    "float": ("a number", (int, float)),
    "bool": ("True or False", (bool,)),
    "timedelta": ("a timedelta", (timedelta,)),
    "os.PathLike[str]": ("a path", (os.PathLike,)),
    "Address": ("a str, a path or None", (str, os.PathLike, URL, NoneType)),
    "AsyncEngine": ("an AsyncEngine", (AsyncEngine,)),
    "AsyncConnection": ("an AsyncConnection", (AsyncConnection,)),
    "Limits": ("Limits", (Limits,)),
    "Usage": ("Usage", (Usage,)),
    "PartialMessage": ("a PartialMessage", (PartialMessage,)),
    "Sequence[str]": ("a list of str", (Iterable,)),
    "Sequence[ChatMessage]": ("a list of ChatMessage", (Sequence,)),
    "KeyRing": ("a KeyRing", (KeyRing,)),
    "Keys": _FUNCTION,
    "CountTokens": _FUNCTION,
    "Progress": _FUNCTION,
}
_WORDS: Mapping[str, tuple[str, ...]] = {"RulesLevel": get_args(RulesLevel), "RunStatus": get_args(RunStatus)}
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, NoneType})
_LISTS: frozenset[type] = frozenset({list, tuple})
_WORD = re.compile(r"""['"]([^'"]*)['"]""")


class _Kind(NamedTuple):
    """What an argument takes."""

    plain: frozenset[type]
    """The types that need no second look. A bool is only an int to Python: `last=True` is a slip."""
    types: tuple[type, ...]
    words: tuple[str, ...]
    said: str

    def require(self, name: str, value: object) -> None:
        if isinstance(value, self.types) and (bool in self.plain or not isinstance(value, bool)):
            return
        if isinstance(value, str) and value in self.words:
            return
        given = repr(value) if value is None or (self.words and isinstance(value, str)) else type(value).__name__
        raise InvalidArgument(name, f"must be {self.said}, not {given}")


def checked(kind: T) -> T:
    """The class, whose public methods and constructor refuse what their annotations do not allow."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, FunctionType):
            setattr(kind, name, checked_call(value))
        elif isinstance(value, classmethod):
            setattr(kind, name, classmethod(checked_call(value.__func__)))
    return kind


def checked_call(function: F) -> F:
    """The same for a function."""
    kinds = {name: kind for name, text in function.__annotations__.items() if (kind := _read(text)) is not None}
    kinds.pop("return", None)
    if not kinds:
        return function
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    plain = {name: kind.plain for name, kind in kinds.items()}

    def refuse_wrong(given: tuple[object, ...], named: dict[str, object]) -> None:
        for name, value in zip(names, given):  # noqa: B905 - as many as there are; asking for that costs
            if name in plain and type(value) not in plain[name]:
                kinds[name].require(name, value)
        for name, value in named.items():
            if name in plain and type(value) not in plain[name]:
                kinds[name].require(name, value)

    if iscoroutinefunction(function):

        @wraps(function)
        async def call(*given: Any, **named: Any) -> Any:
            refuse_wrong(given, named)
            return await function(*given, **named)

    else:

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            refuse_wrong(given, named)
            return function(*given, **named)

    return call  # type: ignore[return-value]


def _read(annotation: str) -> _Kind | None:
    """None for what is not judged here."""
    types: list[type] = []
    words: list[str] = []
    said: list[str] = []
    for one in annotation.split(" | "):
        if one in _TYPES:
            said.append(_TYPES[one][0])
            types += _TYPES[one][1]
        elif one in _WORDS or one.startswith("Literal["):
            words += _WORDS.get(one) or _WORD.findall(one)
        else:
            return None
    alternatives = [*map(repr, words), *said]
    plain = _PLAIN & {*types} | (_LISTS if Sequence in types else frozenset())
    return _Kind(plain, tuple(types), tuple(words), _listed(alternatives))


def _listed(alternatives: Sequence[str]) -> str:
    *others, last = alternatives
    return f"{', '.join(others)} or {last}" if others else last
