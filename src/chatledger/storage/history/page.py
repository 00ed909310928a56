"""History: which interval of a path a call asks for, and the page that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from chatledger.models import CONTINUES, ChatMessage, History, continues, json
from chatledger.storage.drivers.sql import OneStatement, Row, Sql
from chatledger.storage.history.one_statement import SMALL, WINDOW, read_window, window_parameters
from chatledger.storage.history.path import END, HistoryRequest, Path, cut, find_path, load_path, read_path
from chatledger.storage.history.tokens import newest_that_fit
from chatledger.storage.rows.encryption import Seal
from chatledger.storage.rows.messages import decode_messages
from chatledger.storage.schema.text import MARK, encode_text


def load_history(sql: Sql, request: HistoryRequest) -> History:
    """In a snapshot. Raises ThreadNotFound and BranchNotFound."""
    path = find_path(sql, request)
    if request.max_tokens is not None:
        fitting = newest_that_fit(sql, request, path, lambda message: _starts_window(sql, request, path, message))
        return History(request.thread_id, path.branch, fitting, path.last_seq)
    low, high = (1, path.last_seq) if request.run_id is None else _run_interval(sql, request, path)
    if request.last_turns is None:
        first, last = _interval(request, low, high)
    else:
        first, last = max(low, _last_turns(sql, request, path)), high
    messages = load_path(sql, request, path, first, last)
    if request.run_id is not None:
        messages = [message for message in messages if message.run_id == request.run_id]
    if request.last is not None:
        messages = _from_turn_start(sql, request, path, messages)
    if request.last is not None or request.last_turns is not None:
        messages = _with_calls(sql, request, path, messages)
    next_cursor = _next_cursor(request, first, last, low, high)
    return History(request.thread_id, path.branch, messages, path.last_seq, next_cursor)


def is_small(request: HistoryRequest) -> bool:
    """Whether `at_once` may read it: a window of few messages, or a whole branch that may have few."""
    if request.run_id is not None or request.last_turns is not None or request.max_tokens is not None:
        return False
    size = request.limit if request.last is None else request.last
    return size is None or size <= SMALL


def at_once(request: HistoryRequest, seal: Seal | None) -> OneStatement[History | None]:
    """A small history in one statement, so that it needs no transaction to be one state; None if it takes more. Raises
    as `load_history`.
    """
    low, high = (request.after or 0) + 1, END if request.before is None else request.before - 1
    size = request.limit if request.last is None else request.last
    backward = size is not None and (request.last is not None or request.before is not None)
    parameters = {**request.place, **window_parameters(low=low, high=high, size=size, backward=backward)}
    return OneStatement(
        WINDOW,
        parameters,
        lambda rows: _read_at_once(request, high, rows, seal),
        lambda sql: load_history(sql, request),
    )


def _read_at_once(request: HistoryRequest, high: int, rows: Sequence[Row], seal: Seal | None) -> History | None:
    window = read_window(rows)
    path = read_path(request, None if window is None else window.header)
    assert window is not None
    if request.limit is None and request.last is None and window.last < min(high, path.last_seq):
        return None
    messages = decode_messages(request.thread_id, window.messages, window.parts, window.calls, seal)
    if request.last is not None:
        start = _first_turn(messages)
        if start is None or (messages and interrupts_calls(messages[start])):
            return None
        messages = messages[start:]
    cursor = _next_cursor(request, window.first, window.last, 1, path.last_seq)
    return History(request.thread_id, path.branch, messages, path.last_seq, cursor)


# --- Windows ----------------------------------------------------------------------------------------------------------


def _interval(request: HistoryRequest, low: int, high: int) -> tuple[int, int]:
    """The window within low … high."""
    first = max(low, (request.after or 0) + 1)
    last = high if request.before is None else min(request.before - 1, high)
    size = request.last if request.last is not None else request.limit
    if size is None:
        return first, last
    if request.last is not None or request.before is not None:  # backward: what is next to the end or the cursor
        return max(first, last - size + 1), last
    return first, min(last, first + size - 1)


def _next_cursor(request: HistoryRequest, first: int, last: int, low: int, high: int) -> int | None:
    if request.limit is None or first > last:
        return None
    if request.before is not None:
        return first if first > max(low, (request.after or 0) + 1) else None
    return last if last < high else None


def _from_turn_start(sql: Sql, request: HistoryRequest, path: Path, messages: list[ChatMessage]) -> list[ChatMessage]:
    """`last` messages, but from the first turn that is whole: a call is never split from its results. If not even the
    last turn fits, it is given whole.
    """
    start = _first_turn(messages)
    if start is not None:
        return messages[start:]
    first = turn_start(sql, request, path, (messages[0].seq or 1) - 1)
    return load_path(sql, request, path, first, messages[-1].seq or path.last_seq)


def _first_turn(messages: Sequence[ChatMessage]) -> int | None:
    """The index of the first of them that begins a turn, as the beginning of the thread does; None without one."""
    if not messages or messages[0].seq == 1:
        return 0
    return next((index for index, message in enumerate(messages) if starts_turn(message)), None)


def _with_calls(sql: Sql, request: HistoryRequest, path: Path, messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages, from the turn of the earliest call that has its result among them.

    Only lenient lets a turn begin while calls wait, and its first message then says so: any other costs nothing here.
    """
    while messages and interrupts_calls(messages[0]):
        first = messages[0].seq or 1
        call_seq = _earliest_call(sql, request, path, first)
        if call_seq is None:
            return messages
        start = turn_start(sql, request, path, call_seq)
        messages = load_path(sql, request, path, start, first - 1) + messages
    return messages


