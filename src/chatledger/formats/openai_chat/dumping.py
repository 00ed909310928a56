"""Objects of an SDK as plain values, known by their `model_dump` and not by their class, so that none is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import Place, path_of

_DEPTH = 4
"""How far down objects may stand in a message: its calls and parts, what these hold, and one more."""
_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain_message(value: object, path: str) -> Any:
    """A message as a dict, if it is one or an object that dumps one; anything else as it is.

    Keys that were not given stay absent, but for the role: a class of its own for each role has it as a default.
    """
    if type(value) is dict and _PLAIN.issuperset(map(type, value.values())):
        return value.copy()
    message = plain_value(value, path)
    if isinstance(message, dict) and "role" not in message and not isinstance(value, dict):
        return plain_value(_dumped(value, (None, path), exclude_unset=False), path)
    return message


def plain_value(value: object, path: str, depth: int = _DEPTH) -> Any:
    """A value without objects in it, as far down as `depth`. Raises DecodeError for an object that does not dump."""
    return _plain(value, (None, path), depth)


def _plain(value: object, place: Place, depth: int) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    value = _dumped(value, place, exclude_unset=True)
    if depth and isinstance(value, dict):
        return {
            key: child if type(child) in _PLAIN else _plain(child, (place, key), depth - 1)
            for key, child in value.items()
        }
    if depth and isinstance(value, list):
        return [_plain(child, (place, idx), depth - 1) for idx, child in enumerate(value)]
    return value


def _dumped(value: object, place: Place, *, exclude_unset: bool) -> object:
    if isinstance(value, (dict, list)):
        return value
    try:
        dump = getattr(value, "model_dump", None)
        return _dump(dump, exclude_unset=exclude_unset) if callable(dump) else value
    except Exception as error:  # foreign code, so anything: what it raised is the cause
        raise DecodeError(path_of(place), f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error


def _dump(dump: Callable[..., object], *, exclude_unset: bool) -> object:
    try:
        return dump(exclude_unset=exclude_unset)
    except TypeError:  # a model_dump of an older or another kind, without options
        return dump()
