"""The residual: the content of a source object that typed fields cannot hold.

    residual = keep(source, encoded)        # when decoding: None if encoding already gives the source
    source == restore(encoded, residual)    # when encoding: always, value by value with key order

Decoding checks each object, so identity also holds for unknown keys. A residual is stored: its keys (`keys`, `extra`,
`inner`, `form`) and their meaning never change.

    keys    the keys of the source in their order, if encoding gives others
    extra   the values that encoding does not give
    inner   the residuals of objects inside this one, so that an unknown key in an image part does not make the residual
            repeat the image
    form    which of several spellings the source used, if the writer has to know it beforehand
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue, same_json

KEYS = "keys"
EXTRA = "extra"
INNER = "inner"
FORM = "form"

_ABSENT = object()


def nested(residual: JsonValue, *keys: str) -> Any:
    """The value that a residual holds under a path of keys; None if it has another shape."""
    for key in keys:
        residual = residual.get(key) if isinstance(residual, dict) else None
    return residual


def own_residual(message: ChatMessage, name: str) -> JsonValue:
    """The residual of a message that came in the format of this name; None for any other message."""
    return message.residual if message.format == name else None


def keep(source: Mapping[str, JsonValue], encoded: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The residual with which `restore` gives the source; None if the encoded object equals the source."""
    # Encoding nearly always returns the very same values, which need not be compared.
    extra = {
        key: value
        for key, value in source.items()
        if (own := encoded.get(key, _ABSENT)) is not value and not same_json(own, value)
    }
    residual: dict[str, JsonValue] = {}
    if (keys := list(source)) != list(encoded):
        residual[KEYS] = keys
    if extra:
        residual[EXTRA] = extra
    return residual or None


def restore(encoded: dict[str, JsonValue], residual: Any) -> dict[str, JsonValue]:
    """The source object. A residual of another shape (another release's, another format's) changes nothing."""
    if not isinstance(residual, dict):
        return encoded
    extra, keys = _extra_and_keys(residual, encoded)
    return {key: extra[key] if key in extra else encoded[key] for key in keys if key in extra or key in encoded}


def put_back(encoded: dict[str, JsonValue], residual: JsonValue) -> dict[str, JsonValue]:
    """The source object, for a writer that returns only keys of the source, with its values or None.

    A typed field that a program set is kept, even if the source had no value there. If a program edited the message,
    the residual may belong to another object, which lacks a key of this object: then it changes nothing.
    """
    if not isinstance(residual, dict):
        return encoded
    extra, keys = _extra_and_keys(residual, encoded)
    if not encoded.keys() <= set(keys):
        return encoded
    merged = {**encoded, **{key: value for key, value in extra.items() if encoded.get(key) is None}}
    return {key: merged[key] for key in keys if key in merged}


def _extra_and_keys(
    residual: dict[str, JsonValue], encoded: dict[str, JsonValue]
) -> tuple[dict[str, JsonValue], list[str]]:
    extra, keys = residual.get(EXTRA), residual.get(KEYS)
    if not isinstance(extra, dict):
        extra = {}
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        keys = list(encoded)
    return extra, keys


def keep_envelope(
    source: dict[str, JsonValue], encoded: dict[str, JsonValue], form: str | None
) -> dict[str, JsonValue] | None:
    """The residual of an object that holds another under the key that its `type` names; None where there is none.

        {"type": "image_url", "image_url": {…}}      {"id": …, "type": "function", "function": {…}}

    Content parts and tool calls of OpenAI have this shape.
    """
    residual: dict[str, JsonValue] = {} if form is None else {FORM: form}
    key = encoded["type"]
    if isinstance(source.get(key), dict) and isinstance(encoded.get(key), dict):
        inner = keep(source[key], encoded[key])
        if inner is not None:
            residual[INNER] = inner
        encoded = {**encoded, key: source[key]}
    return {**residual, **(keep(source, encoded) or {})} or None


