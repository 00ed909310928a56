"""Payloads as plain JSON: objects of an SDK as what they dump, and everything checked to be JSON.

An object is known by its `model_dump` and not by its class, so no SDK is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from chatledger.errors import DecodeError
from chatledger.models.json import MAX_DEPTH, JsonValue, Place, json_problem, path_of

COERCED = "coerced"
"""The loss of a value that is no JSON and was kept as the JSON that comes nearest, under lenient rules."""

Dump: TypeAlias = Callable[[Callable[..., object]], object]
"""Calls an object's `model_dump` with the options that a format needs."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


def plain_value(value: object, path: str, depth: int, dump: Dump) -> Any:
    """A value with each object in it dumped, as far down as `depth`. Raises DecodeError for one that does not dump."""
    return _plain(value, (None, path), depth, dump)


def dumped(value: object, path: str, dump: Dump) -> object:
    """What an object dumps, and anything else as it is."""
    return _dumped(value, (None, path), dump)


def dump_given(model_dump: Callable[..., object]) -> object:
    """The fields that were given: an absent key stays absent."""
    try:
        return model_dump(exclude_unset=True)
    except TypeError:  # a model_dump of an older or another kind, without options
        return model_dump()


def require_json(value: JsonValue, path: str) -> None:
    """Raises DecodeError with the path of the first value that is not JSON, or that is nested too deep."""
    problem = json_problem(value, max_depth=MAX_DEPTH)
    if problem is not None:
        place, detail = problem
        raise DecodeError((path + place.removeprefix("$")).removeprefix("."), detail)


def _plain(value: object, place: Place, depth: int, dump: Dump) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    value = _dumped(value, place, dump)
    if depth and isinstance(value, dict):
        return {
            key: child if type(child) in _SCALARS else _plain(child, (place, key), depth - 1, dump)
            for key, child in value.items()
        }
    if depth and isinstance(value, list):
        return [_plain(child, (place, idx), depth - 1, dump) for idx, child in enumerate(value)]
    return value


def _dumped(value: object, place: Place, dump: Dump) -> object:
    if isinstance(value, (dict, list)):
        return value
    try:
        model_dump = getattr(value, "model_dump", None)
        return dump(model_dump) if callable(model_dump) else value
    except Exception as error:  # foreign code, so anything: what it raised is the cause
        raise DecodeError(path_of(place), f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error
