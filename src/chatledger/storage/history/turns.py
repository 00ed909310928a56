"""Loads a history: finds the interval of the path that a window asks for, and builds its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from chatledger.models import CONTINUES, ChatMessage, continues, json
from chatledger.storage.drivers.errors import is_bad_json
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.history.answer_links import answer_linker
from chatledger.storage.history.one_statement import NEWEST, PAGE, page_parameters, read_rows
from chatledger.storage.history.path import Path, cut, damaged_lineage, find_path, load_path, nearest, read_path
from chatledger.storage.history.tokens import newest_that_fit
from chatledger.storage.history.window_request import END, Section, Window
from chatledger.storage.rows.decode_messages import decode_messages
from chatledger.storage.rows.encryption import CellEncryption
from chatledger.storage.schema.text import ESCAPE_MARK, encode_text, write_mark


def load_history(sql: ReadSql, window: Window) -> Section:
    """The page of a window. On PostgreSQL, where a round trip is expensive, one statement reads a small window. Raises
    ThreadNotFound, BranchNotFound and DamagedCell.
    """
    if sql.dialect == "postgresql" and window.is_small:
        page = load_small(sql, window)
        if page is not None:
            return page
    return load_page(sql, window)


def load_small(sql: ReadSql, window: Window) -> Section | None:
    """The page of a small window by one statement, or None as `read_page`. Raises as `load_history`."""
    try:
        rows = sql.fetch(*page_statement(window))
    except Exception as error:
        if not is_bad_json(error):
            raise
    else:
        return read_page(window, rows)
    raise damaged_lineage(window.thread_id, window.branch)  # the statement reads no other JSON


def load_page(sql: ReadSql, window: Window) -> Section:
    """The page of a window by several statements, so the caller needs a snapshot. Raises as `load_history`."""
    path = find_path(sql, window)
    if window.max_tokens is not None:
        fitting = newest_that_fit(sql, window, path, lambda message: _starts_window(sql, window, path, message))
        answer_linker(complete=not path.absent)(fitting)
        return _section(window, path, fitting, _load_draft(sql, window, path))
    (first, last), (low, high) = interval_of(sql, window, path)
    messages = load_path(sql, window, path, first, last, answer_linker(complete=not path.absent))
    linked = messages
    if window.last_turns is not None:
        messages = _with_calls(sql, window, path, messages)
    if window.newest is not None:
        messages = _with_group(sql, window, path, messages)
    if messages is not linked:
        answer_linker(complete=not path.absent)(messages)
    draft = _load_draft(sql, window, path) if window.is_backward or last >= high else None
    page = _page(window, path, messages, draft, (first, last), (low, high))
    if window.run_id is None:
        return page
    draft = draft if draft is not None and draft.run_id == window.run_id else None
    return replace(page, messages=[message for message in messages if message.run_id == window.run_id], draft=draft)


def _load_draft(sql: ReadSql, window: Window, path: Path) -> ChatMessage | None:
    """The message at the end that is being written, unless the window ends before it or begins after it."""
    if path.draft is None or not (window.after or 0) < path.draft < (window.before or END):
        return None
    return load_path(sql, window, replace(path, last_seq=path.draft), path.draft, path.draft)[0]


def interval_of(sql: ReadSql, window: Window, path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last seq that the window asks for, and those between which there are messages to read."""
    low, high = (1, path.last_seq) if window.run_id is None else _run_interval(sql, window, path)
    if path.absent:
        low, high = _ends(sql, window, path, low, high)
    if window.last_turns is not None:
        first, last = max(low, _last_turns(sql, window, path)), high
    elif path.absent and window.size:
        first, last = _counted(sql, window, path, low, high)
    else:
        first, last = _interval(window, low, high)
    return (first, last), (low, high)


def page_statement(window: Window) -> tuple[str, dict[str, Any]]:
    """The statement of a small window and its parameters. One statement sees one state without a transaction."""
    low, high = (window.after or 0) + 1, END if window.before is None else window.before - 1
    size = window.size
    backward = size is not None and window.is_backward
    statement = PAGE if window.newest is None else NEWEST
    interval = page_parameters(low=low, high=high, size=size, backward=backward, drafts=window.drafts)
    return statement, {**window.place, **interval}


def read_page(window: Window, rows: Sequence[Row]) -> Section | None:
    """The page from the rows of `page_statement`. None if the rows do not suffice: the whole branch has more than SMALL
    messages, the window must begin further back, or empty positions make it uncertain which messages belong to the
    window. Raises as `load_history`.
    """
    page_rows = read_rows(rows)
    path = read_path(window, None if page_rows is None else page_rows.header)
    assert page_rows is not None
    low, high = 1, path.last_seq
    first, last = _interval(window, low, high)
    if window.size is None and page_rows.last < last:
        return None
    link = answer_linker(complete=not path.absent)
    messages = decode_messages(
        window.tenant, window.thread_id, page_rows.messages, page_rows.parts, page_rows.calls, link
    )
    draft = messages.pop() if path.draft is not None and messages and messages[-1].seq == path.draft else None
    if path.absent:
        if not _is_certain(window, path, messages, first, last):
            return None
        if window.size is None:
            low, high = (messages[0].seq or 1, messages[-1].seq or 1) if messages else (1, 0)
            first, last = low, high
    if window.newest is not None and messages and continues(messages[0]):
        return None
    return _page(window, path, messages, draft, (first, last), (low, high))


