"""The tip of a branch as it was after an earlier message, for a branch that goes on from there."""

from __future__ import annotations

from chatledger.models import ChatMessage
from chatledger.rules import Links, Tip, fold
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.one_statement import TURN, page_parameters, read_rows
from chatledger.storage.history.path import Path, cut, load_path
from chatledger.storage.history.turns import interrupts_calls, turn_start
from chatledger.storage.history.window_request import END, Window
from chatledger.storage.rows.decode_messages import decode_messages

MANY = 100
"""Messages that are folded in a thread: a turn may have any number."""


def fold_tip(sql: WriteSql, window: Window, path: Path, at: int) -> Tip:
    """The tip as it was after seq `at`. It is folded from the beginning of the turn of `at`, or from an earlier turn if
    calls were still waiting when that turn began. The window names the branch of the path.
    """
    messages = _load_turn(sql, window, path, at)
    earlier = messages
    while earlier and interrupts_calls(earlier[0]) and (first := earlier[0].seq or 1) > 1:
        earlier = _load_turn(sql, window, path, first - 1)
        messages = earlier + messages
    first = messages[0].seq or 1 if messages else at
    links = None if path.absent is None else load_links(sql, window, path, first, at)

    def folded() -> Tip:
        return fold(Tip(), messages, links)._replace(last_seq=at)

    return apart_from_loop(folded) if len(messages) > MANY else folded()


_LINKS = """
SELECT seq, call_branch, call_seq, call_idx FROM {schema}tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
"""


def load_links(sql: WriteSql, window: Window, path: Path, first: int, last: int) -> Links:
    """The calls that the results of the path from `first` to `last` answer."""
    links: dict[tuple[int, int], tuple[int, int, int]] = {}
    for branch, low, high in cut(path.segments, first, last):
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        for seq, *call in sql.fetch(_LINKS, {**place, "first": low, "last": high}):
            links[branch, seq] = (call[0], call[1], call[2])
    return links


def _load_turn(sql: WriteSql, window: Window, path: Path, at: int) -> list[ChatMessage]:
    """The messages up to `at`, from the beginning of its turn or of an earlier one. On PostgreSQL, where a round trip
    is expensive, by one statement.
    """
    if at < 1:
        return []
    if sql.dialect != "postgresql":
        return load_path(sql, window, path, turn_start(sql, window, path, at), at)
    interval = page_parameters(low=1, high=at, size=END, backward=False, drafts=True)
    rows = read_rows(sql.fetch(TURN, {**window.place, **interval}))
    if rows is None:
        return []

    def decoded() -> list[ChatMessage]:
        return decode_messages(window.tenant, window.thread_id, rows.messages, rows.parts, rows.calls)

    return apart_from_loop(decoded) if len(rows.messages) + len(rows.calls) > MANY else decoded()
