"""The column types of the tables: text, keys, JSON, moments and decimals. They behave alike on both databases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Numeric, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from chatledger.storage.schema.text import (
    CIPHERTEXT_HEADER,
    CIPHERTEXT_MARK,
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


def _ciphertext(stored: str) -> Ciphertext | None:
    marked = stored.startswith(CIPHERTEXT_MARK) and CIPHERTEXT_HEADER.match(stored) is not None
    return Ciphertext(stored) if marked else None


class CodedText(TypeDecorator[str]):
    """Any text. Ciphertext is written from, and read as, a Ciphertext."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if type(value) is Ciphertext:
            return value.stored
        return None if value is None else encode_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else _ciphertext(value) or decode_text(value)


class Key(CodedText):
    """A text that identifies something. Both databases compare it byte by byte, whatever the locale of the server."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text(collation="C" if dialect.name == "postgresql" else None)  # asyncpg's dialect would make it VARCHAR


class JsonText(TypeDecorator[Any]):
    """JSON as text, in the caller's key order. It is not JSONB, which reorders keys, respells numbers and refuses NUL.
    Ciphertext is written from, and read as, a Ciphertext.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return value.stored if type(value) is Ciphertext else encode_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else _ciphertext(value) or decode_json(value)


class Moment(TypeDecorator[datetime]):
    """A time in UTC: TIMESTAMPTZ on PostgreSQL, integer microseconds since 1970 on SQLite. Messages are never ordered
    by it.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else to_microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "postgresql":
            return None if value is None else from_microseconds(value)
        moment: datetime = value  # asyncpg returns the first and the last moment of its calendar without a zone
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal with all its digits: NUMERIC on PostgreSQL, text on SQLite, which has no decimal type."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Numeric() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


Position = BigInteger().with_variant(Integer(), "sqlite")
"""The type of seq, a message's number in its branch."""
