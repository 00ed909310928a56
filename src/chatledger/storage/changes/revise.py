"""Revises a stored message: it gets other words, in its place.

Only words change: content, reasoning, name, metadata, arguments, and the residual of the message's own format. So no
rule that looks at the messages around it can break, no tip changes, and every branch that shares the message follows at
once. `revisions` keeps the message as it was, until it is redacted or erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, func, update

from chatledger.errors import InvalidArgument, MessageNotFound, RuleViolation
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, Revision, RulesLevel, ToolCall, Violation
from chatledger.models.base import copy_with
from chatledger.rules import arguments_not_json
from chatledger.storage.append.draft_rows import overwrite
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.changes.record import (
    has_changed,
    hold_changeable,
    load_revisions,
    note_active,
    record_change,
    settle,
    take_position,
)
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.path import find_message, find_path
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.messages import encode_all
from chatledger.storage.schema.tables import branches, messages

_WORDS = ("content", "reasoning", "name", "response_metadata", "custom_data", "format", "residual")
_STAYS = (
    *("role", "message_id", "thread_id", "branch", "seq", "run_id", "tool_call_id", "is_error", "created_at"),
    "state",
)


def revise_message(sql: WriteSql, window: Window, request: AppendRequest, message_id: str) -> ChatMessage:
    """Give the stored message the words of the one message of the request, and return it. Raises as
    `MessageRepository.revise`.
    """
    thread = hold_changeable(sql, window)
    stored = find_message(sql, window, message_id)
    if stored is None:
        raise MessageNotFound(window.thread_id, message_id)
    revised = _with_words_of(request.messages[0], stored)
    encoded, other = encode_all([revised, stored])
    if encoded == other:
        return stored
    branch, seq = stored.branch or 0, stored.seq or 0
    if settle(sql, window, [thread.branches[branch]], seq):
        thread = hold_changeable(sql, window)
    if stored.state == "partial":
        raise InvalidArgument("message_id", _ABANDONED)
    revised = _judged(revised, thread.rules or request.default_rules)
    held, now = thread.branches[branch], datetime.now(UTC)
    record_change(sql, window, "revised", (branch, held.path.last_seq + 1), [stored], now)
    overwrite(sql, window.tenant, revised)
    counted = {"revision": func.coalesce(messages.c.revision, 0) + 1, "digest": None}
    own = and_(_of_thread(messages, window), messages.c.branch == branch, messages.c.seq == seq)
    sql.execute(update(messages).where(own).values(**counted))
    take_position(sql, window, held, held.tip)
    others = [other.path.branch for other in thread.with_row(branch, seq) if other is not held]
    sharing = and_(_of_thread(branches, window), branches.c.branch.in_(others))
    sql.execute(update(branches).where(sharing).values(stamp=new_stamp()))  # so nobody writes on an earlier read
    note_active(sql, window, now)
    return revised


_ABANDONED = "is that of a message that its writer abandoned; end it with drafts.interrupt, then revise it"


def list_revisions(sql: ReadSql, window: Window, message_id: str, part: slice) -> list[Revision]:
    """Raises ThreadNotFound and MessageNotFound."""
    find_path(sql, window)
    revisions = load_revisions(sql, window, message_id, part)
    if not revisions and not has_changed(sql, window, message_id) and find_message(sql, window, message_id) is None:
        raise MessageNotFound(window.thread_id, message_id)
    return [Revision(**{name: getattr(change, name) for name in Revision.model_fields}) for change in revisions]


# --- The fields that stay ---------------------------------------------------------------------------------------------


def _with_words_of(message: ChatMessage, stored: ChatMessage) -> ChatMessage:
    """The stored message with the words of the given one. Raises InvalidArgument if another field differs."""
    for name in _STAYS:
        value = getattr(message, name)
        unsaid = name not in message.model_fields_set if name == "state" else value is None
        if not unsaid and value != getattr(stored, name):
            raise InvalidArgument(f"message.{name}", _ANOTHER)
    words: dict[str, Any] = {name: getattr(message, name) for name in _WORDS}
    return copy_with(stored, {**words, "tool_calls": _with_arguments_of(message.tool_calls, stored.tool_calls or ())})


_ANOTHER = "differs from the stored message, and cannot be revised; pass the stored value"


def _with_arguments_of(sent: Sequence[ToolCall] | None, stored: Sequence[ToolCall]) -> list[ToolCall] | None:
    if len(sent or ()) != len(stored):
        counts = f"has {len(sent or ())} calls, and the stored message has {len(stored)}"
        raise InvalidArgument("message.tool_calls", f"{counts}; only the arguments of calls can be revised")
    for idx, (call, own) in enumerate(zip(sent or (), stored, strict=True)):
        for name in ("id", "name"):
            if getattr(call, name) not in (None, getattr(own, name)):
                raise InvalidArgument(f"message.tool_calls[{idx}].{name}", _ANOTHER)
    if sent is None:
        return None
    return [call.model_copy(update={"id": own.id}) for call, own in zip(sent, stored, strict=True)]


def _judged(message: ChatMessage, level: RulesLevel) -> ChatMessage:
    """The message with its violations. Of the rules for a message alone, words can only break that arguments are JSON.
    The violations of its place stay, because nothing around it changes. Raises RuleViolation.
    """
    not_json = arguments_not_json(message)
    if not_json and level == "ordered":
        place = f"seq {message.seq} of branch {message.branch}"
        raise RuleViolation("R13", message.seq or 0, not_json[0].detail, where=place)
    of_place: list[Violation] = [violation for violation in message.violations if violation.rule not in ("R9", "R11")]
    return copy_with(message, {"violations": [*of_place, *not_json]})


def _of_thread(table: Any, window: Window) -> Any:
    return and_(table.c.tenant_id == window.tenant.name, table.c.thread_id == window.thread_id)
