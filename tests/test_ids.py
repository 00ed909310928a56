"""Ids that are derived: the same parts give the same id on any machine and in any release."""

from __future__ import annotations

import hashlib
import uuid

from hypothesis import given
from hypothesis import strategies as st

from chatledger.ids import derived_id, deriving


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_derived_id_is_a_uuid_of_the_hash_of_its_parts(parts: list[str]) -> None:
    counted = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    expected = uuid.UUID(bytes=hashlib.sha256(counted).digest()[:16]).int
    expected = expected & ~(0xF << 76) | 8 << 76
    expected = expected & ~(0b11 << 62) | 0b10 << 62
    assert derived_id(*parts) == str(uuid.UUID(int=expected))


def test_many_ids_that_begin_alike_are_those_of_each_alone() -> None:
    derive = deriving("imported message", "t\ud800")
    assert [derive(str(n)) for n in range(3)] == [derived_id("imported message", "t\ud800", str(n)) for n in range(3)]
