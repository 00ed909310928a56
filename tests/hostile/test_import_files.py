"""Import files that were cut, damaged or made to hurt: each is read to its end, and what is wrong is a FormatError."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats import format_names
from chatledger.transfer.records import BadRecord, read_records
from tests.hostile.payloads import damaged_file
from tests.hostile.targets import plan_file
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
def test_a_file_cut_at_any_byte_gives_the_messages_before_the_cut(name: str) -> None:
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


@settings(suppress_health_check=list(HealthCheck))
@given(
    content=damaged_file(),
    name=st.sampled_from(["auto", *format_names()]),
    rules=st.sampled_from(["lenient", "strict"]),
)
def test_a_file_of_records_with_something_wrong_is_planned_to_its_end(content: bytes, name: str, rules: Any) -> None:
    plan_file(content, name, rules)


def test_a_file_with_nothing_wrong_is_planned() -> None:
    """That the target above does reach what it is about."""
    assert [plan_file(content, "auto", "lenient") for content in FILES.values()] == [2, 3, 1]
