"""The limits of a ledger. Those of one append are checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.errors import InvalidArgument

MAX_KEY_BYTES = 512
"""The size of an id in a key: three ids and a position must fit into PostgreSQL's index row of 2,704 bytes."""


MOST_VALUES = 30_000
"""Maximum number of values in a body of the server, in a message of an import, and in a text that a format reads as
JSON, keys of objects not counted.
"""
MOST_DIGITS = 64 * 1024
"""Maximum number of digits in such a body or text of all numbers that have more than 30."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of one append, and of answers at the same time. More raises LimitExceeded. `Limits(…)` raises
    InvalidArgument for a number below 1.
    """

    messages: int = 1_000
    """Maximum number of messages in one append."""
    bytes: int = 64 * 1024 * 1024
    """Maximum size of all text and JSON of one append, in bytes of UTF-8. It also limits a draft, and a value of
    `ledger.kv`.
    """
    user_answers: int = 50
    """Maximum number of answers of a user that have not ended, paused ones too. Calls at the same time do not
    see each other, so together they may exceed it.
    """
    tenant_answers: int = 10_000
    """The same of a tenant."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(name, f"must be an int of at least 1, not {value!r:.60}")
