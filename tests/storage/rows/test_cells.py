"""The seal by itself: what it makes opens with the same key at the same place, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import EncryptionError, InvalidArgument, KeyRing, KeyUnavailable, NotAuthentic, NotEncrypted
from chatledger.storage.rows.encryption import ENCRYPTED, TABLES, Encryption
from chatledger.storage.schema.text import encode_text

COLUMNS = ("seq", "role", "text", "residual")
ROW = (7, "user", "Tokyo?", '{"a":1}')
PLACE = ("t1", 0)
FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))


def seal_of(tenant: str = "acme", *, plaintext: bool = False, keys: dict[str, bytes] | None = None) -> Encryption:
    """The first of the keys is the current one."""
    keys = keys or {"k1": FIRST}
    ring = KeyRing(keys, current=next(iter(keys)))
    return Encryption(tenant, lambda _: ring, plaintext=plaintext)


def sealed(seal: Encryption, row: tuple[Any, ...] = ROW, *place: Any) -> tuple[Any, ...]:
    (made,) = seal.encrypt("messages", COLUMNS, [row], *(place or PLACE))
    return made


def opened(seal: Encryption, row: Sequence[Any], *place: Any) -> Sequence[Any]:
    (made,) = seal.decrypt("messages", COLUMNS, [row], *(place or PLACE))
    return made


def test_what_was_sealed_opens() -> None:
    assert tuple(opened(seal_of(), sealed(seal_of()))) == ROW


def test_what_was_sealed_by_this_release_opens_in_every_later_one() -> None:
    stored = (7, "\ue0011:k1:AAECAwQFBgcICQoLE229YqrayflFFG/7Yd1jxIRL9XS3sw==")
    assert list(seal_of().decrypt("messages", ("seq", "text"), [stored], *PLACE)) == [[7, "Tokyo?"]]


def test_only_words_are_sealed_and_nothing_of_them_is_left() -> None:
    made = sealed(seal_of())
    assert made[:2] == (7, "user")
    assert all(cell.startswith("\ue0011:k1:") for cell in made[2:])
    assert "Tokyo" not in str(made)


def test_what_is_not_there_stays_so() -> None:
    empty = (7, "user", None, None)
    assert (sealed(seal_of(), empty), opened(seal_of(), empty)) == (empty, empty)


@settings(max_examples=200)
@given(st.text(alphabet=st.characters()))
def test_any_text_comes_back(text: str) -> None:
    row = (1, "user", encode_text(text), None)
    assert tuple(opened(seal_of(), sealed(seal_of(), row))) == row


def test_the_same_words_are_never_sealed_alike() -> None:
    seal = seal_of()
    rows = [(seq, "user", "yes", None) for seq in range(1, 5_001)]
    cells = [row[2] for row in seal.encrypt("messages", COLUMNS, rows, *PLACE)]
    nonces = {cell.split(":")[2][:16] for cell in cells}  # 12 bytes of base64
    assert len(nonces) == len(cells)


@pytest.mark.parametrize("place", [("t2", 0), ("t1", 1), ("t1\x1f", 0)], ids=str)
def test_a_row_of_another_thread_or_branch_does_not_open(place: tuple[Any, ...]) -> None:
    with pytest.raises(NotAuthentic) as caught:
        opened(seal_of(), sealed(seal_of()), *place)
    assert (caught.value.key_id, caught.value.place) == ("k1", f"messages.text of {place[0]!r}, '{place[1]}', '7'")


def test_a_cell_of_another_row_column_or_tenant_does_not_open() -> None:
    made = sealed(seal_of())
    for moved in ((8, *made[1:]), (7, "user", made[3], None)):
        with pytest.raises(NotAuthentic):
            opened(seal_of(), moved)
    with pytest.raises(NotAuthentic):
        opened(seal_of("other"), made)


def test_places_that_would_be_written_alike_are_told_apart() -> None:
    (made,) = seal_of().encrypt("runs", ("input",), [("1",)], "a1:b")
    with pytest.raises(NotAuthentic):
        seal_of("acme4:a1").decrypt("runs", ("input",), [made], "b")


def test_a_cell_of_another_table_does_not_open() -> None:
    (made,) = seal_of().encrypt("message_parts", ("seq", "idx", "text"), [(1, 0, "word")], *PLACE)
    with pytest.raises(NotAuthentic, match=r"outputs\.text of 't1', '0', '1', '0'"):
        seal_of().decrypt("outputs", ("seq", "idx", "text"), [made], *PLACE)


def test_another_key_of_the_same_name_does_not_open() -> None:
    with pytest.raises(NotAuthentic):
        opened(seal_of(keys={"k1": SECOND}), sealed(seal_of()))


def test_a_header_that_names_another_key_does_not_open() -> None:
    """As when somebody wants a cell to look as if it had been sealed anew."""
    ring = {"k1": FIRST, "k2": FIRST}
    made = sealed(seal_of(keys=ring))
    with pytest.raises(NotAuthentic):
        opened(seal_of(keys=ring), [cell.replace(":k1:", ":k2:") if isinstance(cell, str) else cell for cell in made])


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    seal = seal_of()
    cell = sealed(seal)[2]
    start = len("\ue0011:k1:")
    damaged = [
        cell[:at] + chr(ord(cell[at]) ^ bit) + cell[at + 1 :] for at in range(start, len(cell)) for bit in (1, 4)
    ]
    damaged += [cell[:at] for at in range(start, len(cell))] + [f"{cell}A", f"{cell}AAAA", f"{cell}\n"]
    for one in damaged:
        with pytest.raises(NotAuthentic):
            opened(seal, (7, "user", one, None))


def test_a_header_of_another_version_is_said_to_be_one() -> None:
    with pytest.raises(EncryptionError, match=r"messages\.text of .*: encrypted in version 2, which"):
        opened(seal_of(), (7, "user", "\ue0012:k1:AAAA", None))


def test_plain_text_is_refused_unless_it_is_asked_for() -> None:
    with pytest.raises(NotEncrypted) as caught:
        opened(seal_of(), ROW)
    assert caught.value.place == "messages.text of 't1', '0', '7'"
    assert opened(seal_of(plaintext=True), ROW) == list(ROW)


def test_a_key_that_is_missing_is_named() -> None:
    with pytest.raises(KeyUnavailable, match="encrypted with the key 'k1', which is not among the keys") as caught:
        opened(seal_of(keys={"k2": SECOND}), sealed(seal_of()))
    assert (caught.value.key_id, caught.value.place) == ("k1", "messages.text of 't1', '0', '7'")


def test_an_older_key_still_opens_and_the_current_one_seals() -> None:
    both = {"k2": SECOND, "k1": FIRST}
    assert tuple(opened(seal_of(keys=both), sealed(seal_of()))) == ROW
    assert sealed(seal_of(keys=both))[2].startswith("\ue0011:k2:")


def test_a_tenant_without_keys_neither_seals_nor_opens() -> None:
    gone = Encryption("acme", lambda _: None)
    with pytest.raises(KeyUnavailable, match="tenant 'acme' has no keys to encrypt with"):
        sealed(gone)
    with pytest.raises(KeyUnavailable, match="'k1', which is not among"):
        opened(gone, sealed(seal_of()))


def test_a_failing_key_store_is_an_error_of_ours() -> None:
    def down(_: str) -> KeyRing:
        raise OSError("unreachable")

    with pytest.raises(EncryptionError, match="keys of tenant 'acme' could not be had") as caught:
        sealed(Encryption("acme", down))
    assert isinstance(caught.value.__cause__, OSError)


def test_keys_that_give_something_else_are_refused_by_name() -> None:
    keys: Any = {"acme": {"k1": FIRST}}.get
    with pytest.raises(InvalidArgument, match="keys must give a KeyRing or None, not dict"):
        sealed(Encryption("acme", keys))


def test_the_sealed_columns_are_columns_and_no_part_of_a_key() -> None:
    for table, columns in ENCRYPTED.items():
        assert set(columns) <= {column.name for column in TABLES[table].c if not column.primary_key}


def test_threads_may_seal_with_one_ring_at_once() -> None:
    seal, failures = seal_of(), []

    def work(number: int) -> None:
        for seq in range(500):
            row = (seq, "user", f"{number} says {seq}" * 20, None)
            if tuple(opened(seal, sealed(seal, row, "t", number), "t", number)) != row:
                failures.append(row)

    running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert failures == []
