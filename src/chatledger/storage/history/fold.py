"""The tip of a branch as it was after an earlier message, for a branch that goes on from there."""

from __future__ import annotations

from chatledger.models import ChatMessage
from chatledger.rules import Tip, fold
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.one_statement import TURN, page_parameters, read_rows
from chatledger.storage.history.page import interrupts_calls, turn_start
from chatledger.storage.history.path import Path, load_path
from chatledger.storage.history.window import END, Window
from chatledger.storage.rows.messages import decode_messages


def fold_tip(sql: Sql, window: Window, path: Path, at: int) -> Tip:
    """The tip as it was after seq `at`. It is folded from the beginning of the turn of `at`, or from an earlier turn if
    calls were still waiting when that turn began. The window names the branch of the path.
    """
    messages = _load_turn(sql, window, path, at)
    earlier = messages
    while earlier and interrupts_calls(earlier[0]) and (first := earlier[0].seq or 1) > 1:
        earlier = _load_turn(sql, window, path, first - 1)
        messages = earlier + messages
    return fold(Tip(), messages)._replace(last_seq=at)


def _load_turn(sql: Sql, window: Window, path: Path, at: int) -> list[ChatMessage]:
    """The messages up to `at`, from the beginning of its turn or of an earlier one. On PostgreSQL, where a round trip
    is expensive, by one statement.
    """
    if at < 1:
        return []
    if sql.dialect != "postgresql":
        return load_path(sql, window, path, turn_start(sql, window, path, at), at)
    interval = page_parameters(low=1, high=at, size=END, backward=False)
    found = read_rows(sql.fetch(TURN, {**window.place, **interval}))
    if found is None:
        return []
    return decode_messages(window.tenant, window.thread_id, found.messages, found.parts, found.calls)