def _page(
    window: Window,
    path: Path,
    messages: list[ChatMessage],
    draft: ChatMessage | None,
    read: tuple[int, int],
    bounds: tuple[int, int],
) -> Section:
    """The section and its ends. `read` is the interval of seq that the window asks for, `bounds` the one in which
    there are messages to read. A window that keeps turns or groups whole begins at its first message instead.
    """
    (first, last), (low, high) = read, bounds
    if window.limit is None and messages:
        first = messages[0].seq or first
    if window.after is not None and window.before is not None:
        low, high = max(low, window.after + 1), min(high, window.before - 1)
    nothing = 0 in (window.size, window.last_turns)  # a walk by pages without messages would never end
    before = None if nothing or first <= low else first
    return _section(window, path, messages, draft, before, None if nothing or last >= high else last)


def _section(
    window: Window,
    path: Path,
    messages: list[ChatMessage],
    draft: ChatMessage | None,
    before: int | None = None,
    after: int | None = None,
) -> Section:
    partial = path.draft is not None or (bool(messages) and messages[-1].state == "partial")
    mark = write_mark(window.thread, path.branch, path.version, path.stamp, partial=partial)
    place = (window.thread, window.thread_id, path.branch)
    return Section(*place, messages, draft, path.version, mark, before, after)


# --- Windows ----------------------------------------------------------------------------------------------------------


def _interval(window: Window, low: int, high: int) -> tuple[int, int]:
    """The first and the last seq of the window within low … high."""
    first = max(low, min(window.after or 0, high) + 1)
    last = high if window.before is None else max(low - 1, min(window.before - 1, high))
    size = window.size
    if size is None:
        return first, last
    if window.is_backward:
        return max(first, last - size + 1), last
    return first, min(last, first + size - 1)


def _ends(sql: ReadSql, window: Window, path: Path, low: int, high: int) -> tuple[int, int]:
    """The seqs of the first and the last message within low … high, and between two cursors; (1, 0) without one."""
    if window.after is not None and window.before is not None:
        low, high = max(low, window.after + 1), min(high, window.before - 1)
    first = nearest(sql, window, path, low, high, 1, backward=False)
    last = nearest(sql, window, path, low, high, 1, backward=True)
    return (first[0], last[1]) if first and last else (1, 0)


def _counted(sql: ReadSql, window: Window, path: Path, low: int, high: int) -> tuple[int, int]:
    """As `_interval`, for a path with positions that hold no message, and a window of some size."""
    first, last = _interval(replace(window, limit=None, newest=None), low, high)
    return nearest(sql, window, path, first, last, window.size or 0, backward=window.is_backward) or (first, last)


def _is_certain(window: Window, path: Path, messages: Sequence[ChatMessage], first: int, last: int) -> bool:
    """Whether the messages of the interval first … last are those of the window, although the path has positions
    without a message, and whether it is clear that there are others before and behind them.
    """
    absent = path.absent or 0
    if window.size is None:
        return window.after is None and window.before is None
    if window.after is not None and window.before is not None:
        return False
    inside = [message for message in messages if (message.seq or 0) >= first]
    if not inside or len(inside) < window.size:
        return False
    return (messages[0].seq or 0) - 1 > absent and (last == path.last_seq or path.last_seq - last > absent)