def restore_envelope(encoded: dict[str, JsonValue], residual: JsonValue) -> dict[str, JsonValue]:
    """The source object. The residual of an object of another type, which an edit put aside, changes nothing."""
    key, keys = encoded["type"], nested(residual, KEYS)
    if key in encoded and isinstance(keys, list) and key not in keys:
        return encoded
    if isinstance(encoded.get(key), dict):
        encoded = {**encoded, key: restore(encoded[key], nested(residual, INNER))}
    return restore(encoded, residual)


def keep_deep(source: dict[str, JsonValue], encoded: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The residual from which `restore_deep` restores `source`, given `encoded`, the object that the codec writes for
    the same message. It has a residual for each nested object that differs. None if nothing differs.

    `inner` holds those of objects by their key, and those of objects in a list by its key and their index.
    """
    difference = keep(source, encoded) or {}
    whole = difference.pop(EXTRA, {})
    inner: dict[str, JsonValue] = {}
    for key in [key for key in whole if key in encoded]:
        residual = _keep_inside(whole[key], encoded[key])
        if residual is not None:
            inner[key] = residual
            del whole[key]
    return {**difference, **({EXTRA: whole} if whole else {}), **({INNER: inner} if inner else {})} or None


def _keep_inside(source: JsonValue, encoded: JsonValue) -> dict[str, JsonValue] | None:
    """The residual of two objects, or of two lists of objects by index; None if only the whole source will do."""
    if isinstance(source, dict) and isinstance(encoded, dict):
        return keep_deep(source, encoded)
    if not isinstance(source, list) or not isinstance(encoded, list) or len(source) != len(encoded):
        return None
    residuals: dict[str, JsonValue] = {}
    for index, (theirs, ours) in enumerate(zip(source, encoded, strict=True)):
        if same_json(theirs, ours):
            continue
        if not isinstance(theirs, dict) or not isinstance(ours, dict):
            return None
        residuals[str(index)] = keep_deep(theirs, ours)
    return residuals


def restore_deep(encoded: dict[str, JsonValue], residual: Any) -> dict[str, JsonValue]:
    """The source of which `keep_deep` made the residual. A residual of another shape, or of another message, changes
    nothing.
    """
    if not isinstance(residual, dict):
        return encoded
    inner = residual.get(INNER)
    if isinstance(inner, dict):
        changed = {key: _restore_inside(encoded[key], inside) for key, inside in inner.items() if key in encoded}
        encoded = {**encoded, **changed}
    return restore(encoded, residual)


def _restore_inside(encoded: JsonValue, residual: Any) -> JsonValue:
    if isinstance(encoded, dict):
        return restore_deep(encoded, residual)
    if isinstance(encoded, list) and isinstance(residual, dict):
        return [_restore_inside(item, residual.get(str(index))) for index, item in enumerate(encoded)]
    return encoded


# --- Positions --------------------------------------------------------------------------------------------------------
# Two kinds of items in one list that are stored one kind after the other.

T = TypeVar("T")


def positions_of(later: Sequence[int], count: int) -> list[int] | None:
    """The positions of items that are written after all others of `count`; None if they are the last items already."""
    return None if list(later) == list(range(count - len(later), count)) else list(later)


def interleave(first: list[T], later: list[T], positions: JsonValue) -> list[T]:
    """The items of `later` at their positions among those of `first`; at the end if the positions do not fit."""
    if not _are_positions(positions, len(later), len(first) + len(later)):
        return first + later
    taken, others, rest = set(positions), iter(first), iter(later)
    return [next(rest) if position in taken else next(others) for position in range(len(first) + len(later))]


def _are_positions(positions: JsonValue, count: int, total: int) -> bool:
    if not isinstance(positions, list) or len(positions) != count:
        return False
    if not all(isinstance(position, int) and not isinstance(position, bool) for position in positions):
        return False
    return all(before < after for before, after in zip(chain([-1], positions), chain(positions, [total]), strict=True))
