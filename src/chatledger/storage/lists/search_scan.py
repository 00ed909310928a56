"""A search while it runs: what is looked for, how far it has come, and the pieces of threads that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from zlib import crc32

from chatledger.errors import ChatLedgerError
from chatledger.models import Hit
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import Segment
from chatledger.storage.lists.search_text import Query
from chatledger.storage.rows.decode_messages import is_damage
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import encode_text


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is looked for, and where. With `threads`, each thread is one hit at most, and its title counts."""

    tenant: Tenant
    query: Query
    limit: int
    thread_id: str | None = None
    roles: frozenset[str] | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    threads: bool = False
    most_messages: int = 20_000
    most_work: int = 16 * 1024 * 1024
    """In bytes that are compared, or as many as would take that long. One message is looked at in any case."""

    @property
    def name(self) -> str:
        """Stands in each cursor, because a place means nothing in another search."""
        roles = None if self.roles is None else sorted(self.roles)
        asked = (self.query.folded, self.tenant.user_id, self.thread_id, roles, self.kind, self.since, self.until)
        return f"{'threads' if self.threads else 'messages'} {crc32(repr(asked).encode('utf-8', 'replace')):08x}"


class SearchedTo(NamedTuple):
    """Everything before it has been searched: newer threads, and the messages of this thread from `seq` on."""

    active_at: datetime
    thread_id: str
    seq: int


@dataclass(slots=True)
class SearchedThread:
    """A thread that the search looks through."""

    thread_id: str
    title: str | None
    active_at: datetime
    created_at: datetime
    segments: Sequence[Segment]
    last_seq: int


class SearchPiece(NamedTuple):
    """Positions of one thread that a batch reads; None for its title."""

    thread: SearchedThread
    segment: Segment | None

    @property
    def size(self) -> int:
        return 1 if self.segment is None else self.segment.last - self.segment.first + 1

    @property
    def place(self) -> tuple[Any, ...]:
        return (encode_text(self.thread.thread_id), *(self.segment or ()))

    @property
    def newer(self) -> SearchPiece:
        assert self.segment is not None
        return self._replace(segment=self.segment._replace(first=self.segment.first + self.size // 2))

    @property
    def older(self) -> SearchPiece:
        assert self.segment is not None
        return self._replace(segment=self.segment._replace(last=self.segment.first + self.size // 2 - 1))


@dataclass(slots=True)
class Scan:
    """A page while it is made."""

    sql: ReadSql
    request: SearchRequest
    before: int
    """The work of the query for other pages."""
    hits: list[Hit] = field(default_factory=list)
    damaged: list[Any] = field(default_factory=list)
    hit_threads: set[str] = field(default_factory=set)
    messages: int = 0
    work: int = 0
    """Besides that of the query, which compares."""
    stopped: SearchedTo | None = None
    """Where the work was too much, within a batch."""

    @property
    def is_over(self) -> bool:
        return self.messages >= self.request.most_messages or self.stopped is not None

    def note(self, error: ChatLedgerError) -> None:
        if not is_damage(error):
            raise error
        self.damaged.append(error)
