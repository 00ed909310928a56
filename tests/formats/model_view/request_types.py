"""The request types of the SDKs: as tables of keys for the package, and as types that forbid other keys for the tests.

`python -m tests.formats.model_view.request_types` writes the tables again, for a new version of an SDK.
"""

from __future__ import annotations

import textwrap
import types
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from anthropic.types import MessageParam, TextBlockParam
from anthropic.types.beta import BetaMessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ConfigDict
from typing_extensions import TypedDict, get_type_hints, is_typeddict

import chatledger.formats.model_view

REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic": {"messages": BetaMessageParam | MessageParam, "system": TextBlockParam},
    "openai-chat": {"messages": ChatCompletionMessageParam},
    "openai-responses": {"input": ResponseInputItemParam},
}
"""The lists of a request that the model view writes, with the type of an item. The beta has all blocks of Anthropic."""
_SETTINGS = {"tool", "text", "format", "reasoning", "output_config"}
"""Keys of definitions and settings, which a program writes and no reply has. The tables leave them whole."""
_UNIONS = (Union, types.UnionType)
_FOLDER = Path(chatledger.formats.model_view.__path__[0])


# --- Tables -----------------------------------------------------------------------------------------------------------


def table(provider: str) -> dict[str, str]:
    """The objects of a request by name, as in `chatledger.formats.model_view.provider`."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    pending = [(one, key) for key, kind in REQUESTS[provider].items() for one in _objects(kind)]
    seen = set()
    while pending:
        kind, holder = pending.pop()
        if (kind, holder) not in seen:
            seen.add((kind, holder))
            inner = {key: list(_objects(hint)) for key, hint in hints_of(kind).items() if key not in _SETTINGS}
            pending += [(one, key) for key, ones in inner.items() for one in ones]
            for name in names_of(kind, holder):
                shapes = found.setdefault(name, {})
                keys = tuple(sorted(hints_of(kind)))
                shapes[keys] = _shape(kind, {key for key, ones in inner.items() if ones}, shapes.get(keys, "").split())
    return {name: " | ".join(sorted(found[name].values())) for name in sorted(found)}


def names_of(kind: Any, holder: str = "") -> list[str]:
    """The names of an object: its roles if it is a message, else its types, or the key that holds it."""
    hints = hints_of(kind)
    types_, roles = _literals(hints.get("type")), _literals(hints.get("role"))
    if roles and types_ in ([], ["message"]):
        return [f"{role} message" for role in roles]
    always_typed = bool(types_) and get_origin(hints["type"]) is Required
    return types_ if always_typed else [*types_, f".{holder}"]


def hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _shape(kind: Any, with_objects: set[str], other: list[str]) -> str:
    """The keys with their marks. An `other` object of the same name and keys may forbid more nulls; both take none."""
    no_null = {key.rstrip("*") for key in other if "?" not in key}
    with_objects = with_objects | {key.rstrip("?*") for key in other if "*" in key}
    marks = {
        key: "?" if type(None) in _members(hint) and key not in no_null else "" for key, hint in hints_of(kind).items()
    }
    return " ".join(f"{key}{marks[key]}{'*' if key in with_objects else ''}" for key in sorted(marks))


def _members(kind: Any) -> list[Any]:
    """The members of a union, or the type alone."""
    if get_origin(kind) in (Annotated, Required, NotRequired):
        return _members(get_args(kind)[0])
    return [one for inner in get_args(kind) for one in _members(inner)] if get_origin(kind) in _UNIONS else [kind]


def _literals(hint: Any) -> list[str]:
    return [value for one in _members(hint) if get_origin(one) is Literal for value in get_args(one)]


def _objects(kind: Any) -> Iterator[Any]:
    """The objects that a value of the type may be, or may have in a list."""
    for one in _members(kind):
        if is_typeddict(one):
            yield one
        elif get_origin(one) is not Literal and not _is_mapping(one):
            for inner in get_args(one):
                yield from _objects(inner)


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


MODULE = _FOLDER / "request_keys.py"


def source() -> str:
    """The module of the tables."""
    return "\n".join(
        [
            '"""The keys of the objects in the requests of each provider, as `provider.py` reads them.',
            "",
            "Written by `python -m tests.formats.model_view.request_types` from the types of the SDKs.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            *(line for provider in REQUESTS for line in _table_source(provider)),
            "",
        ]
    )


def _table_source(provider: str) -> list[str]:
    entries = (line for name, shapes in table(provider).items() for line in _entry(name, shapes))
    return [f"{provider.replace('-', '_').upper()} = {{", *entries, "}"]


def _entry(name: str, shapes: str) -> list[str]:
    line = f'    "{name}": "{shapes}",'
    if len(line) <= 120:
        return [line]
    pieces = textwrap.wrap(shapes, 110)
    return [f'    "{name}": (', *(f'        "{piece} "' for piece in pieces[:-1]), f'        "{pieces[-1]}"', "    ),"]


# --- Types that forbid other keys -------------------------------------------------------------------------------------


class Strict:
    """The types of a provider with other keys forbidden, but for `besides`: names of objects, each with more keys.

    Pydantic would let other keys pass, and judges the items of an Iterable only when somebody asks for them.
    """

    def __init__(self, besides: Mapping[str, str]) -> None:
        self._besides = besides
        self._made: dict[Any, Any] = {}

    def of(self, kind: Any) -> Any:
        if is_typeddict(kind):
            return self._object(kind)
        origin, inner = get_origin(kind), get_args(kind)
        if origin is None or origin is Literal:
            return kind
        if origin in (Annotated, Required, NotRequired):
            return self.of(inner[0])
        if origin in _UNIONS:
            return reduce(or_, map(self.of, inner))
        return dict[str, self.of(inner[1])] if _is_mapping(kind) else list[self.of(inner[0])]  # type: ignore[misc]

    def _object(self, kind: Any) -> Any:
        if kind not in self._made:
            more = {key for name in names_of(kind) for key in self._besides.get(name, "").split()}
            fields = {key: self._field(hint) for key, hint in hints_of(kind).items()}
            made = TypedDict(kind.__name__, {**fields, **dict.fromkeys(more, NotRequired[Any])})  # type: ignore[misc]
            made.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
            self._made[kind] = made
        return self._made[kind]

    def _field(self, hint: Any) -> Any:
        return (Required if get_origin(hint) is Required else NotRequired)[self.of(hint)]


if __name__ == "__main__":
    MODULE.write_text(source(), encoding="utf-8")
