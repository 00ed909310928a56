"""How a source differs from what its typed fields say, down to the nested object that differs.

    apply(written, difference(source, written)) == source       # value by value, with key order

It is the residual of `formats.residual` for each object on the way, so that one unknown key inside an image part does
not cost a second copy of the image.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.residual import EXTRA, keep, restore
from chatledger.models.json import JsonValue, same_json

INNER = "inner"


def difference(source: dict[str, JsonValue], written: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """None where the two are equal."""
    found = keep(source, written) or {}
    whole = found.pop(EXTRA, {})
    inner: dict[str, JsonValue] = {}
    for key in [key for key in whole if key in written]:
        nested = _nested(whole[key], written[key])
        if nested is not None:
            inner[key] = nested
            del whole[key]
    return {**found, **({EXTRA: whole} if whole else {}), **({INNER: inner} if inner else {})} or None


def _nested(source: JsonValue, written: JsonValue) -> dict[str, JsonValue] | None:
    """The difference of two objects, or of two lists of objects by index; None if only the whole source will do."""
    if isinstance(source, dict) and isinstance(written, dict):
        return difference(source, written)
    if not isinstance(source, list) or not isinstance(written, list) or len(source) != len(written):
        return None
    found: dict[str, JsonValue] = {}
    for index, (given, ours) in enumerate(zip(source, written, strict=True)):
        if same_json(given, ours):
            continue
        if not isinstance(given, dict) or not isinstance(ours, dict):
            return None
        found[str(index)] = difference(given, ours)
    return found


def apply(written: dict[str, JsonValue], found: Any) -> dict[str, JsonValue]:
    """The source. A difference of another shape, or one that fits another message, changes nothing."""
    if not isinstance(found, dict):
        return written
    inner = found.get(INNER)
    if isinstance(inner, dict):
        changed = {key: _apply_nested(written[key], nested) for key, nested in inner.items() if key in written}
        written = {**written, **changed}
    return restore(written, found)


def _apply_nested(written: JsonValue, found: Any) -> JsonValue:
    if isinstance(written, dict):
        return apply(written, found)
    if isinstance(written, list) and isinstance(found, dict):
        return [_apply_nested(item, found.get(str(index))) for index, item in enumerate(written)]
    return written
