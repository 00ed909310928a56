"""Encryption at rest: the words of people and models as AES-256-GCM ciphertext, cell by cell, in their usual columns.

A cell is the header (mark, version, key id) and the base64 of nonce, ciphertext and tag. Its associated data is the
header and the cell's whole place: table, column, tenant, and the row's primary key. So a cell that was altered, or
moved to another row, column, table or tenant, does not decrypt. A tenant with keys refuses plain text in an encrypted
column.

The columns that statements look up, join, order and count stay plain: see `docs/guides/encryption.md`. A `Tenant`
carries the encryption of its rows; encryption reaches the storage functions in no other way.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import Table

from chatledger.errors import (
    ChatLedgerError,
    DamagedCell,
    EncryptionError,
    InvalidArgument,
)
from chatledger.models.json import STORED
from chatledger.storage.drivers.asyncpg import aside
from chatledger.storage.drivers.sql import Row
from chatledger.storage.rows.derive import netstring
from chatledger.storage.rows.keys import (
    FIRST_VERSION,
    NONCE_BYTES,
    TAG_BYTES,
    VERSION,
    CellCounts,
    Encryption,
    KeyRing,
    Keys,
    TenantKeys,
)
from chatledger.storage.schema.columns import Ciphertext, CodedText, JsonText, Undecoded, holds, holds_no_text
from chatledger.storage.schema.tables import metadata
from chatledger.storage.schema.text import (
    CIPHERTEXT_HEADER,
    CIPHERTEXT_MARK,
    UNREADABLE,
    decode_json,
    encode_json,
    encode_key,
    encode_text,
    no_keys,
)

ENCRYPTED: Mapping[str, tuple[str, ...]] = {
    "threads": ("title", "metadata"),
    "runs": ("input", "error", "metadata"),
    "run_decisions": ("reason", "pending_reason"),
    "messages": ("text", "residual", "response_metadata", "custom_data", "digest"),
    "message_parts": ("text", "body"),
    "tool_calls": ("arguments", "extras"),
    "feedback": ("kwargs", "author"),
    "agents": ("definition", "settings"),
    "outputs": ("text", "body"),
    "revisions": ("body", "digest"),
    "kv": ("value",),
    "tenants": ("digest_secret",),
}
"""The columns that hold the words of a person or a model."""
Cells = tuple[Any, ...]
M = TypeVar("M", bound=BaseModel)
TABLES: Mapping[str, Table] = {table.name: table for table in metadata.tables.values()}


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of rows: its `name`, its `key` as the column `tenant_id` stores it, and its encryption, if any.

    With a `user_id` (`user` is its stored form) it is the tenant as that user sees it: functions that find a thread, or
    the rows of one, find only the user's own.
    """

    name: str
    key: str
    encryption: CellEncryption | None = None
    user_id: str | None = None
    user: str | None = None

    @classmethod
    def of(cls, name: str, keys: EncryptionKeys | None = None) -> Self:
        """Raises LimitExceeded and InvalidArgument for a name that cannot be a key."""
        return cls(name, encode_key(name, "tenant"), None if keys is None else keys.of(name))

    def seen_by(self, user_id: str | None) -> Tenant:
        """The same tenant as the user sees it; with None, as it is. Raises InvalidArgument if it is another user's view
        already.
        """
        if user_id is None or user_id == self.user_id:
            return self
        if self.user_id is not None:
            raise InvalidArgument("user_id", "is another user than the one whose threads are seen here; leave it out")
        return replace(self, user_id=user_id, user=encode_text(user_id))


class EncryptionKeys:
    """The keys that a ledger was opened with, if any, and the tenants that are known to be marked as encrypted. A plain
    KeyRing, in place of a function, serves every tenant.
    """

    def __init__(self, encryption: KeyRing | Encryption | None) -> None:
        settings = Encryption(encryption) if isinstance(encryption, KeyRing) else encryption
        self._required = settings is not None and settings.required
        self._plaintext = settings is not None and settings.plaintext
        keys = None if settings is None else settings.keys
        self._keys = (lambda _: keys) if isinstance(keys, KeyRing) else keys
        self._marked: set[str] = set()
        self.counts: CellCounts = CellCounts()

    def of(self, tenant: str) -> CellEncryption | None:
        if self._keys is None:
            return None
        own = CellEncryption(tenant, self._keys, plaintext=self._plaintext, marked=self._marked, counts=self.counts)
        own.required = self._required
        return own

    @property
    def are_there(self) -> bool:
        return self._keys is not None


