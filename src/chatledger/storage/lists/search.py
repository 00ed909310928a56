"""Looks for a text in messages and titles: reads the messages of the active branches, newest first, and compares them.

The database only finds the threads and reads rows by key. Python decrypts, decodes, folds and compares, so the result
is the same on both databases, and for an encrypted ledger. A page reads a bounded number of messages, and ends after a
bounded work, which is counted and not measured, so that a page always ends at the same message. The first batches are
small, because a common word is found in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

from sqlalchemy import RowMapping, and_, literal, select, tuple_

from chatledger.errors import ChatLedgerError, DamagedCell, InvalidCursor, ThreadNotFound
from chatledger.models import Hit, HitField, Page
from chatledger.models.json import dumps
from chatledger.models.limits import MOST_VALUES
from chatledger.storage.drivers.asyncpg import apart_from_loop, aside
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.history.path import Segment, cut, damaged_active_branch, read_lineage
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import read_cursor, write_cursor
from chatledger.storage.lists.pieces import fetch_pieces, fetch_some
from chatledger.storage.lists.search_text import OF_A_VALUE, Query, most_values, plain
from chatledger.storage.rows.decode_messages import is_damage
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values
from chatledger.storage.rows.owned import owned
from chatledger.storage.schema.columns import Key, Moment, can_decode
from chatledger.storage.schema.tables import branches, message_parts, messages, threads, tool_calls
from chatledger.storage.schema.text import UNREADABLE, decode_text, encode_text, to_microseconds

_THREADS = 200
"""The threads that one statement looks up."""
_FIRST, _LARGEST = 250, 4_000
"""The positions of the first batch, and the most of one batch."""
_OF_AN_ESCAPE = 4
"""The work of a stored character of a text with escapes, as that of so many characters that are compared."""
_TABLES = {"messages": messages, "message_parts": message_parts, "tool_calls": tool_calls}


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


class _SearchedTo(NamedTuple):
    """Everything before it has been searched: newer threads, and the messages of this thread from `seq` on."""

    active_at: datetime
    thread_id: str
    seq: int


@dataclass(slots=True)
class _SearchedThread:
    """A thread that the search looks through."""

    thread_id: str
    title: str | None
    active_at: datetime
    created_at: datetime
    segments: Sequence[Segment]
    last_seq: int


class _Piece(NamedTuple):
    """Positions of one thread that a batch reads; None for its title."""

    thread: _SearchedThread
    segment: Segment | None

    @property
    def size(self) -> int:
        return 1 if self.segment is None else self.segment.last - self.segment.first + 1

    @property
    def place(self) -> tuple[Any, ...]:
        return (encode_text(self.thread.thread_id), *(self.segment or ()))

    @property
    def newer(self) -> _Piece:
        assert self.segment is not None
        return self._replace(segment=self.segment._replace(first=self.segment.first + self.size // 2))

    @property
    def older(self) -> _Piece:
        assert self.segment is not None
        return self._replace(segment=self.segment._replace(last=self.segment.first + self.size // 2 - 1))


@dataclass(slots=True)
class _Scan:
    """A page while it is made."""

    sql: ReadSql
    request: SearchRequest
    before: int
    """The work of the query for other pages."""
    hits: list[Hit] = field(default_factory=list)
    damaged: list[Any] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    messages: int = 0
    work: int = 0
    """Besides that of the query, which compares."""
    stopped: _SearchedTo | None = None
    """Where the work was too much, within a batch."""

    @property
    def is_over(self) -> bool:
        return self.messages >= self.request.most_messages or self.stopped is not None

    def note(self, error: ChatLedgerError) -> None:
        if not is_damage(error):
            raise error
        self.damaged.append(error)


def search(sql: ReadSql, request: SearchRequest, cursor: str | None) -> Page[Hit]:
    """Raises InvalidCursor, and ThreadNotFound for `thread_id`."""
    scan = _Scan(sql, request, before=request.query.work)
    start = None if cursor is None else _read_place(request, cursor)
    pieces: Iterator[_Piece] = _pieces(scan, start)
    size = _FIRST
    while batch := _take(scan, pieces, size):
        rows = _Rows(scan, batch)
        batch, pieces = rows.batch, chain(rows.left, pieces)
        for hit, place in _found(scan, batch, rows):
            scan.hits.append(hit)
            if len(scan.hits) == request.limit:
                return Page(scan.hits, _write_place(request, place), scan.damaged)
        if scan.is_over:
            place = scan.stopped or _end(batch)
            return Page(scan.hits, _write_place(request, place), scan.damaged, complete=False)
        size = min(size * 4, _LARGEST)
    return Page(scan.hits, None, scan.damaged)


# --- Places -----------------------------------------------------------------------------------------------------------


def _read_place(request: SearchRequest, cursor: str) -> _SearchedTo:
    name, active_at, thread_id, seq = read_cursor(cursor, str, datetime, str, str)
    if name != request.name or not seq.isdecimal():
        raise InvalidCursor(cursor, "of another search: pass the same query and the same filters with it")
    return _SearchedTo(active_at, thread_id, int(seq))


def _write_place(request: SearchRequest, place: _SearchedTo) -> str:
    return write_cursor(request.name, place.active_at, place.thread_id, str(place.seq))


def _end(batch: Sequence[_Piece]) -> _SearchedTo:
    thread, segment = batch[-1]
    return _SearchedTo(thread.active_at, thread.thread_id, thread.last_seq + 1 if segment is None else segment.first)


# --- Threads ----------------------------------------------------------------------------------------------------------

_COLUMNS = tuple(threads.c[name] for name in ("thread_id", "title", "active_at", "created_at", "active_branch"))
_WITH_BRANCH = (
    select(*_COLUMNS, branches.c.lineage, branches.c.last_seq)
    .select_from(threads)
    .outerjoin(
        branches,
        and_(
            branches.c.tenant_id == threads.c.tenant_id,
            branches.c.thread_id == threads.c.thread_id,
            branches.c.branch == threads.c.active_branch,
        ),
    )
)


def _thread_batches(scan: _Scan, start: _SearchedTo | None) -> Iterator[list[_SearchedThread]]:
    """The threads, newest activity first, from the place on."""
    request = scan.request
    own = [owned(threads, request.tenant)]
    if request.kind is not None:
        own.append(threads.c.kind == request.kind)
    if request.thread_id is not None:
        rows = _read_threads(scan.sql, _WITH_BRANCH.where(*own, threads.c.thread_id == request.thread_id))
        if not rows and start is None:
            raise ThreadNotFound(request.thread_id)
        yield _readable(scan, rows)
        return
    if start is not None:  # the thread of the place, wherever it stands now
        yield _readable(scan, _read_threads(scan.sql, _WITH_BRANCH.where(*own, threads.c.thread_id == start.thread_id)))
    behind = None if start is None else (start.active_at, start.thread_id)
    while True:
        page = _WITH_BRANCH.where(*own)
        if behind is not None:
            place = (literal(behind[0], Moment()), literal(behind[1], Key()))
            page = page.where(tuple_(threads.c.active_at, threads.c.thread_id) < tuple_(*place))
        found = fetch_rows(scan.sql, page, _THREADS, "active_at", "thread_id", newest_first=True)
        yield _readable(scan, found.rows)
        if not found.more:
            return
        behind = (found.rows[-1]["active_at"], found.rows[-1]["thread_id"])


def _read_threads(sql: ReadSql, statement: Any) -> Sequence[RowMapping]:
    return sql.execute(statement).mappings().all()


def _readable(scan: _Scan, rows: Sequence[RowMapping | Mapping[str, Any]]) -> list[_SearchedThread]:
    found: list[_SearchedThread] = []
    for row in rows:
        try:
            found.append(_to_found(scan.request.tenant, row))
        except ChatLedgerError as error:
            scan.note(error)
    return found


def _to_found(tenant: Tenant, row: RowMapping | Mapping[str, Any]) -> _SearchedThread:
    thread_id, active = row["thread_id"], row["active_branch"]
    fields = decrypt_values(tenant, threads, {column.name: row[column.name] for column in _COLUMNS})
    if row["lineage"] is None:
        raise damaged_active_branch(thread_id)
    if type(row["last_seq"]) is not int:
        raise damaged_cell(branches, "last_seq", {"thread_id": thread_id, "branch": active})
    segments = cut(read_lineage(row["lineage"], thread_id, active), 1, row["last_seq"])
    return _SearchedThread(
        thread_id, fields["title"], fields["active_at"], fields["created_at"], segments, row["last_seq"]
    )


# --- Batches ----------------------------------------------------------------------------------------------------------


def _pieces(scan: _Scan, start: _SearchedTo | None) -> Iterator[_Piece]:
    """What is to be read, from the newest thread to the oldest, each from its end."""
    for thread in (one for batch in _thread_batches(scan, start) for one in batch):
        last = thread.last_seq
        if start is not None and thread.thread_id == start.thread_id:
            last = start.seq - 1  # the title comes first, so it has been looked at
        elif scan.request.threads:
            yield _Piece(thread, None)
        for segment in reversed(cut(thread.segments, 1, last)):
            for high in range(segment.last, segment.first - 1, -_FIRST):
                yield _Piece(thread, Segment(segment.branch, max(high - _FIRST + 1, segment.first), high))


def _take(scan: _Scan, pieces: Iterator[_Piece], size: int) -> list[_Piece]:
    batch: list[_Piece] = []
    for piece in pieces:
        if not (scan.request.threads and piece.thread.thread_id in scan.found):
            batch.append(piece)
            size -= piece.size
        if size <= 0:
            break
    return batch


def _found(scan: _Scan, batch: Sequence[_Piece], rows: _Rows) -> list[tuple[Hit, _SearchedTo]]:
    """The hits of a batch, as many as the page may have. The event loop never compares: what a short text costs
    depends on its letters.
    """
    most = scan.request.limit - len(scan.hits)
    return apart_from_loop(lambda: list(islice(_look(scan, batch, rows), most)))


def _look(scan: _Scan, batch: Sequence[_Piece], rows: _Rows) -> Iterator[tuple[Hit, _SearchedTo]]:
    """The hits of a batch, newest first, each with the place behind it. Ends where the page has worked enough."""
    request, query = scan.request, scan.request.query
    most = request.most_work + scan.before
    for thread, segment in batch:
        for row in (None,) if segment is None else rows.of(thread, segment):
            if request.threads and thread.thread_id in scan.found:
                break
            for kind, text in rows.texts(row) if row is not None else _title(thread):
                if query.is_in(text):
                    message = None if row is None else _Message(*row[: len(_Message._fields)])
                    try:
                        hit = _hit(request, thread, message, kind, text)
                    except UNREADABLE:
                        scan.note(_damaged(message))
                        break
                    scan.found.add(thread.thread_id)
                    yield hit
                    break
            if scan.work + query.work >= most:
                scan.stopped = _behind(thread, row)
                return


def _behind(thread: _SearchedThread, row: Row | None) -> _SearchedTo:
    return _SearchedTo(thread.active_at, thread.thread_id, thread.last_seq + 1 if row is None else row[2])


def _title(thread: _SearchedThread) -> Iterator[tuple[HitField, str]]:
    yield "title", thread.title or ""


def _damaged(row: _Message | None) -> DamagedCell:
    assert row is not None  # the cells of a thread have been decoded
    stored = {"message_id": row.message_id, "role": row.role, "created_at": row.created_at}
    place = {"thread_id": decode_text(row.thread_id), "branch": row.branch, "seq": row.seq}
    for name, cell in stored.items():
        if cell is not None and not can_decode(messages.c[name].type, cell):
            return damaged_cell(messages, name, place)
    raise AssertionError("a cell that cannot be decoded")


def _hit(
    request: SearchRequest, thread: _SearchedThread, row: _Message | None, kind: HitField, text: str
) -> tuple[Hit, _SearchedTo]:
    before, match, after = request.query.cut(text)
    words = {"field": kind, "before": before, "match": match, "after": after}
    place = {"thread_id": thread.thread_id, "title": thread.title}
    seq = 0 if row is None or request.threads else row.seq
    if row is None:
        hit = Hit(**place, **words, created_at=thread.created_at)
    else:
        ids = {"message_id": None if row.message_id is None else decode_text(row.message_id)}
        moment = {"created_at": Moment().decode(row.created_at)}
        hit = Hit(**place, **words, **ids, **moment, branch=row.branch, seq=row.seq, role=decode_text(row.role))
    return hit, _SearchedTo(thread.active_at, thread.thread_id, seq)


# --- Messages ---------------------------------------------------------------------------------------------------------


class _Message(NamedTuple):
    """The columns of a message's row. Rows are made into one for a hit only: it would cost more than the comparison."""

    thread_id: str
    branch: int
    seq: int
    message_id: str | None
    role: str
    text: str | None
    content_form: str | None
    call_count: int | None
    created_at: Any


