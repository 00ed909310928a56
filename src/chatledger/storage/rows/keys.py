"""Keys: the keys that encrypt a tenant's words, and the file that they may come from.

A key is 32 bytes with an id. The id stands beside each ciphertext, so a ring may hold older keys until `reencrypt` has
replaced their ciphertexts. A cell is encrypted with a key that is derived from it for the tenant. The ledger keeps no
key. It asks for a tenant's ring each time that it encrypts or decrypts,
so words are lost once no function returns their key.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import NoneType
from typing import Any, TypeAlias, cast

from chatledger.arguments import BOOL, STR_OR_NONE, Kind, require
from chatledger.errors import EncryptionError, InvalidArgument, MissingExtra
from chatledger.storage.drivers.private_file import NotPrivate, read_private
from chatledger.storage.rows.derive import derive_key
from chatledger.storage.schema.text import encode_text

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
FIRST_VERSION = 1
"""The version of cells that a key encrypted itself, for all tenants. They are read, and `reencrypt` replaces them."""
VERSION = 2
"""The version of new cells. Each tenant has a key of its own, derived from the key of the ring."""
_CELL = "cell 2"
_TENANTS = 1_024
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEYS_BY_ID = Kind("a dict of keys by id", Mapping)


class KeyRing:
    """The keys of a tenant by id, each 32 bytes. The key `current` encrypts new cells; it may be left out if there is
    only one key. Each key decrypts the cells that it encrypted.

        ring = KeyRing({"2025": old_key, "2026": secrets.token_bytes(32)}, current="2026")

    An id has 1 to 64 letters, digits, '.', '_' and '-'. Raises InvalidArgument for an invalid key or id, and
    MissingExtra without `chatledger[crypto]`.
    """

    __slots__ = ("_derived", "_first", "_keys", "current")

    current: str
    """The id of the key that encrypts new cells."""

    def __init__(self, keys: Mapping[str, bytes], *, current: str | None = None) -> None:
        require(_KEYS_BY_ID, keys=keys)
        require(STR_OR_NONE, current=current)
        if current is None and len(keys) == 1:
            current = next(iter(keys))
        if current is None or current not in keys:
            raise InvalidArgument("current", f"must name one of the {len(keys)} keys")
        for name, key in keys.items():
            if not isinstance(name, str) or _NAME.fullmatch(name) is None:
                raise InvalidArgument("keys", f"has the id {name!r}, not 1 to 64 letters, digits, '.', '_' and '-'")
            if not isinstance(key, bytes) or len(key) != KEY_BYTES:
                raise InvalidArgument(f"keys[{name!r}]", f"must be {KEY_BYTES} bytes")
        self.current = current
        self._keys = dict(keys)
        self._first = {header_of(name, FIRST_VERSION): Cipher(key) for name, key in keys.items()}
        self._derived: dict[str, TenantKeys] = {}

    def __repr__(self) -> str:
        return f"KeyRing(current={self.current!r}, {len(self._keys)} keys)"

    def of(self, tenant: str) -> TenantKeys:
        """The keys that are derived for the tenant. A ring remembers those of some tenants."""
        if (remembered := self._derived.get(tenant)) is not None:
            return remembered
        own = {name: derive_key(key, _CELL, encode_text(tenant)) for name, key in self._keys.items()}
        ciphers = self._first | {header_of(name): Cipher(key) for name, key in own.items()}
        if len(self._derived) >= _TENANTS:
            self._derived.clear()
        self._derived[tenant] = keys = TenantKeys(self.current, header_of(self.current), ciphers)
        return keys


Keys: TypeAlias = Callable[[str], KeyRing | None]
"""A function that returns the ring of a tenant, or None if the tenant has no keys (any more). Each encryption and
decryption calls it, from any thread, so it must answer from memory.
"""


@dataclass(frozen=True, slots=True)
class Encryption:
    """Keys for `Ledger.open(encryption=…)`, and what the ledger does with plain text.

        ledger = await Ledger.open(url, encryption=Encryption(read_keys("keys.json"), required=True))

    With `required`, the first write records that the database is encrypted, as `chatledger migrate --encrypted` does.
    It raises EncryptionError, and stores nothing, if its role may not record it or the tables are distributed by
    tenant: run the command first. From then on a ledger without keys stores nothing, for no tenant. This ledger itself
    never stores or reads plain text, even if somebody removed the record: a tenant without keys raises EncryptionError.
    Raises InvalidArgument if `keys` is no KeyRing and no function, and for `plaintext` with `required`.
    """

    keys: KeyRing | Keys = field(repr=False)
    """The ring of all tenants, or a function that returns the ring of a tenant."""
    plaintext: bool = False
    """Whether the ledger also reads cells that were stored before there were keys."""
    required: bool = False
    """Whether the database has to be encrypted as a whole."""

    def __post_init__(self) -> None:
        require(_KEYS, keys=self.keys)
        require(BOOL, plaintext=self.plaintext, required=self.required)
        if self.plaintext and self.required:
            raise InvalidArgument(
                "plaintext", "does not go with required=True, which refuses plain text; leave one out"
            )


_KEYS = Kind("a KeyRing or a function", KeyRing, cast(type, Callable))
ENCRYPTION = Kind("a KeyRing, an Encryption of a KeyRing or of a function, or None", KeyRing, Encryption, NoneType)


@dataclass(frozen=True, slots=True)
class TenantKeys:
    """The keys of a tenant, ready for use."""

    current: str
    """The id of the key that encrypts new cells."""
    header: str
    """The text that stands before each new ciphertext."""
    ciphers: Mapping[str, Cipher]
    """The keys, by the text that stands before each of their ciphertexts."""


def header_of(key_id: str, version: int = VERSION) -> str:
    """The text before each ciphertext of the key."""
    return f"\ue001{version}:{key_id}:"


class Cipher:
    """AES-256-GCM with one key. It imports `cryptography` only here, so a ledger without keys does not need it."""

    __slots__ = ("_aes", "_forged")

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtra("crypto", "encryption") from None
        self._aes: Any = AESGCM(key)
        self._forged = InvalidTag

    def encrypt(self, text: str, place: str) -> bytes:
        """Return nonce, ciphertext and tag. Nonces are random, so the key of a tenant is safe for 2^32
        cells (`docs/contribute/cells.md`).
        """
        nonce = os.urandom(NONCE_BYTES)
        encrypted: bytes = self._aes.encrypt(nonce, text.encode(), place.encode())
        return nonce + encrypted

    def decrypt(self, data: bytes, place: str) -> str:
        """Raises ValueError for anything that was not encrypted with this key for this place."""
        try:
            text: bytes = self._aes.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place.encode())
        except self._forged:
            raise ValueError("not authentic") from None
        return text.decode()


def read_keys(path: str | os.PathLike[str]) -> Keys:
    """Read the keys of all tenants from a JSON file: `{tenant: {"current": id, "keys": {id: base64 of 32 bytes}}}`.
    Returns a function: `Ledger.open(encryption=Encryption(read_keys(path)))`. The file is read once, so open the ledger
    again after a change.

    Raises EncryptionError if the file cannot be read, if others than its owner can read it, if another user than root
    and this one owns it, or if it has another form, and MissingExtra without `chatledger[crypto]`.
    """
    try:
        text, _ = read_private(path)
    except (OSError, UnicodeDecodeError) as error:
        raise EncryptionError("no-key", f"the keys cannot be read: {error}") from None
    except NotPrivate as error:
        raise EncryptionError("no-key", str(error)) from None
    rings = _read_rings(Path(path), text)
    return rings.get


def _read_rings(file: Path, text: str) -> dict[str, KeyRing]:
    try:  # the errors below are not chained: their texts quote the file, and the quote could be a key
        tenants = json.loads(text)
        return {tenant: _read_ring(**ring) for tenant, ring in tenants.items()}
    except (AttributeError, TypeError, ValueError, binascii.Error):
        form = '{"default": {"current": "k1", "keys": {"k1": "base64 of 32 bytes"}}}'
        raise EncryptionError("no-key", f"{file} does not hold keys as {form}") from None


def _read_ring(*, keys: Mapping[str, str], current: str | None = None) -> KeyRing:
    return KeyRing({name: base64.b64decode(key, validate=True) for name, key in keys.items()}, current=current)


class CellCounts:
    """The number of cells by the id of the key, so that a key is replaced before it wears out. Several threads encrypt
    at once.
    """

    __slots__ = ("_cells", "_turn")

    def __init__(self) -> None:
        self._cells: dict[str, int] = {}
        self._turn = Lock()

    def add(self, key_id: str, cells: int) -> None:
        with self._turn:
            self._cells[key_id] = self._cells.get(key_id, 0) + cells

    def read(self) -> dict[str, int]:
        with self._turn:
            return dict(self._cells)
