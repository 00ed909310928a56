"""The column types of the tables: text, keys, JSON, moments and decimals. They behave alike on both databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Dialect, Float, Integer, Numeric, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from chatledger.storage.schema.text import (
    CIPHERTEXT_HEADER,
    CIPHERTEXT_MARK,
    UNREADABLE,
    decode_json,
    decode_text,
    encode_json,
    encode_text,
    from_microseconds,
    to_microseconds,
)


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """Ciphertext in a Core statement. Core's column types know neither the row nor the tenant, so they cannot decrypt
    it. It is no `str`, so that nobody takes an encrypted cell for a person's words.
    """

    stored: str


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A cell in a Core statement that its column type cannot decode: it is damaged, or plain text where ciphertext
    should stand. An error here would not name the row, and it would hide the other rows of the statement.
    """

    stored: Any = field(repr=False)


class CodedText(TypeDecorator[str]):
    """Any text. Ciphertext is written from, and read as, a Ciphertext."""

    impl = Text
    cache_ok = True

    def decode(self, stored: Any) -> str:
        return decode_text(stored)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if type(value) is Ciphertext:
            return value.stored
        return None if value is None else encode_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return _decode_words(self, value)


class Key(CodedText):
    """A text that identifies something. Both databases compare it byte by byte, whatever the locale of the server."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text(collation="C" if dialect.name == "postgresql" else None)  # asyncpg's dialect would make it VARCHAR


class JsonText(TypeDecorator[Any]):
    """JSON as text, in the caller's key order; of one `kind`, dict or list, or of any. It is not JSONB, which reorders
    keys, respells numbers and refuses NUL. Ciphertext is written from, and read as, a Ciphertext.
    """

    impl = Text
    cache_ok = True

    def __init__(self, kind: type | None = None) -> None:
        super().__init__()
        self.kind = kind

    def decode(self, stored: Any) -> Any:
        value = decode_json(stored)
        if self.kind is not None and type(value) is not self.kind:
            raise ValueError("JSON of another kind")
        return value

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return value.stored if type(value) is Ciphertext else encode_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return _decode_words(self, value)


def _decode_words(column: CodedText | JsonText, stored: Any) -> Any:
    if stored is None:
        return None
    try:
        if stored.startswith(CIPHERTEXT_MARK) and CIPHERTEXT_HEADER.match(stored) is not None:
            return Ciphertext(stored)
        return column.decode(stored)
    except UNREADABLE:
        return Undecoded(stored)


class Moment(TypeDecorator[datetime]):
    """A time in UTC: TIMESTAMPTZ on PostgreSQL, integer microseconds since 1970 on SQLite. Messages are never ordered
    by it.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else BigInteger())

    def decode(self, stored: Any) -> datetime:
        if type(stored) is int:
            return from_microseconds(stored)
        moment: datetime = stored  # asyncpg returns the first and the last moment of its calendar without a zone
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else to_microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return _decode_value(self, value)


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal with all its digits: NUMERIC on PostgreSQL, text on SQLite, which has no decimal type."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Numeric() if dialect.name == "postgresql" else Text())

    def decode(self, stored: Any) -> Decimal:
        return Decimal(stored)

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return _decode_value(self, value)


def _decode_value(column: Moment | ExactDecimal, stored: Any) -> Any:
    try:
        return None if stored is None else column.decode(stored)
    except UNREADABLE:
        return Undecoded(stored)


Position = BigInteger().with_variant(Integer(), "sqlite")
"""The type of seq, a message's number in its branch."""


_HOLDS: Mapping[type[TypeEngine[Any]], str] = {
    CodedText: "text",
    Moment: "a time",
    ExactDecimal: "a decimal number",
    Boolean: "true or false",
    Integer: "a whole number",
    Float: "a number",
}


def holds(column: TypeEngine[Any]) -> str:
    """The values of a column type, for the text of an error."""
    if isinstance(column, JsonText):
        return "a JSON object" if column.kind is dict else "a JSON list" if column.kind is list else "JSON"
    return next(text for kind, text in _HOLDS.items() if isinstance(column, kind))


def holds_no_text(column: TypeEngine[Any]) -> bool:
    """Whether the column is one of numbers. SQLite stores a text there as it is, and Core returns it."""
    return isinstance(column, (Boolean, Integer, Float))


def can_decode(column: TypeEngine[Any], stored: Any) -> bool:
    """Whether the column type can decode a cell as the driver returns it."""
    if isinstance(column, Boolean):
        return stored in (0, 1)
    if holds_no_text(column):
        return isinstance(stored, (int, float))
    assert isinstance(column, (CodedText, JsonText, Moment, ExactDecimal))
    try:
        column.decode(stored)
    except UNREADABLE:
        return False
    return True