def _with_calls(sql: ReadSql, window: Window, path: Path, messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages, extended back to the turn of the earliest call that has its result among them.

    Only lenient rules let a turn begin while calls wait, and then its first message has a violation that says so. Any
    other history costs nothing here.
    """
    while messages and interrupts_calls(messages[0]):
        first = messages[0].seq or 1
        call_seq = earliest_call(sql, window, path, first, path.last_seq)
        if call_seq is None:
            return messages
        start = turn_start(sql, window, path, call_seq)
        messages = load_path(sql, window, path, start, first - 1) + messages
    return messages


def _with_group(sql: ReadSql, window: Window, path: Path, messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages, extended back to the beginning of the group that they begin in: to the earliest call that has its
    result among them, and to the first message of those that were one in their source.
    """
    while messages and (messages[0].seq or 1) > 1:
        first, last = messages[0].seq or 1, messages[-1].seq or path.last_seq
        start = earliest_call(sql, window, path, first, last)
        if start is None and continues(messages[0]):
            start = _before(sql, window, path, first)
        if start is None:
            break
        messages = load_path(sql, window, path, start, first - 1) + messages
    return messages


def _before(sql: ReadSql, window: Window, path: Path, seq: int) -> int | None:
    """The seq of the message before `seq`."""
    if not path.absent:
        return seq - 1 or None
    neighbour = nearest(sql, window, path, 1, seq - 1, 1, backward=True)
    return None if neighbour is None else neighbour[0]


_EARLIEST_CALL = """
SELECT min(call_seq) FROM {schema}tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :low AND :high
  AND call_seq < :first
"""


def earliest_call(sql: ReadSql, window: Window, path: Path, first: int, last: int) -> int | None:
    """The seq of the earliest call before `first` whose result is within first … last; None without one."""
    earliest: list[int] = []
    for branch, low, high in cut(path.segments, first, last):
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        rows = sql.fetch(_EARLIEST_CALL, {**place, "low": low, "high": high, "first": first})
        earliest += [row[0] for row in rows if row[0] is not None]
    return min(earliest, default=None)


def turn_start(sql: ReadSql, window: Window, path: Path, seq: int) -> int:
    """The seq at which the turn of `seq` begins: the last message up to `seq` that starts a turn, or the first one."""
    starts = _turn_starts(sql, window, path, 1, seq)
    return starts[0] if starts else 1


def _last_turns(sql: ReadSql, window: Window, path: Path) -> int:
    """The seq at which the last `last_turns` turns begin; 1 if there are fewer turns."""
    starts = _turn_starts(sql, window, path, min(window.last_turns or 0, path.last_seq), path.last_seq)
    if window.last_turns == 0:
        return path.last_seq + 1
    return starts[-1] if len(starts) == window.last_turns else 1


_TURN_STARTS = """
SELECT seq FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user' AND (residual IS NULL OR (residual NOT LIKE :continues AND residual NOT LIKE :marked))
ORDER BY seq DESC LIMIT :count
"""
# The beginning of the residual of a message that continues its group: plain, and with the mark of escaped text.
_CONTINUES = json.dumps({CONTINUES: True}).removesuffix("}")
_GROUPED = {"continues": f"{_CONTINUES}%", "marked": f"{ESCAPE_MARK}{_CONTINUES}%"}


def _turn_starts(sql: ReadSql, window: Window, path: Path, count: int, last: int) -> list[int]:
    """The first seqs of the last `count` turns that begin up to `last`, latest first. It reads no further back."""
    starts: list[int] = []
    for branch, low, high in reversed(cut(path.segments, 1, last)):
        missing = count - len(starts)
        if missing <= 0:
            break
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        interval = {**place, "first": low, "last": high, "count": missing}
        if window.tenant.encryption is None:
            starts += [row[0] for row in sql.fetch(_TURN_STARTS, {**interval, **_GROUPED})]
        else:
            starts += islice(_encrypted_turn_starts(sql, window.tenant.encryption, interval), missing)
    return starts


_LONG_RESIDUAL = 64 * 1024
"""Bytes of a residual that is read by itself, so that many are not read at once."""
_USER_MESSAGES = """
SELECT seq, CASE WHEN {bytes}(residual) <= :longest THEN residual END, {bytes}(residual) > :longest
FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user'
ORDER BY seq DESC LIMIT :count
"""
_RESIDUAL = """
SELECT seq, residual FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
"""


def _encrypted_turn_starts(sql: ReadSql, encryption: CellEncryption, interval: dict[str, Any]) -> Iterator[int]:
    """The first seqs of the turns of one branch, latest first. No statement can read an encrypted residual, so this
    function decrypts each.
    """
    columns, place = ("seq", "residual"), (interval["thread"], interval["branch"])
    statement = _USER_MESSAGES.replace("{bytes}", "octet_length" if sql.dialect == "postgresql" else "length")
    interval = {**interval, "longest": _LONG_RESIDUAL}
    while rows := sql.fetch(statement, interval):
        for seq, residual, is_long in encryption.decrypt("messages", columns, rows, *place):
            if is_long:
                alone = sql.fetch(_RESIDUAL, {**interval, "seq": seq})
                ((_, residual),) = encryption.decrypt("messages", columns, alone, *place)
            if residual is None or not residual.startswith((_CONTINUES, ESCAPE_MARK + _CONTINUES)):
                yield seq
        interval["last"] = rows[-1][0] - 1


def starts_turn(message: ChatMessage) -> bool:
    """Whether the message starts a turn. A user message does, unless it was one message with the tool results before
    it, because such a group is never cut.
    """
    return message.role == "user" and not continues(message)


def _starts_window(sql: ReadSql, window: Window, path: Path, message: ChatMessage) -> bool:
    """Whether the message starts a turn and no later result answers a call from before it."""
    if not starts_turn(message):
        return False
    return not interrupts_calls(message) or earliest_call(sql, window, path, message.seq or 1, path.last_seq) is None


def interrupts_calls(message: ChatMessage) -> bool:
    """Whether the message came while calls were waiting for their results."""
    return any(violation.rule == "R8" for violation in message.violations)


_RUN_INTERVAL = """
SELECT min(seq), max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND run_id = :run
"""


def _run_interval(sql: ReadSql, window: Window, path: Path) -> tuple[int, int]:
    place = {"tenant": window.tenant.key, "thread": window.thread, "run": encode_text(window.run_id or "")}
    low, high = sql.fetch(_RUN_INTERVAL, place)[0]
    return (low, min(high, path.last_seq)) if low is not None else (path.last_seq + 1, path.last_seq)
