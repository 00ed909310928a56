"""Compares a history that a service sends whole with the stored one, and cuts a branch where the sent one ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from chatledger.models import Appended, ChatMessage, RulesLevel, windows
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.gone import Gone
from chatledger.storage.append.preflight import preflight
from chatledger.storage.append.replay import had
from chatledger.storage.append.request import After, AppendRequest
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.lineages import read_paths
from chatledger.storage.history.path import Path, cut, find_path, load_range
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.repositories.branches import make_fork
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.text import Mark, write_mark


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first `same` messages of the batch are stored, the last of them at seq `after` or before synthetic results
    that end there. `difference` says how the histories differ beyond; None if the batch begins with all that is stored.
    """

    same: int
    after: int
    difference: str | None = None


def compare(history: Section, messages: Sequence[ChatMessage], *, replace_synthetic: bool = False) -> Comparison:
    """The ledger made the synthetic results, so a sender that does not know them may leave them out. With
    `replace_synthetic`, results of the batch that come where synthetic ones stand at the end are a difference.
    """
    same = after = synthetic = 0
    for stored in history.messages:
        seq = stored.seq or 0
        if same < len(messages) and _is_same(stored, messages[same]):
            same, after, synthetic = same + 1, seq, 0
        elif stored.state == "synthetic":
            synthetic = seq
        else:
            differs = f"message {same} of the batch differs from seq {seq}"
            missing = f"the batch ends before seq {seq}"
            return _cut(messages, same, after, synthetic, differs if same < len(messages) else missing)
    anew = replace_synthetic and synthetic > 0 and _answers(messages, same)
    return _cut(messages, same, after, synthetic, f"message {same} of the batch is another result" if anew else None)


def _cut(messages: Sequence[ChatMessage], same: int, after: int, synthetic: int, difference: str | None) -> Comparison:
    """Synthetic results stay on the path, unless the batch has results of its own in their place."""
    keeps = synthetic > 0 and not _answers(messages, same)
    return Comparison(same, synthetic if keeps else after, difference)


def _answers(messages: Sequence[ChatMessage], index: int) -> bool:
    return index < len(messages) and messages[index].role == "tool"


def _is_same(stored: ChatMessage, sent: ChatMessage) -> bool:
    """Whether the content is equal, and the id and the run if the sender gives them."""
    return encode_message(stored) == encode_message(_filled(sent, stored))


def _filled(sent: ChatMessage, stored: ChatMessage) -> ChatMessage:
    """The message with the id and the run of the stored one, where the sender gives none."""
    filled = {name: getattr(stored, name) for name in ("message_id", "run_id") if getattr(sent, name) is None}
    return sent.model_copy(update=filled)


def part(sql: WriteSql, window: Window, request: AppendRequest) -> Appended:
    """Store the messages that part from a branch which the caller names, on a branch of their own. The named branch
    stays as it is, so the same list differs from it again: a branch that has these messages already is a repeat.
    """
    preflight(sql, request, lock=True)  # so that of two equal calls the later one sees the branch of the earlier one
    return _find_equal(sql, window, request) or attempt_locked(sql, request)


def _find_equal(sql: WriteSql, window: Window, request: AppendRequest) -> Appended | None:
    """The result of the first call again, if a branch leaves the path at the same place with the same messages."""
    at, count = cast(int, cast(After, request.after).message), len(request.messages)
    for path in _leaving(sql, window, at):
        if path.last_seq < at + count:
            continue
        stored = load_range(sql, window.tenant, window.thread, path.branch, at + 1, path.last_seq)
        same = [message for message in stored if message.state != "synthetic"][:count]
        gone = Gone(sql, request, waits=True)
        if len(same) == count and all(map(partial(_was_same, gone), same, request.messages)):
            gone.settle()
            last = same[-1].seq or 0
            mark = write_mark(window.thread, path.branch, last, path.stamp)
            return Appended(same, mark, last, replayed=True)
    return None


def _was_same(gone: Gone, stored: ChatMessage, sent: ChatMessage) -> bool:
    """Whether the content is equal, or was before the message was revised or redacted."""
    own = encode_message(_filled(sent, stored))
    return encode_message(stored) == own or had(gone, stored, own)


def shorten(sql: WriteSql, window: Window, at: int, mark: Mark, rules: RulesLevel) -> Appended:
    """Make a branch that ends at `at`. If the caller names the branch, one that is there already is a repeat."""
    branch = None if window.branch is None else _find_short(sql, window, at)
    if branch is not None:
        return Appended([], _mark(window, branch), at, replayed=True)
    fork = make_fork(sql, window, at, True, mark, rules)
    return Appended([], _mark(window, find_path(sql, replace(window, branch=fork.branch))), at)


def _find_short(sql: WriteSql, window: Window, at: int) -> Path | None:
    """A branch that shares the path up to `at`, and has no message of its own."""
    return next((path for path in _leaving(sql, window, at) if path.last_seq == at), None)


def _leaving(sql: WriteSql, window: Window, at: int) -> list[Path]:
    """The other branches that share the path up to `at` and no further, in order."""
    path = find_path(sql, window)
    shared = cut(path.segments, 1, at)
    return [other for other in read_paths(sql, window) if other.branch != path.branch and other.segments[:-1] == shared]


def _mark(window: Window, path: Path) -> windows.Mark:
    return write_mark(window.thread, path.branch, path.last_seq, path.stamp)
