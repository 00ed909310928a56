"""Import files that were cut, damaged or made to hurt: each is read to its end, and what is wrong is a FormatError."""

from __future__ import annotations

import io
import json
import random

import pytest

from chatledger import DecodeError
from chatledger.transfer.records import BadRecord, read_records
from tests.transfer.files import array, lines, talk

FILES = {
    "array": array({"id": 1, "messages": talk("ä", "b\n")}, {"id": 2, "messages": talk("c")}),
    "lines": lines({"id": 1, "messages": talk("ä", "b\n")}, {"id": 2, "messages": talk("c")}, talk("d")),
    "object": json.dumps({"messages": talk("ä \U0001f600", "b")}, indent=1, ensure_ascii=False).encode(),
}


def read(content: bytes) -> list[object]:
    """The values of the records that could be read."""
    values = []
    for record in read_records(io.BytesIO(content)):
        if isinstance(record, BadRecord):
            assert isinstance(record.error, DecodeError)
        else:
            values.append(record.value)
    return values


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_byte_gives_what_stood_before(name: str) -> None:
    content = FILES[name]
    whole = read(content)
    for length in range(len(content)):
        found = read(content[:length])
        assert found == whole[: len(found)]


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_any_bit_flipped_is_read_to_its_end(name: str) -> None:
    content = FILES[name]
    for place in range(len(content)):
        for bit in range(8):
            read(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])


def test_bytes_of_chance_are_read_to_their_end() -> None:
    chance = random.Random(6)
    for _ in range(300):
        read(bytes(chance.choices(b'[]{}",:\\ \n\xc3\xa4\xff0e-ntu', k=60)))


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"messages":[' + b"9" * 100_000 + b"]}",
        b'"' + b"\\" * 200_001,
        b"[" + b"{}," * 50_000 + b"{}]",
    ],
)
def test_a_bomb_is_read_to_its_end(bomb: bytes) -> None:
    read(bomb)
