"""Goes on with a live draft by its token, in any process. The one that held it before writes no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from chatledger.errors import DraftLost
from chatledger.models import ChatMessage
from chatledger.rules import Lease
from chatledger.storage.append.draft_rows import HeldDraft, PartialKey, find_held
from chatledger.storage.append.preflight import preflight
from chatledger.storage.append.request import LEASE, AppendRequest
from chatledger.storage.append.takeover import require_fence
from chatledger.storage.drafts.draft_write import DraftWrite
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.find import get_message
from chatledger.storage.rows.messages import EncodedMessage, encode_message
from chatledger.storage.schema.text import encode_key


class Attached(NamedTuple):
    """The stored message, the tip of its branch, and the seconds of the lease. A finished message has no tip."""

    message: ChatMessage
    held: HeldDraft | None
    lease: float


class FoundDraft(NamedTuple):
    """A draft that the token opens: its message, its row, the tip of its branch with its lease, and the request with
    the lease's seconds.
    """

    message: ChatMessage
    row: EncodedMessage
    tip: HeldDraft
    lease: Lease
    request: AppendRequest


def attach(sql: WriteSql, request: AppendRequest, message_id: str) -> Attached:
    """Make the request's writer the holder of the draft. Raises as `find_draft`."""
    draft = find_draft(sql, request, message_id)
    if isinstance(draft, ChatMessage):
        return Attached(draft, None, LEASE)
    tip, _, _ = DraftWrite(draft.request, draft.message, [draft.message]).write(sql, draft.tip, draft.row)
    return Attached(draft.message, tip, draft.request.lease)


def find_draft(sql: WriteSql, request: AppendRequest, message_id: str) -> FoundDraft | ChatMessage:
    """The draft, held until the transaction ends; its message if it is finished. The token is compared last, so that it
    gives nobody a thread. Raises ThreadNotFound, MessageNotFound, RunLost for the draft of an answer, and DraftLost.
    """
    window = Window.of(request.tenant, request.thread_id)
    stored = get_message(sql, window, message_id)
    branch, seq = stored.branch or 0, stored.seq or 0
    preflight(sql, replace(request, messages=(), rows=(), branch=branch), lock=True)
    stored = get_message(sql, window, message_id)  # as it is under the lock
    if stored.state != "partial":
        return stored
    row = encode_message(stored)
    require_fence(sql, replace(request, messages=(stored,), rows=(row,)))
    tip = find_held(sql, PartialKey(request.tenant, request.thread, branch, seq, encode_key(message_id, "message_id")))
    lease = None if tip is None else tip.tip.lease
    if tip is None or lease is None or lease.writer is None or request.draft is None:
        raise DraftLost(request.thread_id, branch, seq)
    if lease.writer.token != request.draft.token:
        raise DraftLost(request.thread_id, branch, seq)
    request = replace(request, lease=lease.seconds or LEASE, now=datetime.now(UTC))  # a draft that was left has none
    return FoundDraft(stored, row, tip, lease, request)
