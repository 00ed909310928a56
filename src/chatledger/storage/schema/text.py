"""The one codec of every text column, keys included.

PostgreSQL refuses NUL and both drivers refuse lone surrogates, and people's words hold both. Text without NUL, lone
surrogate or a leading U+E000 is stored as it is; any other as U+E000 followed by itself with those characters (and
the backslash) escaped. Escapes are undone one by one, never joined, so the codec is injective: keys stay unique, joins
on encoded text hold, and no flag is needed.

Ciphertext stands in the same columns, as U+E001 and a header (`rows/encryption.py`). Text that begins like such a
header is escaped, so no text can be taken for ciphertext.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from chatledger.errors import InvalidArgument, KeyUnavailable, LimitExceeded
from chatledger.models import json
from chatledger.models.limits import MAX_KEY_BYTES

MARK = "\ue000"
CIPHERTEXT_MARK = "\ue001"
_MARKS = (MARK, CIPHERTEXT_MARK)
CIPHERTEXT_HEADER = re.compile(f"{CIPHERTEXT_MARK}([0-9]{{1,3}}):([A-Za-z0-9._-]{{1,64}}):")
"""Version and key id. Text with only the mark before it is text: it was before there was encryption."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile("[\x00\ud800-\udfff\\\\]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|\\)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode_text(text: str) -> str:
    """What a text column holds for this text."""
    if text.isascii():  # known without reading it, and most text is
        if "\x00" not in text:
            return text
    elif _UNSTORABLE.search(text) is None and not (text.startswith(_MARKS) and _begins_as_ours(text)):
        return text
    return MARK + _ESCAPED.sub(lambda match: _escape(match[0]), text)


def _begins_as_ours(text: str) -> bool:
    return text[0] == MARK or CIPHERTEXT_HEADER.match(text) is not None


def decode_text(stored: str) -> str:
    """The text that a text column holds. Raises KeyUnavailable for ciphertext: whoever has keys opens it before."""
    if not stored.startswith(_MARKS):
        return stored
    if stored[0] == MARK:
        return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\\", stored[1:])
    if (header := CIPHERTEXT_HEADER.match(stored)) is not None:
        raise no_keys(header[2])
    return stored


def no_keys(key_id: str, place: str | None = None) -> KeyUnavailable:
    return KeyUnavailable(key_id, f"encrypted with the key {key_id!r}, and no keys were given", place)


def _escape(character: str) -> str:
    return "\\\\" if character == "\\" else f"\\u{ord(character):04x}"


def encode_key(key: str, what: str) -> str:
    """A key as its column holds it. Raises LimitExceeded unless that is 1 to 512 bytes, InvalidArgument for no text."""
    if not isinstance(key, str):
        raise InvalidArgument(what, f"must be a str, not {None if key is None else type(key).__name__}")
    stored = encode_text(key)
    size = len(stored) if stored.isascii() else len(stored.encode())
    if not 1 <= size <= MAX_KEY_BYTES:
        empty = "" if size else f"{what} must not be empty; 1 to {MAX_KEY_BYTES} bytes are allowed"
        raise LimitExceeded(f"bytes of {what}", size, MAX_KEY_BYTES, minimum=1, detail=empty)
    return stored


def encode_json(value: json.JsonValue) -> str | None:
    return None if value is None else encode_text(json.dumps(value))


def decode_json(stored: str | None) -> Any:
    return None if stored is None else json.loads(decode_text(stored))


def to_microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
