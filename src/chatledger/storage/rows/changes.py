"""The rows of `revisions`: what was changed after its commit, and how it was before.

The body of a row is the whole message in the form of its own columns, so that every value is read and checked like that
of a stored message. It is one cell, encrypted for its own place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chatledger.errors import ChatLedgerError, DamagedCell
from chatledger.models import ChangeKind, ChatMessage
from chatledger.models.json import JsonObject, loads
from chatledger.storage.rows.decode_messages import decode_messages
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, encrypt_values
from chatledger.storage.rows.messages import GIVEN_COLUMNS, MESSAGE_COLUMNS, encode_all
from chatledger.storage.schema.tables import revisions
from chatledger.storage.schema.text import UNREADABLE, decode_text, encode_json, to_microseconds


@dataclass(frozen=True, slots=True)
class Change:
    """A message that was changed by the change at (`branch`, `seq`), the position that the change took; `idx` counts
    the messages of one change. The message's own rows stood, or stand, at (`target_branch`, `target_seq`).

    `message` is the message as it was before. It is None if another row of the change has it, or if it was redacted;
    then `digest` is that of the words that the redaction removed.
    """

    branch: int
    seq: int
    idx: int
    kind: ChangeKind
    target_branch: int
    target_seq: int
    message_id: str | None
    message: ChatMessage | None
    created_at: datetime
    digest: str | None = None


def change_values(tenant: Tenant, thread_id: str, change: Change) -> dict[str, Any]:
    """The row as values of a Core statement, encrypted."""
    values = {
        "tenant_id": tenant.name,
        "thread_id": thread_id,
        "branch": change.branch,
        "seq": change.seq,
        "idx": change.idx,
        "kind": change.kind,
        "target_branch": change.target_branch,
        "target_seq": change.target_seq,
        "message_id": change.message_id,
        "body": None if change.message is None else write_body(change.message),
        "digest": change.digest,
        "created_at": change.created_at,
    }
    return encrypt_values(tenant, revisions, values)


def to_change(tenant: Tenant, row: Mapping[str, Any]) -> Change:
    """The change of a row of a Core statement. Raises DamagedCell and EncryptionError."""
    row = decrypt_values(tenant, revisions, row)
    for name in ("target_branch", "target_seq"):
        if type(row[name]) is not int:
            raise damaged_cell(revisions, name, row)
    if not isinstance(row["created_at"], datetime):
        raise damaged_cell(revisions, "created_at", row)
    message = None if row["body"] is None else _read_body(row)
    return Change(**{name: row[name] for name in _PLAIN}, message=message)


_PLAIN = ("branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "created_at", "digest")


# --- Bodies -----------------------------------------------------------------------------------------------------------


def write_body(message: ChatMessage) -> JsonObject:
    """The body of a stored message: the columns of its row that are not NULL, its parts and its calls."""
    (encoded,) = encode_all([message])
    placed = {
        "seq": message.seq,
        "state": message.state,
        "violations": encode_json([violation.model_dump() for violation in message.violations] or None),
        "created_at": None if message.created_at is None else to_microseconds(message.created_at),
    }
    cells = {**dict(zip(GIVEN_COLUMNS, encoded.message, strict=True)), **placed}
    return {
        "message": {name: value for name, value in cells.items() if value is not None},
        "parts": [list(part) for part in encoded.parts],
        "calls": [list(call) for call in encoded.calls],
    }


def _read_body(row: Mapping[str, Any]) -> ChatMessage:
    """Raises DamagedCell."""
    try:
        return read_body(row["body"], row["thread_id"], row["target_branch"])
    except (*UNREADABLE, ChatLedgerError):
        damaged: DamagedCell = damaged_cell(revisions, "body", row)
    raise damaged  # outside of the handler, because the error there may quote the cell


def decode_body(thread_id: str, row: Mapping[str, Any]) -> ChatMessage:
    """The message of the body of a row whose cells are as stored and decrypted. Raises DamagedCell, and EncryptionError
    for ciphertext.
    """
    text, key = decode_text(row["body"]), {**row, "thread_id": thread_id}
    try:
        return _read_body({**key, "body": loads(text)})
    except UNREADABLE:
        damaged = damaged_cell(revisions, "body", key)
    raise damaged  # outside of the handler, because the error there may quote the cell


def read_body(body: JsonObject, thread_id: str, branch: int) -> ChatMessage:
    """The message of a body, as it stood on `branch`. Raises an error of any kind for a text that is not a body."""
    cells, seq = body["message"], int(body["message"]["seq"])
    message = (branch, *(cells.get(name) for name in MESSAGE_COLUMNS))
    parts, calls = ([(branch, seq, *row) for row in body[name]] for name in ("parts", "calls"))
    (decoded,) = decode_messages(_PLAIN_TENANT, thread_id, [message], parts, calls)
    return decoded


_PLAIN_TENANT = Tenant("", "")
"""The cells inside a body are not encrypted one by one, because the body is encrypted as a whole."""
