"""Making a source plain JSON in lenient: what json would change or refuse is kept as its text, and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.wire.plain import COERCED
from chatledger.models import Loss
from chatledger.models.json import MAX_DEPTH, JsonValue, Place, is_long, json_problem, path_of, text_of


def make_plain(source: Any, path: str) -> tuple[JsonValue, list[Loss]]:
    """The source with each live object as its repr, tuples as lists, keys as text; a loss for each of them.

    Raises DecodeError only for what is nested too deep.
    """
    if json_problem(source, max_depth=MAX_DEPTH) is None:
        return source, []
    return _copy(source, path)


def _copy(source: Any, path: str) -> tuple[JsonValue, list[Loss]]:
    """Without recursion, like the check: a source may be as deep as Python's stack, and is refused then."""
    holder, losses = [source], list[Loss]()
    pending: list[tuple[Any, Any, Place, int]] = [(holder, 0, (None, path), 1)]
    while pending:
        owner, key, place, depth = pending.pop()
        owner[key] = copy = _plain(owner[key], place, losses)
        steps = _steps(copy)
        if steps and depth > MAX_DEPTH:
            raise DecodeError(path_of(place)[:80], f"nested deeper than {MAX_DEPTH}")
        pending += [(copy, step, (place, step), depth + 1) for step in reversed(steps)]
    return holder[0], losses


def _plain(value: Any, place: Place, losses: list[Loss]) -> JsonValue:
    """The value itself made plain, what it holds as it is."""
    if value is None or (isinstance(value, (str, int, float)) and not is_long(value)):
        return value
    if isinstance(value, dict):
        return _with_text_keys(value, place, losses)
    if not isinstance(value, list):
        losses.append(Loss(COERCED, None, path_of(place)))
    return list(value) if isinstance(value, (list, tuple)) else text_of(value)


def _with_text_keys(value: dict[Any, Any], place: Place, losses: list[Loss]) -> dict[str, Any]:
    copy = {}
    for key, child in value.items():
        name = key if isinstance(key, str) else text_of(key)
        if name is not key:
            losses.append(Loss(COERCED, None, path_of((place, name))))
        copy[name] = child
    return copy


def _steps(value: JsonValue) -> Sequence[str | int]:
    if isinstance(value, dict):
        return list(value)
    return range(len(value)) if isinstance(value, list) else ()
