"""The seal for Core statements: values on their way to a row, and the values of a row.

The types of the columns know neither the row nor whose it is; so a sealed cell passes them as `Sealed`, and is made and
opened here. Who reads a table that holds words does so through `opened_values`, with keys or without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table

from chatledger.errors import EncryptionError
from chatledger.storage.rows.encryption import SEALED, Seal, netstring, said
from chatledger.storage.schema.text import (
    SEAL_HEADER,
    JsonText,
    Sealed,
    decode_json,
    decode_text,
    encode_json,
    encode_text,
    no_keys,
)


def sealed_values(seal: Seal | None, table: Table, values: Mapping[str, Any], **key: Any) -> dict[str, Any]:
    """Values for a Core statement; `key` is what they do not say of the row's primary key."""
    if seal is None:
        return dict(values)
    columns = [name for name in SEALED[table.name] if values.get(name) is not None]
    row = tuple(_stored(table, name, values[name]) for name in columns)
    (sealed,) = seal.seal(table.name, columns, [row], *_key_of(table, {**values, **key}))
    return {**values, **dict(zip(columns, map(Sealed, sealed), strict=True))}


def opened_values(seal: Seal | None, table: Table, values: Mapping[str, Any], **key: Any) -> dict[str, Any]:
    """A row that a Core statement gave, with its words. Raises EncryptionError."""
    columns = [name for name in SEALED[table.name] if values.get(name) is not None]
    if seal is None:
        for name in columns:
            if type(cell := values[name]) is Sealed:
                raise _no_keys(table, name, cell, _key_of(table, {**values, **key}))
        return dict(values)
    # What Core has decoded was not sealed, and is encoded again to be judged.
    row = tuple(_stored(table, name, values[name]) for name in columns)
    (opened,) = seal.open(table.name, columns, [row], *_key_of(table, {**values, **key}))
    return {**values, **{name: _decoded(table, name, text) for name, text in zip(columns, opened, strict=True)}}


def _no_keys(table: Table, column: str, cell: Sealed, key: Sequence[Any]) -> EncryptionError:
    header = SEAL_HEADER.match(cell.stored)
    assert header is not None
    return no_keys(header[2], said("".join(map(netstring, (table.name, column, "", *key)))))


def _key_of(table: Table, values: Mapping[str, Any]) -> list[Any]:
    """The primary key without the tenant, as stored."""
    found = [values[column.name] for column in table.primary_key if column.name != "tenant_id"]
    return [encode_text(value) if isinstance(value, str) else value for value in found]


def _is_json(table: Table, column: str) -> bool:
    return isinstance(table.c[column].type, JsonText)


def _stored(table: Table, column: str, value: Any) -> str | None:
    if type(value) is Sealed:
        return value.stored
    return encode_json(value) if _is_json(table, column) else encode_text(value)


def _decoded(table: Table, column: str, text: str) -> Any:
    return decode_json(text) if _is_json(table, column) else decode_text(text)