class CellEncryption:
    """Encrypts and decrypts the words of one tenant. With `plaintext`, cells that are not encrypted are read as they
    are.
    """

    __slots__ = ("_counts", "_keys", "_marked", "_tenant", "_tenant_place", "plaintext", "required")

    def __init__(
        self,
        tenant: str,
        keys: Keys,
        *,
        plaintext: bool = False,
        marked: set[str] | None = None,
        counts: CellCounts | None = None,
    ) -> None:
        self._tenant = tenant
        self._counts = CellCounts() if counts is None else counts
        self._marked = set() if marked is None else marked
        self._keys = keys
        self._tenant_place = netstring(encode_text(tenant))
        self.plaintext: bool = plaintext
        self.required: bool = False
        """Whether the database has to be encrypted as a whole."""

    def encrypt(self, table: str, columns: Sequence[str], rows: Sequence[Cells], *key: Any) -> Sequence[Cells]:
        """The rows with their words encrypted. `key` holds, as stored, the values of the primary key that stand before
        those in `columns`, without the tenant. Raises EncryptionError, and EncryptionError if the keys function fails.
        """
        cells, place = _layout(table, tuple(columns), len(key))
        if not cells or not rows:
            return rows
        ring, words = self.ring(), [map(itemgetter(index), rows) for index in cells]
        return aside(lambda: self._encrypt(ring, cells, place, rows, key), *words)

    def _encrypt(
        self, ring: TenantKeys, cells: Mapping[int, str], place: Sequence[int], rows: Sequence[Cells], key: Cells
    ) -> Sequence[Cells]:
        header, cipher = ring.header, ring.ciphers[ring.header]
        contexts = _with_header(cells, header)
        before = self._tenant_place + "".join(map(netstring, key))
        encrypted: list[Cells] = []
        count = 0
        for row in rows:
            encrypted_row: list[Any] | None = None
            for index, context in contexts:
                if (text := row[index]) is None:
                    continue
                if encrypted_row is None:
                    encrypted_row, where = list(row), before + "".join([netstring(row[at]) for at in place])
                data = cipher.encrypt(text, context + where)
                count += 1
                encrypted_row[index] = header + b2a_base64(data, newline=False).decode("ascii")
            encrypted.append(row if encrypted_row is None else tuple(encrypted_row))
        if count:
            self._counts.add(ring.current, count)
        return encrypted

    def decrypt(self, table: str, columns: Sequence[str], rows: Sequence[Row], *key: Any) -> Sequence[Row]:
        """The rows as they were before `encrypt`. Raises EncryptionError for a cell that was not encrypted for its
        place.
        """
        cells, place = _layout(table, tuple(columns), len(key))
        if not cells or not rows:
            return rows
        ring = self._ask()
        # Nearly all cells have the current key, and a page has hundreds of cells, so look its header up only once.
        header = "" if ring is None else ring.header
        cipher = None if ring is None else ring.ciphers[header]
        size, contexts = len(header), _with_header(cells, header)
        before = self._tenant_place + "".join(map(netstring, key))
        decrypted: list[Row] = []
        for row in rows:
            decrypted_row: list[Any] | None = None
            for index, context in contexts:
                if (stored := row[index]) is None:
                    continue
                if decrypted_row is None:
                    decrypted_row, where = list(row), before + "".join([netstring(row[at]) for at in place])
                try:
                    if cipher is not None and stored.startswith(header):
                        decrypted_row[index] = cipher.decrypt(_from_base64(stored[size:]), context + where)
                    else:
                        decrypted_row[index] = self._decrypt(ring, stored, cells[index] + where)
                except ValueError:
                    raise _not_authentic(_key_id(stored), describe(cells[index] + where)) from None
                except (TypeError, AttributeError):  # SQLite stores bytes in a column of text
                    raise _not_encrypted(describe(cells[index] + where)) from None
            decrypted.append(row if decrypted_row is None else decrypted_row)
        return decrypted

    def ring(self) -> TenantKeys:
        """The keys to encrypt with. Raises EncryptionError."""
        ring = self._ask()
        if ring is None:
            raise EncryptionError("no-key", f"tenant {self._tenant!r} has no keys to encrypt with")
        return ring

    @property
    def marked(self) -> bool:
        """Whether the tenant is known to be marked as encrypted."""
        return self._tenant in self._marked

    def remember_marked(self) -> None:
        self._marked.add(self._tenant)

    def can_encrypt(self) -> bool:
        """Whether the tenant has keys. False if the keys function fails; the write of words then raises its error."""
        try:
            return self._ask() is not None
        except ChatLedgerError:
            return False

    def _ask(self) -> TenantKeys | None:
        try:
            ring = self._keys(self._tenant)
        except Exception as error:  # a key store's own error: the library raises only errors of its own
            detail = f"loading the keys of tenant {self._tenant!r} failed: {type(error).__name__}"
            raise EncryptionError("no-key", detail) from error
        if ring is not None and not isinstance(ring, KeyRing):
            raise InvalidArgument("keys", f"must return a KeyRing or None, not {type(ring).__name__}")
        return None if ring is None else ring.of(self._tenant)

    def _decrypt(self, ring: TenantKeys | None, stored: str, where: str) -> str:
        """The text of a cell that the current key did not encrypt. Raises ValueError if the cell is not authentic."""
        header = CIPHERTEXT_HEADER.match(stored)
        if header is None:
            if self.plaintext:
                return stored
            raise _not_encrypted(describe(where))
        if ring is None or (cipher := ring.ciphers.get(header[0])) is None:
            raise self._unavailable(header[1], header[2], where)
        return cipher.decrypt(_from_base64(stored[header.end() :]), _named(header[0]) + where)

    def _unavailable(self, version: str, key_id: str, where: str) -> EncryptionError:
        if version not in (str(FIRST_VERSION), str(VERSION)):
            detail = f"encrypted in version {version}, which this release cannot read"
            return EncryptionError("unknown-version", detail, describe(where), key_id=key_id)
        detail = f"encrypted with the key {key_id!r}, which is not among the keys of tenant {self._tenant!r}"
        return EncryptionError("no-key", detail, describe(where), key_id=key_id)


