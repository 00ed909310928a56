"""Values of the types of an SDK, made from the fields of its classes: of types that a later release adds as well."""

from __future__ import annotations

import types
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

_UNIONS = (Union, types.UnionType)
_SCALARS: dict[Any, Any] = {int: 1, float: 0.5, bool: True, datetime: "2030-01-01T00:00:00Z", type(None): None}
_DEPTH = 6


def members(union: Any) -> dict[str, type[BaseModel]]:
    """The classes of a union by their `type`."""
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in _classes(union)}


def example(kind: Any, name: str = "", form: int = 0) -> Any:
    """A value of a type as JSON, with all its fields. Each text is its own path, so that no two are equal.

    Each form takes another member of the unions; only the first has no null.
    """
    return _value(kind, name, _DEPTH, form)


def _classes(kind: Any) -> Iterator[type[BaseModel]]:
    if get_origin(kind) is Annotated:
        yield from _classes(get_args(kind)[0])
    elif get_origin(kind) in _UNIONS:
        for one in get_args(kind):
            yield from _classes(one)
    elif kind is not type(None):
        yield kind


def _value(kind: Any, name: str, depth: int, form: int) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _value(inner[0], name, depth, form)
    if origin is Literal:
        return inner[0]
    if origin in _UNIONS:
        members = [one for one in inner if form or one is not type(None)]
        return _value(members[form % len(members)], name, depth, form)
    if origin is list:
        return [_value(inner[0], f"{name}.0", depth - 1, form)] if depth else []
    if origin is dict:
        return {"key": _value(inner[1], f"{name}.key", depth - 1, form)} if depth else {}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            field.alias or key: _value(field.annotation, f"{name}.{key}", depth - 1, form)
            for key, field in kind.model_fields.items()
            if depth or field.is_required()
        }
    return _SCALARS.get(kind, f"{name}!")
