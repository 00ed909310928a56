"""A value that an application keeps beside the messages."""

from __future__ import annotations

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json


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
