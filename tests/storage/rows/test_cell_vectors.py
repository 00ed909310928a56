"""Cells of each version, as `docs/contribute/cells.md` describes them: every later release reads them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from chatledger import KeyRing
from chatledger.storage.rows.derive import derive_key
from chatledger.storage.rows.encryption import CellEncryption
from chatledger.storage.rows.keys import VERSION

VECTORS = json.loads((Path(__file__).parent / "cell_vectors.json").read_text(encoding="utf-8"))
NAMES = [f"version {one['version']} of {one['tenant']!r}" for one in VECTORS]


def lengthened(*values: str) -> bytes:
    return "".join(f"{len(value)}:{value}" for value in values).encode()


def hkdf(key: bytes, info: bytes) -> bytes:
    """The first 32 bytes of HKDF-SHA256 without a salt, as RFC 5869 says it."""
    extracted = hmac.digest(bytes(32), key, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def sealed(version: int, tenant: str, key: bytes, key_id: str, nonce: bytes, place: list[str], text: str) -> str:
    """The cell, made from the description of the format alone."""
    table, column, *row = place
    own = key if version == 1 else hkdf(key, lengthened("chatledger", "cell 2", tenant))
    place_of_cell = lengthened(f"{version}:{key_id}:", table, column, tenant, *row)
    data = nonce + AESGCM(own).encrypt(nonce, text.encode(), place_of_cell)
    return f"\ue001{version}:{key_id}:{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("one", VECTORS, ids=NAMES)
def test_the_cells_are_those_of_the_description(one: dict[str, Any]) -> None:
    key, nonce = bytes.fromhex(one["key"]), bytes.fromhex(one["nonce"])
    made = sealed(one["version"], one["tenant"], key, one["key_id"], nonce, one["place"], one["text"])
    assert made == one["cell"]


@pytest.mark.parametrize("one", VECTORS, ids=NAMES)
def test_this_release_reads_the_cells(one: dict[str, Any]) -> None:
    ring = KeyRing({one["key_id"]: bytes.fromhex(one["key"])})
    table, column, *row = one["place"]
    ((read,),) = CellEncryption(one["tenant"], lambda _: ring).decrypt(table, (column,), [(one["cell"],)], *row)
    assert read == one["text"]


def test_the_file_has_cells_of_each_version() -> None:
    assert {one["version"] for one in VECTORS} == set(range(1, VERSION + 1))


def test_the_derived_key_is_that_of_the_standard() -> None:
    secret = bytes(range(32))
    assert derive_key(secret, "cell 2", "acme") == hkdf(secret, b"10:chatledger6:cell 24:acme")


def test_each_purpose_and_each_name_has_a_key_of_its_own() -> None:
    asked = [("cell 2", "acme"), ("cell 2", "other"), ("cell 2",), ("cell 24", "acme"), ("cell", "2", "acme")]
    assert len({derive_key(bytes(32), *one) for one in asked}) == len(asked)
