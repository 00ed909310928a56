"""Pieces and ends of a draft from a client that only has its token: each is one transaction, and may be sent again.

No process holds such a draft between two of them. So only what the client sends renews its lease.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from chatledger.errors import DraftLost, LimitExceeded, MessageNotFound
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, Delta
from chatledger.models.deltas import Growing
from chatledger.rules import Lease, Writer
from chatledger.storage.append.request import AppendRequest, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drafts.attach import FoundDraft, find_draft
from chatledger.storage.drafts.draft import read_token
from chatledger.storage.drafts.draft_write import DraftWrite
from chatledger.storage.drafts.response import load_response, response_of, with_fields
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.messages import EncodedMessage, bytes_of, encode_message
from chatledger.storage.schema.text import to_microseconds

LONGEST_RENEWED = timedelta(minutes=10)
"""How long a draft that does not grow can be renewed."""


class Posted(NamedTuple):
    """The messages as they are stored now, and how much is stored of the first. `refused`: nothing was written, since
    the offset is not that, or since the draft was renewed too long without a new piece.
    """

    messages: Sequence[ChatMessage]
    offset: int
    refused: Literal["offset", "silent"] | None = None


class Asked(NamedTuple):
    """The token, as the writer of a request, and the most bytes of a message."""

    request: AppendRequest
    most: int

    @classmethod
    def by(cls, scope: Scope, thread_id: str, token: str) -> Asked:
        """Raises InvalidArgument for a text that is no token."""
        request = make_request(scope.terms, thread_id, [])
        return cls(replace(request, draft=Writer(read_token(token), new_stamp())), scope.limits.bytes)


@dataclass(frozen=True, slots=True)
class Post(ABC):
    """A request about the draft of a message."""

    asked: Asked
    message_id: str

    @abstractmethod
    def write(self, sql: WriteSql) -> Posted:
        """Raises as `find`, DraftLost, and LimitExceeded for a message that grows too large."""

    def find(self, sql: WriteSql) -> FoundDraft | ChatMessage:
        """Raises as `find_draft`, and MessageNotFound for a message that no draft can have written."""
        draft = find_draft(sql, self.asked.request, self.message_id)
        message = draft if isinstance(draft, ChatMessage) else draft.message
        if message.role != "assistant":
            raise MessageNotFound(self.asked.request.thread_id, self.message_id)
        return draft

    def refuse_large(self, rows: Sequence[EncodedMessage]) -> None:
        if (size := bytes_of(rows)) > self.asked.most:
            raise LimitExceeded("bytes of a draft", size, self.asked.most)

    def lost(self, message: ChatMessage) -> DraftLost:
        return DraftLost(self.asked.request.thread_id, message.branch or 0, message.seq or 0)


@dataclass(frozen=True, slots=True)
class Pieces(Post):
    """Pieces, of which the first begins at that offset; none renews the lease."""

    pieces: Sequence[Delta]
    offset: int

    def write(self, sql: WriteSql) -> Posted:
        """DraftLost: a finished message lacks a piece. Also raises InvalidArgument and DecodeError for a piece that has
        no place.
        """
        draft = self.find(sql)
        message = draft if isinstance(draft, ChatMessage) else draft.message
        growing = Growing.after(message)
        stored = growing.length
        if self.offset > stored:
            return Posted([message], stored, "offset")
        growing.add_from(self.offset, self.pieces)
        grown = growing.on(message, message.state)
        if isinstance(draft, ChatMessage):
            if growing.length > stored:
                raise self.lost(message)
            return Posted([message], stored)
        row = encode_message(grown)
        self.refuse_large([row])
        now, grown_at = draft.lease.read_at, _grown_at(draft.lease)
        if row != draft.row:
            grown_at = to_microseconds(now)
        elif to_microseconds(now - LONGEST_RENEWED) > grown_at:
            return Posted([message], stored, "silent")
        request = replace(draft.request, draft=Writer(_token(self.asked.request), new_stamp(), grown_at))
        _, _, written = DraftWrite(request, message, [grown]).write(sql, draft.tip, draft.row)
        return Posted(written, growing.length)


@dataclass(frozen=True, slots=True)
class DraftEnd(Post):
    """The end of a draft, as it grew or, with `response`, as the provider's whole response has it. `offset` None ends
    it whatever is stored. `fields` are added to those of the message.
    """

    state: Literal["complete", "interrupted"]
    offset: int | None = None
    response: Sequence[ChatMessage] | None = None
    fields: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, sql: WriteSql) -> Posted:
        """DraftLost: the message was interrupted, and is to be complete. Also raises RuleViolation."""
        draft = self.find(sql)
        if isinstance(draft, ChatMessage):
            stored = load_response(sql, self.asked.request.tenant, draft)
            if self.state == "complete" and stored[-1].state == "interrupted":
                raise self.lost(draft)
            return Posted(stored, Growing.after(draft).length)
        growing = Growing.after(draft.message)
        if self.offset not in (None, growing.length):
            return Posted([draft.message], growing.length, "offset")
        own = draft.message
        whole = [growing.on(own, self.state)] if self.response is None else response_of(own, self.response)
        *complete, last = with_fields(whole, self.fields)
        messages = [*complete, last.model_copy(update={"state": self.state})]
        self.refuse_large(list(map(encode_message, messages)))
        request = replace(draft.request, draft=Writer(_token(self.asked.request), new_stamp()))
        _, _, written = DraftWrite(request, own, messages).write(sql, draft.tip, draft.row)
        return Posted(written, Growing.after(written[0]).length)


def _grown_at(lease: Lease) -> int:
    """When the draft last grew: by a process that held it, or before it was opened, at its last write at the latest."""
    writer = lease.writer
    return (writer and writer.grown_at) or to_microseconds(lease.written)


def _token(request: AppendRequest) -> int:
    assert request.draft is not None
    return request.draft.token
