"""Ids that the library makes: UUIDv7 where an id is new, a UUIDv8 of a hash where it must come out the same again."""

from __future__ import annotations

import hashlib
import os
import time


def new_id() -> str:
    """A UUIDv7 (RFC 9562): milliseconds, then 74 random bits. Sortable by time; never used as an order."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """So many of them: an append makes several, and asks the system for random bits once."""
    moment = f"{time.time_ns() // 1_000_000 & _48_BITS:012x}"
    random = os.urandom(_RANDOM * count).hex()
    return [_version_7(moment, random[at : at + 2 * _RANDOM]) for at in range(0, len(random), 2 * _RANDOM)]


_48_BITS = 2**48 - 1
_RANDOM = 10
"""Bytes: a few bits more than are used."""
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def _version_7(moment: str, random: str) -> str:
    variant = _VARIANT[random[3]]
    return f"{moment[:8]}-{moment[8:]}-7{random[:3]}-{variant}{random[4:7]}-{random[7:19]}"


def derived_id(*parts: str) -> str:
    """A UUIDv8 (RFC 9562) of the SHA-256 of the parts: the same parts give the same id on any machine, for ever."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return _spelled(_with_version(int.from_bytes(digest.digest()[:16], "big"), 8))


def new_stamp() -> int:
    """63 random bits: what guards a branch row against a write that was judged on an older state of it."""
    return int.from_bytes(os.urandom(8), "big") >> 1


def _spelled(value: int) -> str:
    """As uuid.UUID would write it."""
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _with_version(value: int, version: int) -> int:
    value = value & ~(0xF << 76) | version << 76
    return value & ~(0b11 << 62) | 0b10 << 62
