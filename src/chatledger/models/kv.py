"""A value that an application keeps beside the messages."""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.arguments import INT_OR_NONE, require
from chatledger.errors import InvalidArgument
from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json, JsonValue


@dataclass(frozen=True, slots=True)
class Put:
    """A value that is written together with an append, if the stored one has the version `expected`."""

    value: JsonValue
    """The value: any JSON, null included."""
    expected: int | None = None
    """The version that the stored value must have, 0 for no value; None for any."""

    def __post_init__(self) -> None:
        require(INT_OR_NONE, expected=self.expected)
        if self.expected is not None:
            require_version("expected", self.expected)


def require_version(argument: str, version: int) -> None:
    if not 0 <= version < 2**63:
        raise InvalidArgument(argument, "must be the version of the stored value, or 0 if the key must have no value")


class KvValue(Model):
    """A JSON value under a key, in one scope of `ledger.kv`."""

    key: Text
    """The key, of 1 to 512 bytes."""
    value: Json
    """The value: any JSON, null included."""
    version: int
    """The version to pass as `expected=`. It grows by 1 with each write. The first version is the time of the first
    write in microseconds since 1970, so a value that was deleted and put again has a version that no reader of the old
    one holds. It is below 2**53, so every JSON reader keeps it exact.
    """
    updated_at: UtcDatetime
    """The time of the last write in UTC."""
