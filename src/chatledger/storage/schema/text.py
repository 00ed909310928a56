"""The one codec of every text column, keys included, and the column types built on it.

PostgreSQL refuses NUL and both drivers refuse lone surrogates, and people's words hold both. Text without NUL, lone
surrogate or a leading U+E000 is stored as it is; any other as U+E000 followed by itself with those characters (and
the backslash) escaped. Escapes are undone one by one, never joined, so the codec is injective: keys stay unique, joins
on encoded text hold, and no flag is needed.

Ciphertext stands in the same columns, as U+E001 and a header (`seal.py`). Text that begins as such a header does is
escaped, so nobody can write a text that is taken for ciphertext.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Numeric, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from chatledger.errors import InvalidArgument, KeyUnavailable, LimitExceeded
from chatledger.models import json
from chatledger.models.limits import MAX_KEY_BYTES

MARK = "\ue000"
SEAL_MARK = "\ue001"
_MARKS = (MARK, SEAL_MARK)
SEAL_HEADER = re.compile(f"{SEAL_MARK}([0-9]{{1,3}}):([A-Za-z0-9._-]{{1,64}}):")
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
    return text[0] == MARK or SEAL_HEADER.match(text) is not None


def decode_text(stored: str) -> str:
    """The text that a text column holds. Raises KeyUnavailable for ciphertext: whoever has keys opens it before."""
    if not stored.startswith(_MARKS):
        return stored
    if stored[0] == MARK:
        return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\\", stored[1:])
    if (header := SEAL_HEADER.match(stored)) is not None:
        raise no_keys(header[2])
    return stored


def no_keys(key_id: str, place: str | None = None) -> KeyUnavailable:
    return KeyUnavailable(key_id, f"encrypted with the key {key_id!r}, and no keys were given", place)


def _escape(character: str) -> str:
    return "\\\\" if character == "\\" else f"\\u{ord(character):04x}"


def encode_key(key: str, what: str) -> str:
    """A key as its column holds it. Raises LimitExceeded unless that is 1 to 512 bytes, InvalidArgument for no text."""
    if not isinstance(key, str):
        raise InvalidArgument(what, f"must be a str, not {type(key).__name__}")
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


@dataclass(frozen=True, slots=True)
class Sealed:
    """Ciphertext on its way through Core: a column's type knows neither its row nor whose it is. No text, so that one
    that nobody opened is not taken for what was said.
    """

    stored: str


def _sealed(stored: str) -> Sealed | None:
    return Sealed(stored) if stored.startswith(SEAL_MARK) and SEAL_HEADER.match(stored) is not None else None


class CodedText(TypeDecorator[str]):
    """Any text; given as Sealed, and read as such, where it is ciphertext."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if type(value) is Sealed:
            return value.stored
        return None if value is None else encode_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else _sealed(value) or decode_text(value)


class Key(CodedText):
    """Text that identifies: compared byte by byte on both databases, whatever the locale of the server."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text(collation="C" if dialect.name == "postgresql" else None)  # described by asyncpg it were a VARCHAR


class JsonText(TypeDecorator[Any]):
    """JSON as text, in the caller's key order. Not JSONB: it reorders keys, respells numbers and refuses NUL. Given and
    read as Sealed where it is ciphertext.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return value.stored if type(value) is Sealed else encode_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else _sealed(value) or decode_json(value)


class Moment(TypeDecorator[datetime]):
    """A time in UTC: TIMESTAMPTZ on PostgreSQL, integer microseconds since 1970 on SQLite. Data, never an order."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else to_microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "postgresql":
            return None if value is None else from_microseconds(value)
        moment: datetime = value  # asyncpg gives the ends of its calendar without their zone
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal with all its digits: NUMERIC on PostgreSQL, text on SQLite, which has no decimals."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Numeric() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


Position = BigInteger().with_variant(Integer(), "sqlite")
"""seq: a message's place in its branch."""
