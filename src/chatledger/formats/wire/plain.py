"""Payloads as plain JSON: dumps the objects of an SDK, and checks that everything is JSON.

An object is known by its `model_dump` and not by its class, so no SDK is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, TypeAlias

from pydantic_core import to_jsonable_python

from chatledger.errors import DecodeError
from chatledger.models import Loss
from chatledger.models.json import MAX_DEPTH, JsonValue, Place, is_long, json_problem, path_of, text_of

COERCED = "coerced"
"""The loss of a value that is not JSON and that lenient rules kept as the nearest JSON."""

Dump: TypeAlias = Callable[[Callable[..., object]], object]
"""Calls an object's `model_dump` with the options that a format needs."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


def plain_value(value: object, path: str, depth: int, dump: Dump) -> Any:
    """A value with each object in it dumped, down to `depth`. Raises DecodeError for an object whose dump fails."""
    return _plain(value, (None, path), depth, dump)


def dumped(value: object, path: str, dump: Dump) -> object:
    """The dump of an object; any other value unchanged."""
    return _dumped(value, (None, path), dump)


def dump_given(model_dump: Callable[..., object]) -> object:
    """The fields that were set, under the names of the API: an absent key stays absent."""
    return _dump_as_sent(model_dump, exclude_unset=True)


def dump_all(model_dump: Callable[..., object]) -> object:
    """All fields, under the names of the API."""
    return _dump_as_sent(model_dump, exclude_unset=False)


def _dump_as_sent(model_dump: Callable[..., object], *, exclude_unset: bool) -> object:
    """Some names of the API are reserved words of Python, so the SDKs have them as aliases. Some fields are dates. The
    SDKs build objects without validation, and Pydantic would warn of an object that does not fit its class.
    `serialize_as_any` keeps the fields that a subclass adds.

    Pydantic's own JSON would change values: a NaN to null, a tuple to a list, a key to its text.
    """
    try:
        dumped = model_dump(exclude_unset=exclude_unset, by_alias=True, warnings=False, serialize_as_any=True)
    except TypeError:  # an older or different model_dump, without options
        return model_dump()
    return dumped if json_problem(dumped, max_depth=MAX_DEPTH) is None else _with_dates_as_text(dumped)


def _with_dates_as_text(value: object) -> object:
    if isinstance(value, date):
        return to_jsonable_python(value)
    if isinstance(value, dict):
        return {key: _with_dates_as_text(child) for key, child in value.items()}
    return [_with_dates_as_text(child) for child in value] if isinstance(value, list) else value


def require_json(value: JsonValue, path: str) -> None:
    """Check that a value is JSON. `path` is its place in the payload. Raises DecodeError with the path of the first
    value that is not JSON, or that is nested deeper than 500 levels.
    """
    problem = json_problem(value, max_depth=MAX_DEPTH)
    if problem is not None:
        place, detail = problem
        raise DecodeError((path + place.removeprefix("$")).removeprefix("."), detail)


def as_json(source: Any, path: str, names: re.Pattern[str], losses: list[Loss], *, lenient: bool) -> Any:
    """The source, which must be JSON throughout. Lenient rules convert it as `coerce` does, and note each change."""
    if not lenient:
        require_json(source, path)
        return source
    coerced, lost = coerce(source, path, names)
    losses += lost
    return coerced


def coerce(source: Any, path: str, names: re.Pattern[str]) -> tuple[Any, list[Loss]]:
    """The source as the nearest JSON, for lenient rules, and a loss for each value that had to change. The source
    itself does not change.

    A tuple or a set becomes a list, a model object the object of its fields, any other object its text. A key becomes
    its text, and the loss names the object that has the key. Raises DecodeError for bytes as an id or a name, because
    no later call would find their text; `names` matches the paths of ids and names below `path`. Also raises it for
    values that are nested too deep, such as a cycle. The walk does not recurse.
    """
    if json_problem(source, max_depth=MAX_DEPTH) is None:
        return source, []
    losses: list[Loss] = []
    root: list[Any] = [source]
    pending: list[tuple[Any, Any, Place, int]] = [(root, 0, (None, path), 1)]
    while pending:
        holder, step, place, depth = pending.pop()
        value = holder[step]
        if isinstance(value, (bytes, bytearray, memoryview)) and names.fullmatch(path_of(place)[len(path) :]):
            raise DecodeError(path_of(place), f"expected text, not {type(value).__name__}: decode the bytes first")
        holder[step], changed = _nearest(value)
        if changed:
            losses.append(Loss(COERCED, None, path_of(place)))
        if depth > MAX_DEPTH and isinstance(holder[step], (dict, list)):
            raise DecodeError(path_of(place)[:80], f"nested deeper than {MAX_DEPTH}")
        steps = _steps(holder[step])
        pending += [(holder[step], inner, (place, inner), depth + 1) for inner in reversed(steps)]
    return root[0], losses


def _nearest(value: Any) -> tuple[Any, bool]:
    """A shallow copy in a type of JSON, and whether that changed the value."""
    if value is None or (isinstance(value, (str, int, float)) and not is_long(value)):
        return value, False
    if isinstance(value, dict):
        named = {key if isinstance(key, str) else text_of(key, str): child for key, child in value.items()}
        return named, list(named) != list(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value), not isinstance(value, list)
    if isinstance(getattr(type(value), "model_fields", None), dict):
        return {**vars(value), **(getattr(value, "model_extra", None) or {})}, True
    return text_of(value, str), True


def _steps(value: JsonValue) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value)
    return range(len(value)) if isinstance(value, list) else ()


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
    except Exception as error:  # foreign code may raise anything; the error is the cause
        raise DecodeError(path_of(place), f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error
