"""Redacts a message: removes its words, but keeps its position and its links.

A redaction leaves its record on the message itself, as a violation of R11; a row of `revisions` would keep the words.
The thread stays whole: the role, seq, ids, the call that a result answers, times and the run stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, delete, update

from chatledger.errors import MessageNotFound
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, Part, TextPart, ToolCall, Violation, is_redacted
from chatledger.models.base import copy_with
from chatledger.storage.append.draft_rows import overwrite
from chatledger.storage.append.gone import new_digests, with_digests
from chatledger.storage.changes.record import find_given_up, load_bodies, load_changes, replace_body
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.path import cut, find_message, find_path, load_range
from chatledger.storage.history.places import At, Place
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.locks import hold_thread
from chatledger.storage.rows.changes import Change
from chatledger.storage.rows.encryption import Tenant, encrypt_values
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.tables import branches, messages, outputs, run_decisions

REDACTED = "[redacted]"
"""The text that replaces words."""


async def erase_at(
    scope: Scope,
    thread_id: str,
    at: At,
    *,
    branch: int | None = None,
    known_id: str | None = None,
    dry_run: bool = False,
) -> ChatMessage:
    """Raises as `messages.erase`, and BranchNotFound. `known_id` is the id that the message must have, if it is given:
    the thread may be another one of the same name by now.
    """
    window = Window.of(scope.tenant, thread_id, branch)
    if dry_run:
        return await scope.read(lambda sql: find_redacted(sql, window, at, known_id), snapshot=True)
    known: dict[str, str] = {}
    return await with_digests(known, lambda: scope.write(lambda sql: redact_message(sql, window, at, known_id, known)))


def redact_message(sql: WriteSql, window: Window, at: At, known_id: str | None, known: dict[str, str]) -> ChatMessage:
    """Redact the message and return it. `known` are the slow digests that were computed for it. Raises ThreadNotFound,
    BranchNotFound and MessageNotFound, and SlowDigests before anything is written.
    """
    hold_thread(sql, window.tenant, window.thread_id)
    message, stored = _find(sql, window, at, known_id)
    redacted = without_words(message, datetime.now(UTC))
    own = [message] if stored and redacted is not message else []  # a redacted one has its digest
    changes = load_bodies(sql, window, message.branch or 0, message.seq or 0)
    earlier = [change.message for change in changes if change.message is not None and change.digest is None]
    forms = [(form.branch or 0, form.seq or 0, encode_message(form)) for form in (*own, *earlier)]
    digests = iter(new_digests(sql, window.tenant, window.thread, forms, known))
    for form in own:
        _keep_digest(sql, window, form, next(digests))
    if stored:
        _store(sql, window.tenant, window.thread_id, redacted)
    _forget_bodies(sql, window, changes, redacted, digests)
    sql.execute(delete(run_decisions).where(_at(run_decisions, window.tenant, window.thread_id, message)))
    return redacted


def find_redacted(sql: ReadSql, window: Window, at: At, known_id: str | None) -> ChatMessage:
    """The message as redacting it leaves it. Raises ThreadNotFound, BranchNotFound and MessageNotFound."""
    return without_words(_find(sql, window, at, known_id)[0], datetime.now(UTC))


def _find(sql: ReadSql, window: Window, at: At, known_id: str | None) -> tuple[ChatMessage, bool]:
    """The message, and whether it is stored. If it was removed, its last change holds it."""
    if isinstance(at, str):
        return _find_by_id(sql, window, at)
    if isinstance(at, Place):
        window, at = replace(window, branch=at.branch), at.seq
    message, stored = _find_at(sql, window, at or 0)
    if known_id not in (None, message.message_id):
        raise MessageNotFound(window.thread_id, known_id, seq=at)
    return message, stored


def _find_by_id(sql: ReadSql, window: Window, message_id: str) -> tuple[ChatMessage, bool]:
    find_path(sql, window)
    message = find_message(sql, window, message_id)
    if message is not None:
        return message, True
    removed = [change.message for change in load_changes(sql, window, message_id) if change.message is not None]
    if not removed:
        raise MessageNotFound(window.thread_id, message_id)
    return removed[-1], False


def _find_at(sql: ReadSql, window: Window, seq: int) -> tuple[ChatMessage, bool]:
    """A message that left this branch is stored if another branch still shares it."""
    path = find_path(sql, window)
    stores = [segment.branch for segment in cut(path.segments, seq, min(seq, path.last_seq))]
    if not stores and 0 < seq <= path.last_seq:
        stores = find_given_up(sql, window, path.branch, seq)
    for branch in stores:
        stored = load_range(sql, window.tenant, window.thread, branch, seq, seq)
        if stored:
            return stored[0], True
        removed = [change.message for change in load_bodies(sql, window, branch, seq) if change.message is not None]
        if removed:
            return removed[-1], False
    raise MessageNotFound(window.thread_id, seq=seq)


def without_words(message: ChatMessage, now: datetime) -> ChatMessage:
    """The message without its words. Redacting it again changes nothing."""
    if is_redacted(message):
        return message
    record = Violation(rule="R11", detail=f"redacted {now.isoformat(timespec='seconds')}")
    return copy_with(
        message,
        {
            "content": _wordless(message.content),
            "reasoning": None,
            "name": message.name if message.role == "tool" else None,  # a function's name, not a person's
            "tool_calls": None if message.tool_calls is None else [_wordless_call(call) for call in message.tool_calls],
            "response_metadata": None,
            "custom_data": None,
            "format": None,
            "residual": None,
            "violations": [
                *(Violation(rule=violation.rule, detail=REDACTED) for violation in message.violations),
                record,
            ],
        },
    )


def _wordless(content: str | list[Part] | None) -> str | list[Part] | None:
    """A placeholder of the same form. It is not empty, because a provider may refuse a thread with an empty message."""
    if content is None or isinstance(content, str):
        return content and REDACTED
    return [TextPart(text=REDACTED)] if content else []


def _wordless_call(call: ToolCall) -> ToolCall:
    return ToolCall(id=call.id, name=call.name, arguments=None if call.arguments is None else "{}")


def _store(sql: WriteSql, tenant: Tenant, thread_id: str, message: ChatMessage) -> None:
    overwrite(sql, tenant, message)
    sql.execute(delete(outputs).where(_at(outputs, tenant, thread_id, message)))
    of_thread = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
    sql.execute(update(branches).where(of_thread).values(stamp=new_stamp()))  # so nobody writes on an earlier read


def _keep_digest(sql: WriteSql, window: Window, message: ChatMessage, digest: str) -> None:
    """Keep a digest of the stored message, so that a late repeat of the append is known and stores nothing."""
    place = {"thread_id": window.thread_id, "branch": message.branch, "seq": message.seq}
    values = encrypt_values(window.tenant, messages, {"digest": digest}, **place)
    sql.execute(update(messages).where(_at(messages, window.tenant, window.thread_id, message)).values(**values))


def _forget_bodies(
    sql: WriteSql, window: Window, changes: Sequence[Change], redacted: ChatMessage, digests: Iterator[str]
) -> None:
    """Remove the earlier forms of the message from its changes. The digest of each stays, the next one of `digests`
    where it has none. If a change removed the message, the redacted one stays too: a repeat by its key returns it.
    """
    for change in changes:
        if change.message is not None:
            left = None if change.kind == "revised" else redacted
            digest = next(digests) if change.digest is None else change.digest
            replace_body(sql, window, replace(change, message=left, digest=digest))


def _at(table: Any, tenant: Tenant, thread_id: str, message: ChatMessage) -> Any:
    place = {"tenant_id": tenant.name, "thread_id": thread_id, "branch": message.branch, "seq": message.seq}
    return and_(*(table.c[name] == value for name, value in place.items()))
