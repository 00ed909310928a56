"""Changes of stored messages: each takes the next position of its branch and leaves a record in `revisions`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, insert, select, update

from chatledger.models import ChangeKind, ChatMessage, is_redacted
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.window import Window
from chatledger.storage.rows.changes import Change, change_values, to_change
from chatledger.storage.rows.encryption import decrypt_values
from chatledger.storage.schema.tables import messages, revisions


def record_change(
    sql: Sql,
    window: Window,
    kind: ChangeKind,
    place: tuple[int, int],
    changed: Sequence[ChatMessage],
    now: datetime,
    *,
    with_bodies: bool = True,
) -> None:
    """Record that the change at `place`, its branch and the position that it took, changed these stored messages. Their
    rows are still as they were. Without `with_bodies`, another row of `revisions` has what they were.
    """
    branch, seq = place
    changes = [
        Change(
            branch=branch,
            seq=seq,
            idx=idx,
            kind=kind,
            target_branch=message.branch or 0,
            target_seq=message.seq or 0,
            message_id=message.message_id,
            message=message if with_bodies else None,
            created_at=now,
            digest=_digest_of(sql, window, message) if with_bodies else None,
        )
        for idx, message in enumerate(changed)
    ]
    sql.execute(insert(revisions), [change_values(window.tenant, window.thread_id, change) for change in changes])


def _digest_of(sql: Sql, window: Window, message: ChatMessage) -> str | None:
    """The digest of the words that a redaction removed from a message."""
    if not is_redacted(message):
        return None
    place = {"thread_id": window.thread_id, "branch": message.branch, "seq": message.seq}
    own = and_(messages.c.tenant_id == window.tenant.name, *(messages.c[name] == at for name, at in place.items()))
    found = sql.execute(select(messages.c.digest).where(own)).mappings().one()
    kept: str | None = decrypt_values(window.tenant, messages, dict(found), **place)["digest"]
    return kept


def load_changes(sql: Sql, window: Window, message_id: str) -> list[Change]:
    """The changes of the messages that have, or had, this id, in the order of their times. Raises DamagedCell and
    EncryptionError.
    """
    return _load(sql, window, revisions.c.message_id == message_id)


def load_bodies(sql: Sql, window: Window, branch: int, seq: int) -> list[Change]:
    """The changes of the message whose rows stood, or stand, at this place, that hold what it was. Raises as
    `load_changes`.
    """
    of_message = and_(revisions.c.target_branch == branch, revisions.c.target_seq == seq)
    return _load(sql, window, and_(of_message, revisions.c.body.is_not(None)))


def _load(sql: Sql, window: Window, own: ColumnElement[bool]) -> list[Change]:
    of_thread = (revisions.c.tenant_id == window.tenant.name, revisions.c.thread_id == window.thread_id)
    in_order = (revisions.c.created_at, revisions.c.branch, revisions.c.seq, revisions.c.idx)
    rows = sql.execute(select(revisions).where(*of_thread, own).order_by(*in_order)).mappings()
    return [to_change(window.tenant, dict(row)) for row in rows]


def replace_body(sql: Sql, window: Window, change: Change) -> None:
    """Store the body and the digest of a stored change anew."""
    values = change_values(window.tenant, window.thread_id, change)
    own = and_(*(column == values.pop(column.name) for column in revisions.primary_key))
    sql.execute(update(revisions).where(own).values(body=values["body"], digest=values["digest"]))
