"""Changes of stored messages: each takes the next position of its branch and leaves a record in `revisions`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, insert, select

from chatledger.models import ChatMessage
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.window import Window
from chatledger.storage.rows.changes import Change, ChangeKind, change_values, to_change
from chatledger.storage.rows.encryption import decrypt_values
from chatledger.storage.schema.tables import revisions


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
    """Record that the change at `place`, its branch and the position that it took, changed these stored messages.
    Without `with_bodies`, another row has what they were.
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
        )
        for idx, message in enumerate(changed)
    ]
    sql.execute(insert(revisions), [change_values(window.tenant, window.thread_id, change) for change in changes])


def load_changes(sql: Sql, window: Window, message_id: str) -> list[Change]:
    """The changes of the messages that have, or had, this id, in the order of their times. Raises DamagedCell and
    EncryptionError.
    """
    of_thread = (revisions.c.tenant_id == window.tenant.name, revisions.c.thread_id == window.thread_id)
    own = and_(*of_thread, revisions.c.message_id == message_id)
    in_order = (revisions.c.created_at, revisions.c.branch, revisions.c.seq, revisions.c.idx)
    rows = sql.execute(select(revisions).where(own).order_by(*in_order)).mappings()
    return [to_change(window.tenant, decrypt_values(window.tenant, revisions, dict(row))) for row in rows]
