"""What is not JSON as the nearest that is, for imports that must not stop at one live object.

A key becomes its text, a tuple or set a list, a model object the object of its fields, any other thing its text. Each
is reported with its path; what nests deeper than we keep is refused even here, which also ends a cycle.
"""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.wire.plain import COERCED
from chatledger.models import Loss
from chatledger.models.json import MAX_DEPTH, JsonValue, Place, is_long, json_problem, path_of, text_of


def coerce(row: dict[Any, Any], path: str) -> tuple[dict[str, JsonValue], list[Loss]]:
    """The row, or a copy of it that is JSON throughout, and what had to change. Without recursion."""
    if json_problem(row, max_depth=MAX_DEPTH) is None:
        return row, []
    losses: list[Loss] = []
    root: list[Any] = [row]
    pending: list[tuple[Any, Any, Place, int]] = [(root, 0, (None, path), 1)]
    while pending:
        holder, step, place, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise DecodeError(path_of(place)[:80], f"nested deeper than {MAX_DEPTH}")
        value, changed = _nearest(holder[step])
        if changed:
            losses.append(Loss(COERCED, None, path_of(place)))
        holder[step] = value
        if isinstance(value, dict):
            pending += [(value, key, (place, key), depth + 1) for key in reversed(value)]
        elif isinstance(value, list):
            pending += [(value, index, (place, index), depth + 1) for index in reversed(range(len(value)))]
    return root[0], losses


def _nearest(value: Any) -> tuple[Any, bool]:
    """A shallow copy in a JSON type, and whether it is another value than before."""
    if value is None or (isinstance(value, (str, int, float)) and not is_long(value)):
        return value, False
    if isinstance(value, dict):
        named = {key if isinstance(key, str) else text_of(key, str): child for key, child in value.items()}
        return named, list(named) != list(value)
    if isinstance(value, list):
        return list(value), False
    if isinstance(value, (tuple, set, frozenset)):
        return list(value), True
    if isinstance(getattr(type(value), "model_fields", None), dict):
        return dict(vars(value)), True
    return text_of(value, str), True
