"""Looks for a text in messages and titles: reads the messages of the active branches, newest first, and compares them.

The database only finds the threads and reads rows by key. Python decrypts, decodes, folds and compares, so the result
is the same on both databases, and for an encrypted ledger. A page reads a bounded number of messages, and ends after a
bounded work, which is counted and not measured, so that a page always ends at the same message. The first batches are
small, because a common word is found in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any

from sqlalchemy import RowMapping, and_, literal, select, tuple_

from chatledger.errors import ChatLedgerError, DamagedCell, InvalidCursor, ThreadNotFound
from chatledger.models import Hit, HitField, Page
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.history.path import Segment, cut, damaged_active_branch, read_lineage
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import read_cursor, write_cursor
from chatledger.storage.lists.search_rows import BatchRows, SearchedRow
from chatledger.storage.lists.search_scan import Scan, SearchedThread, SearchedTo, SearchPiece, SearchRequest
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values
from chatledger.storage.rows.owned import owned
from chatledger.storage.schema.columns import Key, Moment, can_decode
from chatledger.storage.schema.tables import branches, messages, threads
from chatledger.storage.schema.text import UNREADABLE, decode_text

_THREADS = 200
"""The threads that one statement looks up."""
_FIRST, _LARGEST = 250, 4_000
"""The positions of the first batch, and the most of one batch."""


def search(sql: ReadSql, request: SearchRequest, cursor: str | None) -> Page[Hit]:
    """Raises InvalidCursor, and ThreadNotFound for `thread_id`."""
    scan = Scan(sql, request, before=request.query.work)
    start = None if cursor is None else _read_place(request, cursor)
    pieces: Iterator[SearchPiece] = _pieces(scan, start)
    size = _FIRST
    while batch := _take(scan, pieces, size):
        rows = BatchRows(scan, batch)
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


def _read_place(request: SearchRequest, cursor: str) -> SearchedTo:
    name, active_at, thread_id, seq = read_cursor(cursor, str, datetime, str, str)
    if name != request.name or not seq.isdecimal():
        raise InvalidCursor(cursor, "of another search: pass the same query and the same filters with it")
    return SearchedTo(active_at, thread_id, int(seq))


def _write_place(request: SearchRequest, place: SearchedTo) -> str:
    return write_cursor(request.name, place.active_at, place.thread_id, str(place.seq))


def _end(batch: Sequence[SearchPiece]) -> SearchedTo:
    thread, segment = batch[-1]
    return SearchedTo(thread.active_at, thread.thread_id, thread.last_seq + 1 if segment is None else segment.first)


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


def _thread_batches(scan: Scan, start: SearchedTo | None) -> Iterator[list[SearchedThread]]:
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
        some = fetch_rows(scan.sql, page, _THREADS, "active_at", "thread_id", newest_first=True)
        yield _readable(scan, some.rows)
        if not some.more:
            return
        behind = (some.rows[-1]["active_at"], some.rows[-1]["thread_id"])


def _read_threads(sql: ReadSql, statement: Any) -> Sequence[RowMapping]:
    return sql.execute(statement).mappings().all()


def _readable(scan: Scan, rows: Sequence[RowMapping | Mapping[str, Any]]) -> list[SearchedThread]:
    readable: list[SearchedThread] = []
    for row in rows:
        try:
            readable.append(_to_found(scan.request.tenant, row))
        except ChatLedgerError as error:
            scan.note(error)
    return readable


def _to_found(tenant: Tenant, row: RowMapping | Mapping[str, Any]) -> SearchedThread:
    thread_id, active = row["thread_id"], row["active_branch"]
    fields = decrypt_values(tenant, threads, {column.name: row[column.name] for column in _COLUMNS})
    if row["lineage"] is None:
        raise damaged_active_branch(thread_id)
    if type(row["last_seq"]) is not int:
        raise damaged_cell(branches, "last_seq", {"thread_id": thread_id, "branch": active})
    segments = cut(read_lineage(row["lineage"], thread_id, active), 1, row["last_seq"])
    return SearchedThread(
        thread_id, fields["title"], fields["active_at"], fields["created_at"], segments, row["last_seq"]
    )


# --- Batches ----------------------------------------------------------------------------------------------------------


def _pieces(scan: Scan, start: SearchedTo | None) -> Iterator[SearchPiece]:
    """What is to be read, from the newest thread to the oldest, each from its end."""
    for thread in chain.from_iterable(_thread_batches(scan, start)):
        last = thread.last_seq
        if start is not None and thread.thread_id == start.thread_id:
            last = start.seq - 1  # the title comes first, so it has been looked at
        elif scan.request.threads:
            yield SearchPiece(thread, None)
        for segment in reversed(cut(thread.segments, 1, last)):
            for high in range(segment.last, segment.first - 1, -_FIRST):
                yield SearchPiece(thread, Segment(segment.branch, max(high - _FIRST + 1, segment.first), high))


def _take(scan: Scan, pieces: Iterator[SearchPiece], size: int) -> list[SearchPiece]:
    batch: list[SearchPiece] = []
    for piece in pieces:
        if not (scan.request.threads and piece.thread.thread_id in scan.hit_threads):
            batch.append(piece)
            size -= piece.size
        if size <= 0:
            break
    return batch


def _found(scan: Scan, batch: Sequence[SearchPiece], rows: BatchRows) -> list[tuple[Hit, SearchedTo]]:
    """The hits of a batch, as many as the page may have. The event loop never compares: what a short text costs
    depends on its letters.
    """
    most = scan.request.limit - len(scan.hits)
    return apart_from_loop(lambda: list(islice(_look(scan, batch, rows), most)))


def _look(scan: Scan, batch: Sequence[SearchPiece], rows: BatchRows) -> Iterator[tuple[Hit, SearchedTo]]:
    """The hits of a batch, newest first, each with the place behind it. Ends where the page has worked enough."""
    request, query = scan.request, scan.request.query
    most = request.most_work + scan.before
    for thread, segment in batch:
        for row in (None,) if segment is None else rows.of(thread, segment):
            if request.threads and thread.thread_id in scan.hit_threads:
                break
            for kind, text in rows.texts(row) if row is not None else _title(thread):
                if query.is_in(text):
                    message = None if row is None else SearchedRow(*row[: len(SearchedRow._fields)])
                    try:
                        hit = _hit(request, thread, message, kind, text)
                    except UNREADABLE:
                        scan.note(_damaged(message))
                        break
                    scan.hit_threads.add(thread.thread_id)
                    yield hit
                    break
            if scan.work + query.work >= most:
                scan.stopped = _behind(thread, row)
                return


def _behind(thread: SearchedThread, row: Row | None) -> SearchedTo:
    return SearchedTo(thread.active_at, thread.thread_id, thread.last_seq + 1 if row is None else row[2])


def _title(thread: SearchedThread) -> Iterator[tuple[HitField, str]]:
    yield "title", thread.title or ""


def _damaged(row: SearchedRow | None) -> DamagedCell:
    assert row is not None  # the cells of a thread have been decoded
    stored = {"message_id": row.message_id, "role": row.role, "created_at": row.created_at}
    place = {"thread_id": decode_text(row.thread_id), "branch": row.branch, "seq": row.seq}
    for name, cell in stored.items():
        if cell is not None and not can_decode(messages.c[name].type, cell):
            return damaged_cell(messages, name, place)
    raise AssertionError("a cell that cannot be decoded")


def _hit(
    request: SearchRequest, thread: SearchedThread, row: SearchedRow | None, kind: HitField, text: str
) -> tuple[Hit, SearchedTo]:
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
    return hit, SearchedTo(thread.active_at, thread.thread_id, seq)
