"""Encryption by itself: a cell is decrypted only with the same key and at the same place."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import InvalidArgument, KeyRing
from chatledger.errors import EncryptionError
from chatledger.storage.rows import keys as module
from chatledger.storage.rows.derive import derive_key
from chatledger.storage.rows.encryption import ENCRYPTED, TABLES, CellEncryption
from chatledger.storage.schema.text import encode_text
from tests.reasons import because

COLUMNS = ("seq", "role", "text", "residual")
ROW = (7, "user", "Tokyo?", '{"a":1}')
PLACE = ("t1", 0)
FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))


def encryption_of(
    tenant: str = "acme", *, plaintext: bool = False, keys: dict[str, bytes] | None = None
) -> CellEncryption:
    """The first of the keys is the current one."""
    keys = keys or {"k1": FIRST}
    ring = KeyRing(keys, current=next(iter(keys)))
    return CellEncryption(tenant, lambda _: ring, plaintext=plaintext)


def encrypted(encryption: CellEncryption, row: tuple[Any, ...] = ROW, *place: Any) -> tuple[Any, ...]:
    (made,) = encryption.encrypt("messages", COLUMNS, [row], *(place or PLACE))
    return made


def decrypted(encryption: CellEncryption, row: Sequence[Any], *place: Any) -> Sequence[Any]:
    (made,) = encryption.decrypt("messages", COLUMNS, [row], *(place or PLACE))
    return made


def test_an_encrypted_row_is_decrypted() -> None:
    assert tuple(decrypted(encryption_of(), encrypted(encryption_of()))) == ROW


def test_a_cell_of_the_first_version_is_read_and_written_anew() -> None:
    stored = (7, "\ue0011:k1:AAECAwQFBgcICQoLE229YqrayflFFG/7Yd1jxIRL9XS3sw==")
    read = encryption_of().decrypt("messages", ("seq", "text"), [stored], *PLACE)
    assert list(read) == [[7, "Tokyo?"]]
    ((_, cell),) = encryption_of().encrypt("messages", ("seq", "text"), [tuple(row) for row in read], *PLACE)
    assert cell.startswith("\ue0012:k1:")


def test_each_tenant_has_a_key_of_its_own() -> None:
    """The place alone does not tell their cells apart: the same data, place and nonce are encrypted differently."""
    ring = KeyRing({"k1": FIRST})
    one, other = (ring.of(tenant).ciphers[ring.of(tenant).header] for tenant in ("acme", "other"))
    data = one.encrypt("Tokyo?", "a place")
    assert one.decrypt(data, "a place") == "Tokyo?"
    with pytest.raises(ValueError, match="not authentic"):
        other.decrypt(data, "a place")


def test_a_ring_remembers_the_derived_keys_of_a_bounded_number_of_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[str] = []

    def counted(secret: bytes, label: str, *names: str) -> bytes:
        derived.extend(names)
        return derive_key(secret, label, *names)

    monkeypatch.setattr(module, "derive_key", counted)
    monkeypatch.setattr(module, "_TENANTS", 3)
    ring = KeyRing({"k1": FIRST})
    for tenant in ("a", "b", "c", "a", "b", "c"):
        ring.of(tenant)
    assert derived == ["a", "b", "c"]
    for tenant in ("d", "a"):
        ring.of(tenant)
    assert derived == ["a", "b", "c", "d", "a"]


def test_a_cell_of_one_version_is_not_passed_off_as_the_other() -> None:
    made = encrypted(encryption_of())
    with pytest.raises(EncryptionError, check=because("not-authentic")):
        decrypted(encryption_of(), (7, "user", made[2].replace("\ue0012:", "\ue0011:"), None))


def test_only_words_are_encrypted_and_nothing_of_them_is_left() -> None:
    made = encrypted(encryption_of())
    assert made[:2] == (7, "user")
    assert all(cell.startswith("\ue0012:k1:") for cell in made[2:])
    assert "Tokyo" not in str(made)


def test_null_cells_stay_null() -> None:
    empty = (7, "user", None, None)
    assert (encrypted(encryption_of(), empty), decrypted(encryption_of(), empty)) == (empty, empty)


@settings(max_examples=200)
@given(st.text(alphabet=st.characters()))
def test_any_text_comes_back(text: str) -> None:
    row = (1, "user", encode_text(text), None)
    assert tuple(decrypted(encryption_of(), encrypted(encryption_of(), row))) == row


def test_the_same_words_are_never_encrypted_alike() -> None:
    encryption = encryption_of()
    rows = [(seq, "user", "yes", None) for seq in range(1, 5_001)]
    cells = [row[2] for row in encryption.encrypt("messages", COLUMNS, rows, *PLACE)]
    nonces = {cell.split(":")[2][:16] for cell in cells}  # 12 bytes of base64
    assert len(nonces) == len(cells)


@pytest.mark.parametrize("place", [("t2", 0), ("t1", 1), ("t1\x1f", 0)], ids=str)
def test_a_row_of_another_thread_or_branch_is_refused(place: tuple[Any, ...]) -> None:
    with pytest.raises(EncryptionError, check=because("not-authentic")) as caught:
        decrypted(encryption_of(), encrypted(encryption_of()), *place)
    assert (caught.value.key_id, caught.value.place) == ("k1", f"messages.text of {place[0]!r}, '{place[1]}', '7'")


def test_a_cell_of_another_row_column_or_tenant_is_refused() -> None:
    made = encrypted(encryption_of())
    for moved in ((8, *made[1:]), (7, "user", made[3], None)):
        with pytest.raises(EncryptionError, check=because("not-authentic")):
            decrypted(encryption_of(), moved)
    with pytest.raises(EncryptionError, check=because("not-authentic")):
        decrypted(encryption_of("other"), made)


def test_places_that_would_be_written_alike_are_told_apart() -> None:
    (made,) = encryption_of().encrypt("runs", ("input",), [("1",)], "a1:b")
    with pytest.raises(EncryptionError, check=because("not-authentic")):
        encryption_of("acme4:a1").decrypt("runs", ("input",), [made], "b")


def test_a_cell_of_another_table_is_refused() -> None:
    (made,) = encryption_of().encrypt("message_parts", ("seq", "idx", "text"), [(1, 0, "word")], *PLACE)
    with pytest.raises(EncryptionError, check=because("not-authentic"), match=r"outputs\.text of 't1', '0', '1', '0'"):
        encryption_of().decrypt("outputs", ("seq", "idx", "text"), [made], *PLACE)


def test_another_key_of_the_same_name_is_refused() -> None:
    with pytest.raises(EncryptionError, check=because("not-authentic")):
        decrypted(encryption_of(keys={"k1": SECOND}), encrypted(encryption_of()))


def test_a_header_that_names_another_key_is_refused() -> None:
    """An attacker changes the header, so that the cell looks as if `reencrypt` had changed it."""
    ring = {"k1": FIRST, "k2": FIRST}
    made = encrypted(encryption_of(keys=ring))
    with pytest.raises(EncryptionError, check=because("not-authentic")):
        decrypted(
            encryption_of(keys=ring), [cell.replace(":k1:", ":k2:") if isinstance(cell, str) else cell for cell in made]
        )


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    encryption = encryption_of()
    cell = encrypted(encryption)[2]
    start = len("\ue0012:k1:")
    damaged = [
        cell[:at] + chr(ord(cell[at]) ^ bit) + cell[at + 1 :] for at in range(start, len(cell)) for bit in (1, 4)
    ]
    damaged += [cell[:at] for at in range(start, len(cell))] + [f"{cell}A", f"{cell}AAAA", f"{cell}\n"]
    for one in damaged:
        with pytest.raises(EncryptionError, check=because("not-authentic")):
            decrypted(encryption, (7, "user", one, None))


def test_a_header_of_another_version_is_named() -> None:
    with pytest.raises(EncryptionError, match=r"messages\.text of .*: encrypted in version 3, which"):
        decrypted(encryption_of(), (7, "user", "\ue0013:k1:AAAA", None))


def test_plain_text_is_refused_without_plaintext() -> None:
    with pytest.raises(EncryptionError, check=because("not-encrypted")) as caught:
        decrypted(encryption_of(), ROW)
    assert caught.value.place == "messages.text of 't1', '0', '7'"
    assert decrypted(encryption_of(plaintext=True), ROW) == list(ROW)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(
        EncryptionError, check=because("no-key"), match="encrypted with the key 'k1', which is not among the keys"
    ) as caught:
        decrypted(encryption_of(keys={"k2": SECOND}), encrypted(encryption_of()))
    assert (caught.value.key_id, caught.value.place) == ("k1", "messages.text of 't1', '0', '7'")


def test_an_older_key_decrypts_and_the_current_one_encrypts() -> None:
    both = {"k2": SECOND, "k1": FIRST}
    assert tuple(decrypted(encryption_of(keys=both), encrypted(encryption_of()))) == ROW
    assert encrypted(encryption_of(keys=both))[2].startswith("\ue0012:k2:")


def test_a_tenant_without_keys_neither_encrypts_nor_decrypts() -> None:
    gone = CellEncryption("acme", lambda _: None)
    with pytest.raises(EncryptionError, check=because("no-key"), match="tenant 'acme' has no keys to encrypt with"):
        encrypted(gone)
    with pytest.raises(EncryptionError, check=because("no-key"), match="'k1', which is not among"):
        decrypted(gone, encrypted(encryption_of()))


def test_a_failing_key_store_is_an_encryption_error() -> None:
    def down(_: str) -> KeyRing:
        raise OSError("unreachable")

    with pytest.raises(EncryptionError, match="loading the keys of tenant 'acme' failed: ") as caught:
        encrypted(CellEncryption("acme", down))
    assert isinstance(caught.value.__cause__, OSError)


def test_a_keys_function_that_returns_no_ring_is_refused() -> None:
    keys: Any = {"acme": {"k1": FIRST}}.get
    with pytest.raises(InvalidArgument, match="keys must return a KeyRing or None, not dict"):
        encrypted(CellEncryption("acme", keys))


def test_the_encrypted_columns_exist_and_are_no_part_of_a_primary_key() -> None:
    for table, columns in ENCRYPTED.items():
        assert set(columns) <= {column.name for column in TABLES[table].c if not column.primary_key}


def test_threads_encrypt_with_one_ring_at_once() -> None:
    encryption, failures = encryption_of(), []

    def work(number: int) -> None:
        for seq in range(500):
            row = (seq, "user", f"{number} says {seq}" * 20, None)
            if tuple(decrypted(encryption, encrypted(encryption, row, "t", number), "t", number)) != row:
                failures.append(row)

    running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert failures == []
