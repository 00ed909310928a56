"""What of a source object the typed fields cannot carry: its key order, and every value that they would change.

    residual = keep(source, encoded)        # when decoding: None if encoding gives the source already
    source == restore(encoded, residual)    # when encoding: always, value by value with key order

So identity is not hoped for: it is checked for each object that comes in, and holds for keys that nobody knows yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatledger.models.json import JsonValue, same_json

KEYS = "keys"
EXTRA = "extra"


def keep(source: Mapping[str, JsonValue], encoded: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The residual that makes `restore` give the source: None where the encoded object equals it."""
    # Nearly always encoding gives the very values of the source again, which need not be compared.
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


_ABSENT = object()


def restore(encoded: dict[str, JsonValue], residual: Any) -> dict[str, JsonValue]:
    """The source object. A residual of another shape (another release's, another format's) changes nothing."""
    if not isinstance(residual, dict):
        return encoded
    extra, keys = residual.get(EXTRA), residual.get(KEYS)
    if not isinstance(extra, dict):
        extra = {}
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        keys = list(encoded)
    return {key: extra[key] if key in extra else encoded[key] for key in keys if key in extra or key in encoded}
