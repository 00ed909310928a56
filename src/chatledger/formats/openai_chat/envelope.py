"""The shape that content parts and tool calls share: a `type`, and what there is to say under the key of that name.

    {"type": "image_url", "image_url": {…}}      {"id": …, "type": "function", "function": {…}}

The inner object has a residual of its own, so that an unknown key or another key order in it never makes the residual
repeat what stands beside it: an image's data, a call's arguments.
"""

from __future__ import annotations

from chatledger.formats.openai_chat.fields import nested
from chatledger.formats.residual import KEYS, keep, restore
from chatledger.models.json import JsonValue

INNER = "inner"
FORM = "form"
"""Residual: which of several spellings the source used, where writing has to know it beforehand."""


def keep_envelope(
    source: dict[str, JsonValue], encoded: dict[str, JsonValue], form: str | None
) -> dict[str, JsonValue] | None:
    """The residual that makes `restore_envelope` give the source; None where writing gives it already."""
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
