"""The tip of a path, folded anew from its stored messages: for a fork, and after a change of stored messages."""

from __future__ import annotations

from chatledger.rules import Tip, fold
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.page import interrupts_calls, turn_start
from chatledger.storage.history.path import Path, load_path
from chatledger.storage.history.window import Window


def fold_tip(sql: Sql, window: Window, path: Path, at: int) -> Tip:
    """The tip of the messages up to seq `at`. It is folded from the beginning of the turn of `at`, or from an earlier
    turn if calls were still waiting when that turn began.
    """
    start = turn_start(sql, window, path, at)
    messages = load_path(sql, window, path, start, at)
    while messages and interrupts_calls(messages[0]) and start > 1:
        end, start = start - 1, turn_start(sql, window, path, start - 1)
        messages = load_path(sql, window, path, start, end) + messages
    return fold(Tip(), messages)._replace(last_seq=at)