def _not_authentic(key_id: str, place: str) -> EncryptionError:
    detail = f"not encrypted with the key {key_id!r} for this place: altered, moved, or another key of that name"
    return EncryptionError("not-authentic", detail, place, key_id=key_id)


def _not_encrypted(place: str) -> EncryptionError:
    detail = (
        "stored as plain text: planted, written without keys, or older than the keys; plaintext=True reads it, and"
        " `chatledger reencrypt --plaintext` encrypts it"
    )
    return EncryptionError("not-encrypted", detail, place)


def _from_base64(text: str) -> bytes:
    """Decode base64. Raises ValueError unless the text is the canonical encoding of its bytes."""
    data = a2b_base64(text, strict_mode=True)
    odd = len(data) % 3
    if len(data) < NONCE_BYTES + TAG_BYTES or (odd and b2a_base64(data[-odd:], newline=False).decode() != text[-4:]):
        raise ValueError("not the base64 of an encrypted text")
    return data


# --- The place of a cell, as associated data --------------------------------------------------------------------------


def describe(where: str) -> str:
    """A place for people to read, from its netstrings. It leaves out the tenant, which the caller knows."""
    names: list[str] = []
    while where:
        size, rest = where.split(":", 1)
        names.append(rest[: int(size)])
        where = rest[int(size) :]
    table, column, _, *key = names
    return f"{table}.{column} of {', '.join(map(repr, key))}"


def _named(header: str) -> str:
    """A header as associated data, without its mark: with it, every place would be a string of wide characters."""
    return netstring(header[len(CIPHERTEXT_MARK) :])


def _with_header(cells: Mapping[int, str], header: str) -> list[tuple[int, str]]:
    return [(index, _named(header) + context) for index, context in cells.items()]


def _key_id(stored: str) -> str:
    header = CIPHERTEXT_HEADER.match(stored)
    return "" if header is None else header[2]


@lru_cache(maxsize=256)
def _layout(table: str, columns: tuple[str, ...], known: int) -> tuple[Mapping[int, str], tuple[int, ...]]:
    """The index of each encrypted column with the beginning of its place, and the indexes of the other key columns."""
    encrypted = [name for name in ENCRYPTED.get(table, ()) if name in columns]
    cells = {columns.index(name): netstring(table) + netstring(name) for name in encrypted}
    key = [column.name for column in TABLES[table].primary_key][1 + known :] if cells else []
    return cells, tuple(columns.index(name) for name in key)


# --- Values of Core statements ----------------------------------------------------------------------------------------


def encrypt_values(tenant: Tenant, table: Table, values: Mapping[str, Any], **key: Any) -> dict[str, Any]:
    """The values of a Core statement, encrypted. `key` holds the primary key columns that are not among the values."""
    if tenant.encryption is None:
        return dict(values)
    columns = [name for name in ENCRYPTED[table.name] if values.get(name) is not None]
    row = tuple(_stored(table, name, values[name]) for name in columns)
    (encrypted,) = tenant.encryption.encrypt(table.name, columns, [row], *_key_of(table, {**values, **key}))
    return {**values, **dict(zip(columns, map(Ciphertext, encrypted), strict=True))}


