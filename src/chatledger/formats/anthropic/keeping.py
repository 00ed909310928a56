"""What of an object the typed fields do not hold, and the places of things that are kept apart.

Writing gives only keys that the source has, with the source's values, or leaves them to the residual. So the residual
never repeats a typed value, and one that belongs to another object, since a program edited the message, is seen by the
keys that it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from chatledger.formats.openai_chat.fields import nested
from chatledger.formats.residual import EXTRA, KEYS
from chatledger.models.json import JsonValue

T = TypeVar("T")


def put_back(encoded: dict[str, JsonValue], residual: JsonValue) -> dict[str, JsonValue]:
    """The source object. What a typed field says stands, although the source had nothing there."""
    extra, keys = nested(residual, EXTRA), nested(residual, KEYS)
    extra = extra if isinstance(extra, dict) else {}
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        keys = list(encoded)
    if not encoded.keys() <= set(keys):
        return encoded
    merged = {**encoded, **{key: value for key, value in extra.items() if encoded.get(key) is None}}
    return {key: merged[key] for key in keys if key in merged}


def places_of(later: Sequence[int], count: int) -> list[int] | None:
    """Where the things stand that are written after all others of `count`; None if they stand at the end already."""
    return None if list(later) == list(range(count - len(later), count)) else list(later)


def interleave(first: list[T], later: list[T], places: JsonValue) -> list[T]:
    """The things of `later` at their places among those of `first`; at the end where the places do not fit."""
    if not _fit(places, len(later), len(first) + len(later)):
        return first + later
    taken, others, rest = set(places), iter(first), iter(later)
    return [next(rest) if place in taken else next(others) for place in range(len(first) + len(later))]


def _fit(places: JsonValue, count: int, total: int) -> bool:
    if not isinstance(places, list) or len(places) != count:
        return False
    if not all(isinstance(place, int) and not isinstance(place, bool) for place in places):
        return False
    return all(before < after for before, after in zip(chain([-1], places), chain(places, [total]), strict=True))
