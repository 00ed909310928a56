"""The digest of a stored form of a message, which stays when a redaction removes its words.

It tells whether a repeated append brings the same words again. Words can be guessed, so the hash is a slow one, and the
message's place is its salt. One digest takes about 50 ms and 16 MB.
"""

from __future__ import annotations

import hashlib

from chatledger.models.json import dumps
from chatledger.storage.rows.derive import netstring
from chatledger.storage.rows.messages import CALL_COLUMNS, GIVEN_COLUMNS, PART_COLUMNS, EncodedMessage

_VERSION = "scrypt-14-8-1"
"""The hash and its costs. Other costs get another version, because digests of this one stay stored."""


def digest(tenant: str, thread: str, branch: int, seq: int, form: EncodedMessage) -> str:
    """The digest of the form that stood at this place; `tenant` and `thread` are keys as stored.

    A column without a value does not count, so a column that a later release adds changes no digest.
    """
    tables = ((GIVEN_COLUMNS, (form.message,)), (PART_COLUMNS[1:], form.parts), (CALL_COLUMNS[1:], form.calls))
    cells = [
        [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]
        for columns, rows in tables
    ]
    salt = "".join(map(netstring, (tenant, thread, branch, seq)))
    hashed = hashlib.scrypt(dumps(cells).encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=32)
    return f"{_VERSION}:{hashed.hex()}"