_PART = ("thread_id", "branch", "seq", "idx", "channel", "kind", "text")
_CALL = ("thread_id", "branch", "seq", "idx", "name", "arguments")
_COLUMNS_OF = {"messages": _Message._fields, "message_parts": _PART, "tool_calls": _CALL}
_LONG_COLUMN = {"messages": "text", "message_parts": "text", "tool_calls": "arguments"}
_LONG_OF = {table: itemgetter(columns.index(_LONG_COLUMN[table])) for table, columns in _COLUMNS_OF.items()}


class _Rows:
    """The rows of a batch, as they are stored, but decrypted. Of a batch of many bytes, only the first part is read."""

    def __init__(self, scan: _Scan, batch: Sequence[_Piece]) -> None:
        self._scan = scan
        self.batch, self.left = list(batch), list[_Piece]()
        """The pieces that are read, and those of the given ones that are not."""
        found = {"messages": self._read("messages", _Message._fields)}
        if any(row[6] == "parts" for row in found["messages"]):
            found["message_parts"] = self._read("message_parts", _PART)
        if any(row[7] for row in found["messages"]):
            found["tool_calls"] = self._read("tool_calls", _CALL)
        if self.left:
            found = {table: self._inside(rows) for table, rows in found.items()}
        self._messages = self._by_key("messages", found, 2)
        self._parts, self._calls = self._by_key("message_parts", found, 3), self._by_key("tool_calls", found, 3)
        for rows in self._messages.values():
            rows.sort(key=itemgetter(2), reverse=True)
        scan.messages += len(found["messages"])

    def _by_key(self, table: str, found: dict[str, Sequence[Row]], length: int) -> dict[Row, list[Row]]:
        by_key: dict[Row, list[Row]] = defaultdict(list)
        rows = found.get(table, ())
        for row in aside(lambda: self._decrypted(table, _COLUMNS_OF[table], rows), map(_LONG_OF[table], rows)):
            by_key[tuple(row[:length])].append(row)
        return by_key

    def _read(self, table: str, columns: Sequence[str]) -> Sequence[Row]:
        """The rows of the batch, from which it drops the pieces that have too many bytes."""
        request, given = self._scan.request, dict[str, Any]()
        rest = self._filters(given) if table == "messages" else ""
        if table == "message_parts":
            rest = "WHERE r.channel = 'content' AND r.kind = 'text'"
        while True:
            places = [piece.place for piece in self.batch if piece.segment is not None]
            if not places:
                return ()
            sql, named = self._scan.sql, _LONG_COLUMN[table]
            rows, count = fetch_some(sql, request.tenant, table, columns, named, places, rest, given)
            if count == len(places):
                return rows
            if count == 0 and self._first.size == 1:  # one message, which is read in any case
                self._keep(1)
                return fetch_pieces(sql, request.tenant, table, columns, places[:1], rest, given)
            if count:
                self._keep(count)
                return rows
            self._halve()

    @property
    def _first(self) -> _Piece:
        return next(piece for piece in self.batch if piece.segment is not None)

    def _keep(self, count: int) -> None:
        """Leave all but the first pieces of messages."""
        ends = [at for at, piece in enumerate(self.batch) if piece.segment is not None][count:]
        if ends:
            self.batch, self.left = self.batch[: ends[0]], self.batch[ends[0] :] + self.left

    def _halve(self) -> None:
        """Leave the older half of the first piece of messages, and what follows it."""
        first = self._first
        at = self.batch.index(first)
        self.left = [first.older, *self.batch[at + 1 :], *self.left]
        self.batch[at:] = [first.newer]

    def _inside(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows of the pieces that are left in the batch."""
        segments: dict[tuple[str, int], list[Segment]] = defaultdict(list)
        for thread, segment in self.batch:
            if segment is not None:
                segments[encode_text(thread.thread_id), segment.branch].append(segment)
        return [row for row in rows if any(one.first <= row[2] <= one.last for one in segments[row[0], row[1]])]

    def _filters(self, given: dict[str, Any]) -> str:
        """The conditions on messages, whose parameters it adds to `given`."""
        request, dialect = self._scan.request, self._scan.sql.dialect
        found: list[str] = []
        if request.roles is not None:
            roles = sorted(map(encode_text, request.roles))
            given["roles"] = roles if dialect == "postgresql" else dumps(roles)
            among = "= ANY(:roles::text[])" if dialect == "postgresql" else "IN (SELECT value FROM json_each(:roles))"
            found.append(f"r.role {among}")
        for name, comparison in (("since", ">="), ("until", "<")):
            moment = getattr(request, name)
            if moment is not None:
                given[name] = moment if dialect == "postgresql" else to_microseconds(moment)
                found.append(f"r.created_at {comparison} :{name}")
        return f"WHERE {' AND '.join(found)}" if found else ""

    def _decrypted(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> Sequence[Row]:
        encryption = self._scan.request.tenant.encryption
        if encryption is None:
            return rows
        try:
            return encryption.decrypt(table, columns, rows)
        except ChatLedgerError as error:
            if not is_damage(error):
                raise
        readable: list[Row] = []
        for row in rows:
            try:
                readable += encryption.decrypt(table, columns, [row])
            except ChatLedgerError as error:
                self._scan.note(error)
        return readable

    def of(self, thread: _SearchedThread, segment: Segment) -> Iterator[Row]:
        """The messages of a piece, newest first."""
        for row in self._messages[encode_text(thread.thread_id), segment.branch]:
            if segment.first <= row[2] <= segment.last:
                yield row

    def texts(self, row: Row) -> Iterator[tuple[HitField, str]]:
        """The texts of a message that a search looks at. Reasoning is none of them."""
        thread_id, branch, seq, _, role, text, content_form, call_count, *_ = row
        key = (thread_id, branch, seq)
        words = self._text("messages", key, "text", text)
        if content_form == "parts":
            words = "".join([self._text("message_parts", part, "text", part[6]) for part in self._parts[key]])
        yield "result" if role == "tool" else "text", words
        left = MOST_VALUES  # of a message, so many values are parsed
        if role == "tool" and "\\u" in words:  # JSON with escapes, which hide words
            shown, left = self._plain(words, left)
            yield "result", shown
        for call in self._calls[key] if call_count else ():
            yield "tool_name", self._text("tool_calls", call, "name", call[4])
            arguments = self._text("tool_calls", call, "arguments", call[5])
            if self._scan.request.query.may_be_in(arguments):
                shown, left = self._plain(arguments, left)
                yield "arguments", shown

    def _plain(self, text: str, left: int) -> tuple[str, int]:
        """The text, parsed if it has no more values than are left, and how many are left then."""
        count = most_values(text)
        if count > left:
            return text, left
        self._scan.work += count * OF_A_VALUE
        return plain(text), left - count

    def _text(self, table: str, key: Row, column: str, stored: str | None) -> str:
        if stored is None:
            return ""
        try:
            text = decode_text(stored)
            if text is not stored:
                self._scan.work += len(stored) * _OF_AN_ESCAPE
            return text
        except UNREADABLE:
            names = ("thread_id", "branch", "seq", "idx")
            place = {**dict(zip(names, key, strict=False)), "thread_id": decode_text(key[0])}
            self._scan.note(damaged_cell(_TABLES[table], column, place))
            return ""