_EARLIEST_CALL = """
SELECT min(call_seq) FROM {schema}tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND call_seq < :before
"""


def _earliest_call(sql: Sql, request: HistoryRequest, path: Path, before: int) -> int | None:
    """The first call before that seq that is answered at or after it."""
    found: list[int] = []
    for branch, first, last in cut(path.segments, before, path.last_seq):
        place = {"tenant": request.tenant, "thread": request.thread, "branch": branch}
        rows = sql.fetch(_EARLIEST_CALL, {**place, "first": first, "last": last, "before": before})
        found += [row[0] for row in rows if row[0] is not None]
    return min(found, default=None)


def turn_start(sql: Sql, request: HistoryRequest, path: Path, seq: int) -> int:
    """Where the turn that `seq` is in begins: at the last message up to there that starts one, or at the first."""
    starts = _turn_starts(sql, request, path, 1, seq)
    return starts[0] if starts else 1


def _last_turns(sql: Sql, request: HistoryRequest, path: Path) -> int:
    """The seq at which the last `last_turns` turns begin; 1 if there are not as many."""
    starts = _turn_starts(sql, request, path, min(request.last_turns or 0, path.last_seq), path.last_seq)
    if request.last_turns == 0:
        return path.last_seq + 1
    return starts[-1] if len(starts) == request.last_turns else 1


_TURN_STARTS = """
SELECT seq FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user' AND (residual IS NULL OR (residual NOT LIKE :continues AND residual NOT LIKE :marked))
ORDER BY seq DESC LIMIT :count
"""
# How the residual of a message that continues its group begins, and how it does where its text had to be escaped.
_CONTINUES = json.dumps({CONTINUES: True}).removesuffix("}")
_GROUPED = {"continues": f"{_CONTINUES}%", "marked": f"{MARK}{_CONTINUES}%"}


def _turn_starts(sql: Sql, request: HistoryRequest, path: Path, count: int, last: int) -> list[int]:
    """The seqs of the last `count` turns that begin up to `last`, latest first. Reads back no further than they do."""
    starts: list[int] = []
    for branch, low, high in reversed(cut(path.segments, 1, last)):
        missing = count - len(starts)
        if missing <= 0:
            break
        place = {"tenant": request.tenant, "thread": request.thread, "branch": branch}
        interval = {**place, "first": low, "last": high, "count": missing}
        if sql.seal is None:
            starts += [row[0] for row in sql.fetch(_TURN_STARTS, {**interval, **_GROUPED})]
        else:
            starts += islice(_sealed_turn_starts(sql, sql.seal, interval), missing)
    return starts


_USER_MESSAGES = """
SELECT seq, residual FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user'
ORDER BY seq DESC LIMIT :count
"""


def _sealed_turn_starts(sql: Sql, seal: Seal, interval: dict[str, Any]) -> Iterator[int]:
    """The seqs of turns of one branch, latest first, where no statement can look into a residual."""
    last = interval["last"]
    while rows := sql.fetch(_USER_MESSAGES, {**interval, "last": last}):
        for seq, residual in seal.open("messages", ("seq", "residual"), rows, interval["thread"], interval["branch"]):
            if residual is None or not residual.startswith((_CONTINUES, MARK + _CONTINUES)):
                yield seq
        last = rows[-1][0] - 1


def starts_turn(message: ChatMessage) -> bool:
    """A user message does, unless it was one message with the tool results before it: a group is never cut."""
    return message.role == "user" and not continues(message)


def _starts_window(sql: Sql, request: HistoryRequest, path: Path, message: ChatMessage) -> bool:
    """Whether a turn begins there and no result that follows answers a call before it."""
    if not starts_turn(message):
        return False
    return not interrupts_calls(message) or _earliest_call(sql, request, path, message.seq or 1) is None


def interrupts_calls(message: ChatMessage) -> bool:
    """Whether it came while calls were waiting for their results."""
    return any(violation.rule == "R8" for violation in message.violations)


_RUN_INTERVAL = """
SELECT min(seq), max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND run_id = :run
"""


def _run_interval(sql: Sql, request: HistoryRequest, path: Path) -> tuple[int, int]:
    place = {"tenant": request.tenant, "thread": request.thread, "run": encode_text(request.run_id or "")}
    low, high = sql.fetch(_RUN_INTERVAL, place)[0]
    return (low, min(high, path.last_seq)) if low is not None else (path.last_seq + 1, path.last_seq)
