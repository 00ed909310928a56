"""Checks every thread of a tenant: all of its cells, and the path of its active branch against the rules. Then the
values of users and of the tenant.

A batch is up to THREADS threads that follow each other in the order of their ids, so that each table is read by a range
of its keys. The number of statements grows with the number of batches. A thread of more than MESSAGES messages is read
by itself, in bounded memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Select, Table, Text, and_, literal, select, tuple_, type_coerce

from chatledger.errors import ChatLedgerError, ThreadNotFound
from chatledger.models import ChatMessage, Progress, Thread
from chatledger.rules import CheckedThread, Finding
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.check.branch import Stored, damage, empty_positions, judge_path, walk
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.path import Path, Segment, cut, damaged_active_branch, read_lineage, scans, without
from chatledger.storage.lists.thread_ids import thread_count
from chatledger.storage.rows.changes import to_change
from chatledger.storage.rows.decode_messages import decode_each, is_damage
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.rows.feedback import FEEDBACK_COLUMNS, to_feedback
from chatledger.storage.rows.kv import KV_COLUMNS, to_value
from chatledger.storage.rows.outputs import to_agent, to_output
from chatledger.storage.rows.owned import own_thread
from chatledger.storage.rows.runs import to_run
from chatledger.storage.schema.tables import (
    agents,
    branches,
    feedback,
    kv,
    messages,
    outputs,
    revisions,
    run_decisions,
    run_leases,
    runs,
    threads,
)
from chatledger.storage.schema.text import decode_text, encode_json, encode_text

THREADS = 500
VALUES = 100
"""The most values of users and of the tenant that are read at a time."""
MESSAGES = 5_000


async def check(scope: Scope, thread_id: str | None, progress: Progress | None) -> AsyncIterator[CheckedThread]:
    """The given thread, or all threads in the order of their ids, and then the damaged values that are in no thread.
    Each batch is read in a snapshot of its own. Raises ThreadNotFound.
    """
    tenant = scope.tenant
    if thread_id is not None:
        own = select(threads).where(own_thread(tenant, thread_id))
        only = await scope.read(partial(_check, tenant=tenant, of_batch=own), snapshot=True)
        if not only:
            raise ThreadNotFound(thread_id)
        yield only[0]
        return
    total = 0 if progress is None else await scope.read(lambda sql: thread_count(sql, tenant))
    done, last = 0, ""
    while batch := await scope.read(partial(_check_after, tenant=tenant, after=last), snapshot=True):
        for checked in batch:
            yield checked
        done, last = done + len(batch), batch[-1].thread_id or ""
        if progress is not None:
            progress(done, max(done, total))
    findings: list[Finding] = []
    place: tuple[str, ...] | None = ("",) * len(_VALUE_KEY)
    while place is not None:
        damaged, place = await scope.read(partial(_check_values, tenant=tenant, after=place))
        findings += damaged
    if findings:
        yield CheckedThread(None, findings)


def _check_after(sql: WriteSql, tenant: Tenant, after: str) -> list[CheckedThread]:
    own = and_(threads.c.tenant_id == tenant.name, threads.c.thread_id > after)
    return _check(sql, tenant, select(threads).where(own).order_by(threads.c.thread_id).limit(THREADS))


_VALUE_KEY = tuple(kv.c[name] for name in ("kind", "scope_id", "namespace", "key"))


def _check_values(
    sql: WriteSql, tenant: Tenant, after: tuple[str, ...]
) -> tuple[list[Finding], tuple[str, ...] | None]:
    """The findings of a batch of values of users and of the tenant, and the place of the last value as it is stored;
    None after the last batch.
    """
    stored = [type_coerce(column, Text()) for column in _VALUE_KEY]
    behind = tuple_(*stored) > tuple_(*(literal(text, Text()) for text in after))
    own = (kv.c.tenant_id == tenant.name, kv.c.kind != "thread", behind)
    columns = (*KV_COLUMNS, *(column.label(f"place_{number}") for number, column in enumerate(stored)))
    rows = sql.execute(select(*columns).where(*own).order_by(*stored).limit(VALUES)).mappings().all()
    checked = _Checked("", 0)
    for row in rows:
        _read(checked, to_value, tenant, {column.name: row[column.name] for column in KV_COLUMNS})
    last = tuple(rows[-1][f"place_{number}"] for number in range(len(stored))) if len(rows) == VALUES else None
    return checked.findings, last


@dataclass(slots=True)
class _Checked:
    """A thread while it is checked. `paths` are those of its branches whose rows can be read. `empty` are the positions
    of which the records of changes say that they hold no message.
    """

    thread_id: str
    active: int
    findings: list[Finding] = field(default_factory=list)
    paths: dict[int, Path] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        """The number of messages that all branches store, or more."""
        return sum(segment.last - segment.first + 1 for segment in self.stored())

    def stored(self, but: Sequence[Segment] = ()) -> list[Segment]:
        """The intervals of rows that the branches store, each once, without those of `but`."""
        known: dict[int, list[Segment]] = {}
        for segment in but:
            known.setdefault(segment.branch, []).append(segment)
        segments: list[Segment] = []
        for path in self.paths.values():
            for segment in cut(path.segments, 1, path.last_seq):
                new = without([segment], known.setdefault(segment.branch, []))
                known[segment.branch] += new
                segments += new
        return segments


def _check(sql: WriteSql, tenant: Tenant, of_batch: Select[Any]) -> list[CheckedThread]:
    """The threads of a statement, which follow each other in the order of their ids."""
    rows = [row for row in sql.execute(of_batch).mappings().all() if isinstance(row["thread_id"], str)]
    if not rows:
        return []
    batch = {row["thread_id"]: _Checked(row["thread_id"], row["active_branch"]) for row in rows}
    for row in rows:
        _read(batch[row["thread_id"]], _read_thread, tenant, row)
    for table, read in _BESIDE.items():
        for row in sql.execute(_of_threads(table, tenant, rows[0]["thread_id"], rows[-1]["thread_id"])).mappings():
            cells = dict(row)
            thread = batch[cells.pop("checked")]
            if table is revisions:
                thread.empty.update(empty_positions(cells["seq"], cells["kind"], cells["target_seq"]))
            path = _read(thread, read, tenant, cells)
            if isinstance(path, Path):
                thread.paths[path.branch] = path
    for group in _groups(list(batch.values())):
        _judge_group(sql, tenant, group)
    return [
        CheckedThread(thread.thread_id, sorted(thread.findings, key=lambda finding: finding.seq))
        for thread in batch.values()
    ]


# --- The rows beside the messages -------------------------------------------------------------------------------------


def _read(thread: _Checked, read: Callable[[Tenant, Any], object], tenant: Tenant, row: Any) -> object:
    """The object that `read` makes of the row; None, and a finding, if the row is damaged."""
    try:
        return read(tenant, row)
    except ChatLedgerError as error:
        if not is_damage(error):
            raise
        thread.findings.append(damage(0, error))
        return None


def _read_thread(tenant: Tenant, row: Any) -> Thread:
    fields = decrypt_values(tenant, threads, {name: row[name] for name in row if name != "tenant_id"})
    beside = {"version": fields.pop("revision") or 0}
    return to_model(Thread, threads, fields, {**fields, **beside}, {"version": "revision"})


def _read_branch(tenant: Tenant, row: Any) -> Path:
    values = decrypt_values(tenant, branches, row)
    thread_id, branch, last_seq = values["thread_id"], values["branch"], values["last_seq"]
    read_tip(thread_id, branch, last_seq, None, encode_json(values["open_calls"]), values["partial_seq"])
    return Path(branch, last_seq, read_lineage(values["lineage"], thread_id, branch), values["stamp"], values["absent"])


def _read_digest(tenant: Tenant, row: Any) -> object:
    """The digest of a redacted message. Its other cells are read with the messages."""
    return decrypt_values(tenant, messages, row)


def _read_lease(tenant: Tenant, row: Any) -> object:
    return decrypt_values(tenant, run_leases, row)


def _read_decision(tenant: Tenant, row: Any) -> object:
    return decrypt_values(tenant, run_decisions, row)


_BESIDE: dict[Table, Callable[[Tenant, Any], object]] = {
    branches: _read_branch,
    runs: to_run,
    run_leases: _read_lease,
    run_decisions: _read_decision,
    feedback: to_feedback,
    agents: to_agent,
    outputs: to_output,
    revisions: to_change,
    messages: _read_digest,
    kv: to_value,
}


def _of_threads(table: Table, tenant: Tenant, first: str, last: str) -> Select[Any]:
    """The rows of a range of threads; the column `checked` is the thread."""
    if table is feedback:  # its own thread_id is that of the message that it is about, and may be NULL
        columns = [feedback.c[name] for name in FEEDBACK_COLUMNS]
        of_run = and_(runs.c.tenant_id == feedback.c.tenant_id, runs.c.run_id == feedback.c.run_id)
        own = (runs.c.tenant_id == tenant.name, runs.c.thread_id >= first, runs.c.thread_id <= last)
        return select(*columns, runs.c.thread_id.label("checked")).select_from(runs.join(feedback, of_run)).where(*own)
    if table is kv:
        of_threads = (kv.c.tenant_id == tenant.name, kv.c.kind == "thread")
        return select(*KV_COLUMNS, kv.c.scope_id.label("checked")).where(
            *of_threads, kv.c.scope_id >= first, kv.c.scope_id <= last
        )
    own = (table.c.tenant_id == tenant.name, table.c.thread_id >= first, table.c.thread_id <= last)
    if table is messages:
        digests = (messages.c.thread_id, messages.c.branch, messages.c.seq, messages.c.digest)
        return select(*digests, messages.c.thread_id.label("checked")).where(*own, messages.c.digest.is_not(None))
    return select(table, table.c.thread_id.label("checked")).where(*own)


# --- Messages ---------------------------------------------------------------------------------------------------------

Reader = Callable[[list[Segment], int], Iterable[Stored]]
"""Gives the messages of segments up to a seq."""


def _groups(batch: Sequence[_Checked]) -> Iterator[list[_Checked]]:
    """Neighbours of up to MESSAGES messages together. A thread of more messages is alone."""
    group: list[_Checked] = []
    size = 0
    for thread in batch:
        if group and size + thread.size > MESSAGES:
            yield group
            group, size = [], 0
        group.append(thread)
        size += thread.size
    yield group


def _judge_group(sql: WriteSql, tenant: Tenant, group: Sequence[_Checked]) -> None:
    first = group[0]
    if first.size > MESSAGES:
        _judge(first, lambda segments, last: walk(sql, tenant, encode_text(first.thread_id), segments, last))
        return
    stored = _load(sql, tenant, encode_text(first.thread_id), encode_text(group[-1].thread_id))
    for thread in group:
        _judge(thread, partial(_take, stored.get(thread.thread_id, {})))


def _judge(thread: _Checked, read: Reader) -> None:
    path = thread.paths.get(thread.active)
    on_path = [] if path is None else cut(path.segments, 1, path.last_seq)
    if path is not None:
        thread.findings += judge_path(path, read(path.segments, path.last_seq), thread.empty)
    elif not thread.findings:
        thread.findings.append(damage(0, damaged_active_branch(thread.thread_id)))
    for segment in thread.stored(but=on_path):  # the messages of other branches
        rest = read([segment], segment.last)
        thread.findings += [damage(seq, entry) for _, seq, entry in rest if not isinstance(entry, ChatMessage)]


def _take(stored: dict[int, list[Stored]], segments: list[Segment], last: int) -> Iterator[Stored]:
    for branch, low, high in cut(segments, 1, last):
        yield from (entry for entry in stored.get(branch, ()) if low <= entry[1] <= high)


def _load(sql: WriteSql, tenant: Tenant, first: str, last: str) -> dict[str, dict[int, list[Stored]]]:
    """The messages of a range of threads, by thread and branch, in order of seq."""
    place = {"tenant": tenant.key, "first": first, "last": last}
    messages, parts, calls = (
        {thread: list(rows) for thread, rows in groupby(sql.fetch(scan, place), key=_FIRST)} for scan in _SCANS
    )
    loaded: dict[str, dict[int, list[Stored]]] = {}
    for thread, rows in messages.items():
        thread_id = decode_text(thread)
        tables = (rows, parts.get(thread, ()), calls.get(thread, ()))
        decoded = decode_each(tenant, thread_id, *([row[1:] for row in table] for table in tables))
        loaded[thread_id] = {branch: list(those) for branch, those in groupby(decoded, key=_FIRST)}
    return loaded


_FIRST = itemgetter(0)


_SCANS = scans("thread_id, branch", "thread_id BETWEEN :first AND :last", "thread_id, branch, ")
