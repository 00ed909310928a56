"""The rows of a batch of a search, and the texts of them that are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from chatledger.errors import ChatLedgerError
from chatledger.models import HitField
from chatledger.models.json import dumps
from chatledger.models.limits import MOST_VALUES
from chatledger.storage.drivers.asyncpg import aside
from chatledger.storage.drivers.sql import Row
from chatledger.storage.history.path import Segment
from chatledger.storage.lists.pieces import fetch_pieces, fetch_some
from chatledger.storage.lists.search_scan import Scan, SearchedThread, SearchPiece
from chatledger.storage.lists.search_text import OF_A_VALUE, most_values, plain
from chatledger.storage.rows.decode_messages import is_damage
from chatledger.storage.rows.encryption import damaged_cell
from chatledger.storage.schema.tables import message_parts, messages, tool_calls
from chatledger.storage.schema.text import UNREADABLE, decode_text, encode_text, to_microseconds

_OF_AN_ESCAPE = 4
"""The work of a stored character of a text with escapes, as that of so many characters that are compared."""
_TABLES = {"messages": messages, "message_parts": message_parts, "tool_calls": tool_calls}


class SearchedRow(NamedTuple):
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
_COLUMNS_OF = {"messages": SearchedRow._fields, "message_parts": _PART, "tool_calls": _CALL}
_LONG_COLUMN = {"messages": "text", "message_parts": "text", "tool_calls": "arguments"}
_LONG_OF = {table: itemgetter(columns.index(_LONG_COLUMN[table])) for table, columns in _COLUMNS_OF.items()}


class BatchRows:
    """The rows of a batch, as they are stored, but decrypted. Of a batch of many bytes, only the first part is read."""

    def __init__(self, scan: Scan, batch: Sequence[SearchPiece]) -> None:
        self._scan = scan
        self.batch, self.left = list(batch), list[SearchPiece]()
        """The pieces that are read, and those of the given ones that are not."""
        rows_of = {"messages": self._read("messages", SearchedRow._fields)}
        if any(row[6] == "parts" for row in rows_of["messages"]):
            rows_of["message_parts"] = self._read("message_parts", _PART)
        if any(row[7] for row in rows_of["messages"]):
            rows_of["tool_calls"] = self._read("tool_calls", _CALL)
        if self.left:
            rows_of = {table: self._inside(rows) for table, rows in rows_of.items()}
        self._messages = self._by_key("messages", rows_of, 2)
        self._parts, self._calls = self._by_key("message_parts", rows_of, 3), self._by_key("tool_calls", rows_of, 3)
        for rows in self._messages.values():
            rows.sort(key=itemgetter(2), reverse=True)
        scan.messages += len(rows_of["messages"])

    def _by_key(self, table: str, rows_of: dict[str, Sequence[Row]], length: int) -> dict[Row, list[Row]]:
        by_key: dict[Row, list[Row]] = defaultdict(list)
        rows = rows_of.get(table, ())
        for row in aside(lambda: self._decrypted(table, _COLUMNS_OF[table], rows), map(_LONG_OF[table], rows)):
            by_key[tuple(row[:length])].append(row)
        return by_key

    def _read(self, table: str, columns: Sequence[str]) -> Sequence[Row]:
        """The rows of the batch, from which it drops the pieces that have too many bytes."""
        request, parameters = self._scan.request, dict[str, Any]()
        rest = self._filters(parameters) if table == "messages" else ""
        if table == "message_parts":
            rest = "WHERE r.channel = 'content' AND r.kind = 'text'"
        while True:
            places = [piece.place for piece in self.batch if piece.segment is not None]
            if not places:
                return ()
            sql, named = self._scan.sql, _LONG_COLUMN[table]
            rows, count = fetch_some(sql, request.tenant, table, columns, named, places, rest, parameters)
            if count == len(places):
                return rows
            if count == 0 and self._first.size == 1:  # one message, which is read in any case
                self._keep(1)
                return fetch_pieces(sql, request.tenant, table, columns, places[:1], rest, parameters)
            if count:
                self._keep(count)
                return rows
            self._halve()

    @property
    def _first(self) -> SearchPiece:
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
        return [
            row for row in rows if any(segment.first <= row[2] <= segment.last for segment in segments[row[0], row[1]])
        ]

    def _filters(self, parameters: dict[str, Any]) -> str:
        """The conditions on messages, whose parameters it adds to `parameters`."""
        request, dialect = self._scan.request, self._scan.sql.dialect
        conditions: list[str] = []
        if request.roles is not None:
            roles = sorted(map(encode_text, request.roles))
            parameters["roles"] = roles if dialect == "postgresql" else dumps(roles)
            among = "= ANY(:roles::text[])" if dialect == "postgresql" else "IN (SELECT value FROM json_each(:roles))"
            conditions.append(f"r.role {among}")
        for name, comparison in (("since", ">="), ("until", "<")):
            moment = getattr(request, name)
            if moment is not None:
                parameters[name] = moment if dialect == "postgresql" else to_microseconds(moment)
                conditions.append(f"r.created_at {comparison} :{name}")
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

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

    def of(self, thread: SearchedThread, segment: Segment) -> Iterator[Row]:
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
