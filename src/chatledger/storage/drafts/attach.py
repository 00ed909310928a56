"""Goes on with a live draft by its token, in any process. The one that held it before writes no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from chatledger.errors import DraftLost
from chatledger.models import ChatMessage
from chatledger.storage.append.draft_rows import HeldDraft, PartialKey, find_held
from chatledger.storage.append.preflight import preflight
from chatledger.storage.append.request import LEASE, AppendRequest
from chatledger.storage.append.takeover import require_fence
from chatledger.storage.drafts.draft_write import DraftWrite
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.find import get_message
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.text import encode_key


class Attached(NamedTuple):
    """The stored message, the tip of its branch, and the seconds of the lease. A finished message has no tip."""

    message: ChatMessage
    held: HeldDraft | None
    lease: float


def attach(sql: WriteSql, request: AppendRequest, message_id: str) -> Attached:
    """Make the request's writer the holder of the draft, in a transaction. The token is compared last, so that it gives
    nobody a thread. Raises ThreadNotFound, MessageNotFound, RunLost for the draft of an answer, and DraftLost.
    """
    window = Window.of(request.tenant, request.thread_id)
    stored = get_message(sql, window, message_id)
    branch, seq = stored.branch or 0, stored.seq or 0
    preflight(sql, replace(request, messages=(), rows=(), branch=branch), lock=True)
    stored = get_message(sql, window, message_id)  # as it is under the lock
    if stored.state != "partial":
        return Attached(stored, None, LEASE)
    row = encode_message(stored)
    require_fence(sql, replace(request, messages=(stored,), rows=(row,)))
    held = find_held(sql, PartialKey(request.tenant, request.thread, branch, seq, encode_key(message_id, "message_id")))
    lease = None if held is None else held.tip.lease
    if lease is None or lease.writer is None or request.draft is None or lease.writer.token != request.draft.token:
        raise DraftLost(request.thread_id, branch, seq)
    request = replace(request, lease=lease.seconds or LEASE, now=datetime.now(UTC))  # a draft that was left has none
    held, _, _ = DraftWrite(request, stored, [stored]).write(sql, held, row)
    return Attached(stored, held, request.lease)
