"""Checks a stored branch against the rules, from its first message on, in bounded memory."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, func, select

from chatledger.errors import ChatLedgerError, RuleViolation
from chatledger.models import ChatMessage, RulesLevel
from chatledger.rules import Finding, check_messages, missing
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.path import Path, Segment, cut, find_path, load_each
from chatledger.storage.history.portions import Allowance, portions
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.decode_messages import HalfStored
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.tables import branches, revisions

MOST_JUDGED, MOST_JUDGED_MIB = 20_000, 256
"""The messages that a change of rules judges, those of each branch anew, and their size."""
_WAY_OUT = "copy the active path (threads.copy), and give the rules to the copy, which has one branch"

Stamps = dict[int, int]
"""The stamps of branches, by their numbers."""
Stored = tuple[int, int, ChatMessage | ChatLedgerError]
"""A branch, a seq, and its message or the reason why it cannot be read."""


async def check_thread(scope: Scope, thread_id: str, branch: int | None = None) -> list[Finding]:
    """The findings of one branch (None: the active one) in order of seq, with the calls that are open at its end. Reads
    the whole branch, in bounded memory. Raises ThreadNotFound and BranchNotFound.
    """
    return await scope.read(lambda sql: check_branch(sql, scope.tenant, thread_id, branch), snapshot=True)


def check_branch(
    sql: ReadSql, tenant: Tenant, thread_id: str, branch: int | None, allowance: Allowance | None = None
) -> list[Finding]:
    """The rules that the branch breaks, R13 included, in order of seq. Raises ThreadNotFound, BranchNotFound and, with
    an allowance, LimitExceeded.
    """
    window = Window.of(tenant, thread_id, branch)
    path = find_path(sql, window)
    empty = load_empty(sql, window) if path.absent else ()
    return judge_path(path, walk(sql, tenant, window.thread, path.segments, path.last_seq, allowance), empty)


def judge_path(path: Path, stored: Iterable[Stored], empty: Container[int] = ()) -> list[Finding]:
    """The findings of the messages of a path, in order of seq. `empty` are the positions of which a record says that
    they hold no message.

    A damaged message breaks R11, because it is not as it was committed; its content is not judged. A missing message
    breaks R2.
    """
    damaged: dict[int, Finding] = {}
    last = count = 0

    def whole() -> Iterator[ChatMessage]:
        nonlocal last, count
        for _, seq, entry in stored:
            last, count = seq, count + 1
            if isinstance(entry, ChatMessage):
                yield entry
            else:
                damaged[seq] = damage(seq, entry)

    findings = check_messages(whole(), empty)
    findings = [finding for finding in findings if not (finding.rule == "R2" and finding.seq - 1 in damaged)]
    absent = path.last_seq - count
    if missing(last, path.last_seq + 1, empty):
        findings.append(Finding(path.last_seq, "R2", f"seq {path.last_seq} is missing at the end"))
    elif absent != (path.absent or 0) and not any(finding.rule == "R2" for finding in findings):
        detail = f"{absent} positions hold no message, and the branch says {path.absent or 0}"
        findings.append(Finding(0, "R2", detail))
    return sorted([*findings, *damaged.values()], key=lambda finding: finding.seq)


def damage(seq: int, error: ChatLedgerError) -> Finding:
    """`seq` is 0 for what is no message."""
    return Finding(seq, "R11", f"stored in half: {error.missing}" if isinstance(error, HalfStored) else str(error))


def walk(
    sql: ReadSql,
    tenant: Tenant,
    thread: str,
    segments: list[Segment],
    last_seq: int,
    allowance: Allowance | None = None,
) -> Iterator[Stored]:
    """The messages of the segments up to `last_seq`, a portion at a time. Raises as `portions`."""
    for part in portions(sql, tenant, thread, cut(segments, 1, last_seq), allowance):
        yield from load_each(sql, tenant, thread, part)


def require_level(
    sql: WriteSql, tenant: Tenant, thread_id: str, level: RulesLevel, judged: Stamps | None = None
) -> None:
    """Judges the branches unless they are as they were when `judge_level` returned these stamps. Raises as it does."""
    if judged is None or judged != _stamps(sql, tenant, thread_id):
        judge_level(sql.reading(), tenant, thread_id, level)


def judge_level(sql: ReadSql, tenant: Tenant, thread_id: str, level: RulesLevel) -> Stamps:
    """The stamps of the branches, of which none breaks the level. Raises RuleViolation if one does; the error's `index`
    is then the seq; and LimitExceeded if all branches together have too much to read.
    """
    allowance = Allowance("a change of rules", MOST_JUDGED, MOST_JUDGED_MIB, _WAY_OUT)
    length = (branches.c.last_seq - func.coalesce(branches.c.absent, 0)).label("length")
    rows = sql.execute(select(length).where(*_of(tenant, thread_id))).all()
    allowance.require(sum(row.length for row in rows))
    stamps = _stamps(sql, tenant, thread_id)
    for branch in stamps:
        for finding in check_branch(sql, tenant, thread_id, branch, allowance):
            only_reported = finding.open or (level == "strict" and finding.severity == "advice")
            if not only_reported:
                where = f"seq {finding.seq} of branch {branch}"
                raise RuleViolation(finding.rule, finding.seq, finding.detail, where=where)
    return stamps


def _stamps(sql: ReadSql | WriteSql, tenant: Tenant, thread_id: str) -> Stamps:
    """A write that changes what a branch reads renews the stamp of a branch of the thread."""
    stamps = sql.execute(select(branches.c.branch, branches.c.stamp).where(*_of(tenant, thread_id)))
    return {row.branch: row.stamp for row in stamps}


def _of(tenant: Tenant, thread_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id


def load_empty(sql: ReadSql, window: Window) -> set[int]:
    """The positions that hold no message according to the records, on one branch or another. A fork also has the empty
    positions of the branches that it comes from, and its lineage may leave those branches out.
    """
    columns = (revisions.c.seq, revisions.c.kind, revisions.c.target_seq)
    own = (revisions.c.tenant_id == window.tenant.name, revisions.c.thread_id == window.thread_id)
    rows: Any = sql.execute(select(*columns).where(*own))
    return {position for seq, kind, target_seq in rows for position in empty_positions(seq, kind, target_seq)}


def empty_positions(seq: int, kind: str, target_seq: int) -> tuple[int, ...]:
    """The positions that hold no message because of a row of `revisions`: that of the change, and that of a message
    that was removed.
    """
    return (seq,) if kind == "revised" else (seq, target_seq)