def decrypt_values(tenant: Tenant, table: Table, values: Mapping[str, Any], **key: Any) -> dict[str, Any]:
    """The row of a Core statement, decrypted. `key` holds the primary key columns that are not among the values.

    Raises DamagedCell, and EncryptionError, also for ciphertext if there are no keys.
    """
    cells, values = {**values, **key}, dict(values)
    columns = [name for name in ENCRYPTED.get(table.name, ()) if values.get(name) is not None]
    if tenant.encryption is None:
        for name in columns:
            if type(cell := values[name]) is Ciphertext:
                raise _no_keys(table, name, cell, _key_of(table, cells))
    elif columns:
        # Core has decoded the cells that are not encrypted. Encode them again, so that `decrypt` can check them.
        row = tuple(_stored(table, name, values[name]) for name in columns)
        (decrypted,) = tenant.encryption.decrypt(table.name, columns, [row], *_key_of(table, cells))
        values |= {name: _decoded(table, name, text) for name, text in zip(columns, decrypted, strict=True)}
    for name, value in values.items():
        if type(value) is Undecoded or (type(value) is str and name in table.c and holds_no_text(table.c[name].type)):
            raise damaged_cell(table, name, cells)
    return values


def decrypt_json(tenant: Tenant, table: Table, column: str, row: Mapping[str, Any]) -> Any:
    """The JSON of a cell that a Core statement read as it is stored, where a stored null is a value and not NULL.
    `row` holds the primary key as well. Raises DamagedCell and EncryptionError.
    """
    stored, key = row[column], _key_of(table, row)
    if tenant.encryption is not None:
        ((stored,),) = tenant.encryption.decrypt(table.name, [column], [(stored,)], *key)
    elif isinstance(stored, str) and CIPHERTEXT_HEADER.match(stored) is not None:
        raise _no_keys(table, column, Ciphertext(stored), key)
    try:
        return decode_json(stored)
    except UNREADABLE:
        raise damaged_cell(table, column, row) from None


def to_model(
    model: type[M],
    table: Table,
    row: Mapping[str, Any],
    fields: Mapping[str, Any],
    columns: Mapping[str, str] = MappingProxyType({}),
) -> M:
    """The model of decrypted fields. `columns` names the column of each field whose name differs.

    Raises DamagedCell for a field that the model refuses, such as a text in a column of numbers: SQLite stores it.
    """
    try:
        return model.model_validate(fields, context=STORED)
    except ValidationError as error:
        names = [str(problem["loc"][0]) for problem in error.errors(include_input=False) if problem["loc"]]
        column = next((name for name in (columns.get(name, name) for name in names) if name in table.c), None)
        if column is None:  # no cell is to blame
            raise
    raise damaged_cell(table, column, row)


def damaged_cell(table: Table, column: str, row: Mapping[str, Any]) -> DamagedCell:
    """`row` holds the values of the primary key, decoded; those that are missing are left out of the error."""
    key = {
        key_column.name: row[key_column.name]
        for key_column in table.primary_key
        if key_column.name != "tenant_id" and key_column.name in row
    }
    return DamagedCell(table.name, column, key, holds(table.c[column].type))


def _no_keys(table: Table, column: str, cell: Ciphertext, key: Sequence[Any]) -> EncryptionError:
    header = CIPHERTEXT_HEADER.match(cell.stored)
    assert header is not None
    return no_keys(header[2], describe("".join(map(netstring, (table.name, column, "", *key)))))


def _key_of(table: Table, values: Mapping[str, Any]) -> list[Any]:
    """The primary key without the tenant, as stored."""
    key = [values[column.name] for column in table.primary_key if column.name != "tenant_id"]
    return [encode_text(value) if isinstance(value, str) else value for value in key]


def _stored(table: Table, column: str, value: Any) -> Any:
    if type(value) in (Ciphertext, Undecoded):
        return value.stored
    is_json = isinstance(table.c[column].type, JsonText)
    return encode_json(value) if is_json else encode_text(value)


def _decoded(table: Table, column: str, text: str) -> Any:
    type_ = table.c[column].type
    assert isinstance(type_, (CodedText, JsonText))
    try:
        return type_.decode(text)
    except UNREADABLE:
        return Undecoded(text)
