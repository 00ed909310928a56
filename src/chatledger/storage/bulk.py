"""Bulk loading: whole new threads, through the same rules as an append, by COPY or one executemany a table.

For imports. A thread that is new has no tip to guard and no ids to look for, so its rows can be made without asking the
database, and sent together with those of hundreds of others. All of a batch is stored, or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import AlreadyExists
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, RulesLevel, Thread, Violation
from chatledger.rules import Judgement, Tip, judge
from chatledger.storage.constraints import Kind, read_failure
from chatledger.storage.erasures import refuse_erased
from chatledger.storage.lineage import END, Segment, write_lineage
from chatledger.storage.look import write_open_calls
from chatledger.storage.request import make_request
from chatledger.storage.sql import Sql
from chatledger.storage.text import encode_json, encode_key, encode_text, to_microseconds
from chatledger.storage.write import TABLES, plan_rows

_KEY = ("tenant_id", "thread_id")
_COLUMNS: Mapping[str, Sequence[str]] = {
    "threads": (*_KEY, "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at"),
    "branches": (
        *(*_KEY, "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq"),
        "created_at",
    ),
    "runs": (*_KEY, "run_id", "status", "started_at"),
    **{name: (*_KEY, "branch", *columns) for name, columns in TABLES.items()},
}

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class NewThread:
    """A thread that is not stored yet, judged, as rows by table."""

    tenant: str
    thread: Thread
    judgement: Judgement
    rows: Rows

    @property
    def violations(self) -> list[Violation]:
        """What all its messages violate."""
        return [violation for judged in self.judgement.messages for violation in judged.violations]


def encode_thread(tenant: str, thread: Thread, messages: Sequence[ChatMessage], *, level: RulesLevel) -> NewThread:
    """Raises RuleViolation, IdConflict and LimitExceeded, as an append of all the messages to the thread would."""
    # An append is one round trip, and limited; this is as much as the caller batches.
    request = make_request(tenant, thread.thread_id, messages, limits=None)
    judgement = judge(Tip(), request.messages, branch=0, level=thread.rules or level)
    key = (request.tenant, request.thread)
    place = (*key, 0)
    rows = {
        "threads": [(*key, *_thread_row(thread))],
        "branches": [(*key, *_branch_row(thread, judgement.tip))],
        "runs": [(*key, run, "running", request.now) for run in request.runs],
    }
    for name, own in plan_rows(request, judgement).items():
        rows[name] = [place + row for row in own]
    return NewThread(tenant, thread, judgement, rows)


def _thread_row(thread: Thread) -> tuple[Any, ...]:
    return (
        None if thread.user_id is None else encode_key(thread.user_id, "user_id"),
        None if thread.title is None else encode_text(thread.title),
        encode_json(thread.metadata),
        thread.rules,
        thread.active_branch,
        thread.created_at,
        thread.active_at,
    )


def _branch_row(thread: Thread, tip: Tip) -> tuple[Any, ...]:
    return (
        0,
        write_lineage([Segment(0, 1, END)]),
        tip.last_seq,
        new_stamp(),
        None if tip.last_role is None else encode_text(tip.last_role),
        write_open_calls(tip),
        tip.partial_seq,
        thread.created_at,
    )


def load_threads(sql: Sql, new: Sequence[NewThread]) -> None:
    """Store them all, in a transaction. Raises AlreadyExists if one of them, or a run of theirs, is stored already, and
    Erased if one was.
    """
    for tenant, ids in _ids_by_tenant(new).items():
        refuse_erased(sql, tenant, ids)
    # In the order of their keys, rows that are neighbours in the tables and their indexes come one after the other.
    new = sorted(new, key=lambda one: one.rows["threads"][0][:2])
    try:
        for table, columns in _COLUMNS.items():
            rows = [row for thread in new for row in thread.rows[table]]
            if rows:
                sql.load(table, columns, rows if sql.dialect == "postgresql" else _with_microseconds(columns, rows))
    except Exception as error:
        failure = read_failure(error)
        if failure is None or failure.kind is not Kind.UNIQUE:
            raise
        raise AlreadyExists("", f"one of {len(new)} new threads is stored already: {failure.detail}") from error


def _with_microseconds(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """The rows with their moments as integers; in all tables these are the last columns."""
    moments = sum(column.endswith("_at") for column in columns)
    if not moments:
        return rows
    return [row[:-moments] + tuple(map(to_microseconds, row[-moments:])) for row in rows]


def _ids_by_tenant(new: Sequence[NewThread]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for one in new:
        ids[one.tenant].append(one.thread.thread_id)
    return ids
