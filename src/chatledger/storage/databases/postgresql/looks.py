"""One statement that looks for several appends of one tenant on PostgreSQL: what a preflight reads for each of them,
the stored messages that have one of their ids, and the threads of their runs.

It reads the messages whole, because most of them are repeats, whose result is what is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from chatledger.models import ChatMessage
from chatledger.storage.append.preflight import Preflight, read_preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import BranchKey, branch_key
from chatledger.storage.drivers.errors import run_conflict
from chatledger.storage.drivers.sql import Row
from chatledger.storage.history.union_rows import (
    CALL,
    CALL_OF,
    HEADER,
    MESSAGE,
    MESSAGE_OF,
    PART,
    PART_OF,
    PLACES,
    TEXT_PLACES,
    row,
    row_of,
)
from chatledger.storage.history.window_request import branch_column
from chatledger.storage.rows.decode_messages import decode_messages
from chatledger.storage.rows.encrypted import ENCRYPTED_TENANT
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS

_RUN, _ARMS = 4, 8  # the arm of the runs; a row begins with the number of its branch, times eight, and its arm
_HEAD = {"branch": "b.branch", "call_count": "g.active_branch", "is_error": "f.branch IS NOT NULL", "seq": "b.last_seq"}
_HEAD_TEXTS = (
    "g.user_id",
    "g.rules",
    "e.encrypted",
    "b.lineage",
    "b.stamp::text",
    "b.absent::text",
    "b.last_role",
    "b.open_calls",
    "b.partial_seq::text",
)
_HEAD_VALUES = {PLACES[name]: value for name, value in _HEAD.items()}
_HEAD_VALUES |= dict(zip(TEXT_PLACES, _HEAD_TEXTS, strict=False))
# One lookup by value for each branch, id, message and run, whatever the planner knows of the tables.
_ONE = "LATERAL (SELECT o.* FROM {schema}%s o WHERE o.tenant_id = :tenant AND %s LIMIT 1)"
_THREAD = _ONE % ("threads", "o.thread_id = r.thread")
_BRANCH = _ONE % ("branches", "o.thread_id = g.own AND o.branch = coalesce(g.branch, g.active_branch)")
_FORK = _ONE % ("branches", "o.thread_id = g.own AND o.branch = 1")
_MESSAGE = _ONE % ("messages", "o.thread_id = g.own AND o.message_id = i.id")
_RUN_OF = _ONE % ("runs", "o.run_id = r.run")


def _rows_of(arm: int, table: str, columns: Sequence[str]) -> str:
    """The rows of a table that belong to the messages that were found."""
    return (
        f"SELECT {row_of(f'm.number * {_ARMS} + {arm}', 'x', columns)} FROM found m CROSS JOIN LATERAL ("
        f"SELECT o.* FROM {{schema}}{table} o WHERE o.tenant_id = :tenant AND o.thread_id = m.thread_id"
        " AND o.branch = m.branch AND o.seq = m.seq OFFSET 0) x"
    )


# Nothing of another user's thread is looked up but its owner: `own` is NULL for it.
_GIVEN = (
    "SELECT r.number::int AS number, r.branch, t.user_id, t.rules, t.active_branch,"
    " CASE WHEN r.owner IS NULL OR r.owner = t.user_id THEN r.thread END AS own"
    " FROM unnest(:thread::text[], :branch::int[], :users::text[]) WITH ORDINALITY AS r (thread, branch, owner, number)"
    f", {_THREAD} t"
)
_FOUND = (
    "SELECT i.number, m.* FROM given g JOIN unnest(:ids_numbers::int[], :ids::text[]) AS i (number, id) USING (number)"
    f", {_MESSAGE} m"
)
_HEADS = (
    f"SELECT {row(f'g.number * {_ARMS} + {HEADER}', _HEAD_VALUES)} FROM given g"
    f" LEFT JOIN {_BRANCH} b ON true LEFT JOIN {_FORK} f ON true,"
    f" (SELECT CASE WHEN EXISTS ({ENCRYPTED_TENANT}) THEN '' END AS encrypted) e"
)
_MESSAGES = f"SELECT {row_of(f'm.number * {_ARMS} + {MESSAGE}', 'm', MESSAGE_COLUMNS)} FROM found m"
_PARTS = _rows_of(PART, "message_parts", PART_COLUMNS)
_CALLS = _rows_of(CALL, "tool_calls", CALL_COLUMNS)
_RUN_VALUES = dict(zip(TEXT_PLACES, ("r.run", "x.thread_id"), strict=False))
_RUNS = f"SELECT {row(_RUN, _RUN_VALUES)} FROM unnest(:runs::text[]) AS r (run), {_RUN_OF} x"
_LOOKS = f"WITH given AS ({_GIVEN}),\nfound AS MATERIALIZED ({_FOUND})\n" + "\nUNION ALL ".join(
    (_HEADS, _MESSAGES, _PARTS, _CALLS, _RUNS)
)
_HEAD_NUMBERS = itemgetter(*(PLACES[name] for name in _HEAD))
_HEAD_TEXT = itemgetter(*TEXT_PLACES[: len(_HEAD_TEXTS)])
_RUN_TEXT = itemgetter(*TEXT_PLACES[:2])
_ID, _SEQ = (1 + MESSAGE_COLUMNS.index(name) for name in ("message_id", "seq"))
_IDX = itemgetter(2)


def looks_statement(requests: Iterable[AppendRequest]) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters, for `Looks`."""
    asked = list(requests)
    numbers = _numbers_of(asked)
    ids = list(dict.fromkeys((numbers[_seen_branch(request)], id_) for request in asked for id_ in request.message_ids))
    branches = [key for key, _ in numbers]
    return _LOOKS, {
        "tenant": asked[0].tenant.key,
        "thread": [thread for _, thread, _ in branches],
        "branch": [branch_column(branch) for _, _, branch in branches],
        "users": [user for _, user in numbers],
        "ids_numbers": [number for number, _ in ids],
        "ids": [id_ for _, id_ in ids],
        "runs": list(dict.fromkeys(run for request in asked for run in request.runs)),
    }


