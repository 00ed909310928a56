"""The digest of a stored form of a message, which stays when a redaction removes its words.

It tells whether a repeated append brings the same words again. Words can be guessed. So a tenant with keys computes an
HMAC under a secret that stands only in an encrypted cell. Without keys the hash is a slow one, and the message's place
is its salt. One slow digest takes about 50 ms and 16 MB.
"""

from __future__ import annotations

import hashlib

from chatledger.models.json import dumps
from chatledger.storage.rows.derive import netstring
from chatledger.storage.rows.messages import CALL_COLUMNS, GIVEN_COLUMNS, PART_COLUMNS, EncodedMessage
from chatledger.storage.rows.secrets import hmac_of

_SLOW = "scrypt-14-8-1"
"""The hash and its costs. Other costs get another version, because digests of this one stay stored."""
_KEYED = "hmac-sha256"


def is_keyed(digest: str) -> bool:
    return digest.startswith(_KEYED)


def keyed_digest(secret: str, tenant: str, thread: str, branch: int, seq: int, form: EncodedMessage) -> str:
    text = _place(tenant, thread, branch, seq) + _text(form)
    return f"{_KEYED}:{hmac_of(secret, text.encode())}"


def slow_digest(tenant: str, thread: str, branch: int, seq: int, form: EncodedMessage) -> str:
    salt = _place(tenant, thread, branch, seq).encode()
    return f"{_SLOW}:{hashlib.scrypt(_text(form).encode(), salt=salt, n=2**14, r=8, p=1, dklen=32).hex()}"


def _place(*parts: object) -> str:
    return "".join(map(netstring, parts))


def _text(form: EncodedMessage) -> str:
    """A column without a value does not count, so a column that a later release adds changes no digest."""
    tables = ((GIVEN_COLUMNS, (form.message,)), (PART_COLUMNS[1:], form.parts), (CALL_COLUMNS[1:], form.calls))
    return dumps(
        [
            [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]
            for columns, rows in tables
        ]
    )
