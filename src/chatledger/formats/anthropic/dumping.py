"""Objects of the SDK as plain values, known by their `model_dump` and not by their class, so that none is imported.

Keys that were not given stay absent, but for a `role` or a `type` that a class of its own has as a default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import Place, path_of

_DEPTH = 8
"""How far down objects may stand in a payload: messages, their blocks, those of a tool result, their sources."""


def plain(value: object, path: str) -> Any:
    """The value with each object in it that dumps itself as what it dumps; anything else as it is."""
    return _plain(value, (None, path), _DEPTH)


def _plain(value: object, place: Place, depth: int) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    value = _dumped(value, place)
    if depth and isinstance(value, dict):
        return {key: _plain(child, (place, key), depth - 1) for key, child in value.items()}
    if depth and isinstance(value, list):
        return [_plain(child, (place, idx), depth - 1) for idx, child in enumerate(value)]
    return value


def _dumped(value: object, place: Place) -> object:
    if isinstance(value, (dict, list)):
        return value
    try:
        dump = getattr(value, "model_dump", None)
        return _dump(dump) if callable(dump) else value
    except Exception as error:  # foreign code, so anything: what it raised is the cause
        raise DecodeError(path_of(place), f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error


def _dump(dump: Callable[..., Any]) -> object:
    """JSON with the names of the API: the SDK has dates in places, and fields whose names Python keeps for itself.

    It builds objects without validating them, so a block of a newer API stands in a class that does not fit, and
    Pydantic would warn of it.
    """
    options = {"mode": "json", "by_alias": True, "warnings": False}
    try:
        given = dump(**options, exclude_unset=True)
        if isinstance(given, dict) and not {"role", "type"} & given.keys():
            return dump(**options)
    except TypeError:  # a model_dump of an older or another kind, without options
        return dump()
    return given