def _seen_branch(request: AppendRequest) -> tuple[BranchKey, str | None]:
    """The branch, and the user who asks for it."""
    return branch_key(request), request.tenant.user


def _numbers_of(requests: Iterable[AppendRequest]) -> dict[tuple[BranchKey, str | None], int]:
    return {key: number for number, key in enumerate(dict.fromkeys(map(_seen_branch, requests)), 1)}


@dataclass(slots=True)
class _BranchRows:
    """The rows of one branch."""

    head: Row | None = None
    messages: dict[str, Row] = field(default_factory=dict)
    parts: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)


class Looks:
    """What the statement found for its requests."""

    def __init__(self, requests: Iterable[AppendRequest], rows: Sequence[Row]) -> None:
        self._numbers = _numbers_of(requests)
        self._found: dict[int, _BranchRows] = defaultdict(_BranchRows)
        self._threads: dict[str, str] = {}  # of each run that exists
        for of_arm in rows:
            self._take(of_arm)

    def _take(self, row: Row) -> None:
        number, arm = divmod(row[0], _ARMS)
        of_branch = self._found[number]
        if arm == _RUN:
            run, thread = _RUN_TEXT(row)
            self._threads[run] = thread
        elif arm == HEADER:
            of_branch.head = row
        elif arm == MESSAGE:
            of_branch.messages[row[_ID + 1]] = MESSAGE_OF(row)
        elif arm == PART:
            of_branch.parts.append(PART_OF(row))
        else:
            of_branch.calls.append(CALL_OF(row))

    def refuse_foreign_run(self, request: AppendRequest) -> None:
        """Raises RunConflict."""
        for run in request.runs:
            if self._threads.get(run, request.thread) != request.thread:
                raise run_conflict(run)

    def _of(self, request: AppendRequest) -> _BranchRows:
        return self._found[self._numbers[_seen_branch(request)]]

    def seen(self, request: AppendRequest) -> Preflight:
        """What a preflight of the request sees. Raises DamagedCell and EncryptionError."""
        of_branch = self._of(request)
        if of_branch.head is None:
            return read_preflight(request, [])
        stored = [of_branch.messages[id_] for id_ in request.message_ids if id_ in of_branch.messages]
        ids = [(message[_ID], message[0], message[_SEQ]) for message in stored]
        return read_preflight(
            request, [(*_preflight(of_branch.head), *ids_of_message) for ids_of_message in ids or [(None, None, None)]]
        )

    def stored(self, request: AppendRequest) -> list[ChatMessage]:
        """The stored messages that have an id of the batch, in the order of the batch. Raises EncryptionError,
        DamagedCell and HalfStored.
        """
        of_branch = self._of(request)
        messages = [of_branch.messages[id_] for id_ in request.message_ids if id_ in of_branch.messages]
        where = {(message[0], message[_SEQ]) for message in messages}
        parts, calls = (
            sorted([row for row in rows if (row[0], row[1]) in where], key=_IDX)
            for rows in (of_branch.parts, of_branch.calls)
        )
        return decode_messages(request.tenant, request.thread_id, messages, parts, calls)


def _preflight(head: Row) -> tuple[Any, ...]:
    """The columns of a preflight before those of an id."""
    user_id, rules, encrypted, lineage, stamp, absent, last_role, open_calls, partial_seq = _HEAD_TEXT(head)
    branch, active_branch, forked, last_seq = _HEAD_NUMBERS(head)
    stamp, absent, partial_seq = (None if text is None else int(text) for text in (stamp, absent, partial_seq))
    facts = (user_id, rules, active_branch, forked, encrypted is not None, branch, lineage, stamp, absent)
    return *facts, last_seq, last_role, open_calls, partial_seq
