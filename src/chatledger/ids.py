"""Creates ids: a UUIDv7 for a new id, and a UUIDv8 of a hash for an id that can be derived again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable


def new_id() -> str:
    """A UUIDv7 (RFC 9562): milliseconds, then 74 random bits. They sort by time, but nothing relies on it."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """Several new ids, made with one request for random bits to the operating system."""
    moment = f"{time.time_ns() // 1_000_000 & _48_BITS:012x}"
    first, random = f"{moment[:8]}-{moment[8:]}-7", os.urandom(_RANDOM * count).hex()
    return [_version_7(first, random[at : at + 2 * _RANDOM]) for at in range(0, len(random), 2 * _RANDOM)]


_48_BITS = 2**48 - 1
_RANDOM = 10
"""Random bytes per id. A few of their bits stay unused."""
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def _version_7(first: str, random: str) -> str:
    return f"{first}{random[:3]}-{_VARIANT[random[3]]}{random[4:7]}-{random[7:19]}"


def derived_id(*parts: str) -> str:
    """A UUIDv8 (RFC 9562) of the SHA-256 of the parts: the same parts always give the same id, on any machine."""
    return deriving(*parts[:-1])(parts[-1])


def deriving(*parts: str) -> Callable[[str], str]:
    """A function that takes a last part and returns the `derived_id` of all parts. For many ids: it hashes the other
    parts once.
    """
    begun = hashlib.sha256(b"".join(map(_counted, parts)))

    def derive(last: str) -> str:
        digest = begun.copy()
        digest.update(_counted(last))
        return _version_8(digest.hexdigest())

    return derive


def _counted(part: str) -> bytes:
    encoded = part.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "big") + encoded


def _version_8(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:32]}"


def erasure_digest(kind: str, id_: str) -> str:
    """The digest of the id of an erased thread, user or tenant. Tombstones of earlier releases hold it; a newer one
    holds what the tenant's secret makes of it.
    """
    return derived_id("erased", kind, id_)


def new_stamp() -> int:
    """63 random bits. Each write of a branch's row stores a new stamp, and a write that was judged on an older stamp is
    refused.
    """
    return int.from_bytes(os.urandom(8), "big") >> 1
