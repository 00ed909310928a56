"""The limits of one append. They are checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.errors import InvalidArgument

MAX_KEY_BYTES = 512
"""The size of an id in a key: three ids and a position must fit into PostgreSQL's index row of 2,704 bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`messages` and `bytes` (of text and JSON, as UTF-8) of one append."""

    messages: int = 1_000
    bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("messages", "bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(name, f"must be an int of at least 1, not {value!r:.60}")
