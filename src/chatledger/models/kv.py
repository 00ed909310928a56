"""A value that an application keeps beside the messages."""

from __future__ import annotations

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json


class KvValue(Model):
    """A JSON value under a key.

    `version` grows by 1 with each write of the value. The first version is the time of the first write, in microseconds
    since 1970. So a value that is deleted and put again has no version that a reader of the old one may still hold. A
    version is below 2**53, so every JSON reader keeps it exact.
    """

    key: Text
    value: Json
    version: int
    updated_at: UtcDatetime
