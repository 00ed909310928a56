"""Branches: an edit or a regenerated answer is another path through the thread. A fork copies no message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, and_, func, insert, select, update

from chatledger.errors import InvalidCursor, RuleViolation, ThreadNotFound
from chatledger.ids import new_stamp
from chatledger.models import Branch, RulesLevel
from chatledger.rules import Tip
from chatledger.storage.append.preflight import write_open_calls
from chatledger.storage.append.request import moved_since, read_expected
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.fold import fold_tip
from chatledger.storage.history.lineages import AT_ONCE, apart_if_long
from chatledger.storage.history.path import (
    Path,
    Segment,
    cut,
    damaged_active_branch,
    find_path,
    forked,
    read_lineage,
    write_lineage,
)
from chatledger.storage.history.places import At, seek
from chatledger.storage.history.window_request import END, Window, branch_column
from chatledger.storage.lists.cursors import part_of
from chatledger.storage.rows.encryption import damaged_cell, to_model
from chatledger.storage.rows.owned import of_thread, own_thread
from chatledger.storage.schema.tables import branches, threads
from chatledger.storage.schema.text import Mark, decode_json, encode_text, read_mark, write_mark


def _key(window: Window) -> dict[str, str]:
    """The key of the thread for Core statements, which encode text themselves."""
    return {"tenant_id": window.tenant.name, "thread_id": window.thread_id}


def own_rows(table: Table, window: Window) -> Any:
    if table is threads:
        return own_thread(window.tenant, window.thread_id)
    return of_thread(table, window.tenant, window.thread_id)


async def fork_at(
    scope: Scope,
    thread_id: str,
    at: At,
    *,
    branch: int | None = None,
    activate: bool = True,
    expected: str | None = None,
) -> Branch:
    """Raises as `branches.fork`, and InvalidCursor for a seq that the branch does not have."""
    window = Window.of(scope.tenant, thread_id, branch)
    mark = None if expected is None else read_expected(expected, window.thread, branch)
    return await scope.write(lambda sql: make_fork(sql, window, at, activate, mark, scope.rules), moves=window.thread)


def make_fork(
    sql: WriteSql, window: Window, place: At, activate: bool, expected: Mark | None, default_rules: RulesLevel
) -> Branch:
    if expected is not None:
        _advance(sql, window, expected)
    rules = _hold(sql, window)
    path, at = seek(sql, window, place)
    if expected is not None and path.branch != expected.branch:
        raise moved_since(expected, window.thread_id, path.branch, path.last_seq)
    if not 0 <= at <= path.last_seq:
        raise InvalidCursor(at, f"branch {path.branch} ends at seq {path.last_seq}; fork it at 0 to {path.last_seq}")
    tip = fold_tip(sql, replace(window, branch=path.branch), path, at)
    if tip.partial_seq is not None:  # its writer would write to both branches
        raise RuleViolation("R10", at, "a fork would share a message that is still partial", where=f"seq {at}")
    if tip.open_calls and (rules or default_rules) != "lenient":
        raise RuleViolation("R8", at, "a fork would share calls that have no result yet", where=f"seq {at}")
    last = sql.execute(select(func.max(branches.c.branch)).where(own_rows(branches, window))).scalar_one()
    return _store(sql, window, path, at, last + 1, tip, activate)


def _hold(sql: WriteSql, window: Window) -> RulesLevel | None:
    """Lock the active branch and the thread until the transaction ends, and return the thread's rules.

    The active branch gets a new stamp, so that an append that was judged for "the active branch" is not written to the
    branch that was active before. An append locks the branch first and then the thread, so this function does the same.
    Another branch may become active before it has both locks; then it starts over.
    """
    of_thread = select(threads.c.active_branch, threads.c.rules).where(own_rows(threads, window))
    row = sql.execute(of_thread).one_or_none()
    while row is not None:
        left = and_(own_rows(branches, window), branches.c.branch == row.active_branch)
        sql.execute(update(branches).where(left).values(stamp=new_stamp()))
        held = sql.execute(of_thread.with_for_update()).one_or_none()
        if held is not None and held.active_branch == row.active_branch:
            rules: RulesLevel | None = held.rules
            return rules
        row = held
    raise ThreadNotFound(window.thread_id)


def _store(sql: WriteSql, window: Window, path: Path, at: int, number: int, tip: Tip, activate: bool) -> Branch:
    now = datetime.now(UTC)
    lineage = forked(path.segments, number, at)
    stamp = new_stamp()
    row = {
        **_key(window),
        "branch": number,
        "lineage": write_lineage(lineage),
        "last_seq": at,
        "absent": _absent(sql, window, path, at),
        "stamp": stamp,
        "last_role": tip.last_role,
        "open_calls": decode_json(write_open_calls(tip)),
        "created_at": now,
    }
    sql.execute(insert(branches).values(**row))
    if activate:
        sql.execute(update(threads).where(own_rows(threads, window)).values(active_branch=number))
    return Branch(
        thread_id=window.thread_id,
        branch=number,
        **_fork_point(lineage),
        last_seq=at,
        mark=write_mark(window.thread, number, at, stamp),
        active=activate,
        created_at=now,
    )


_COUNT = """
SELECT count(*) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
"""


def _absent(sql: WriteSql, window: Window, path: Path, at: int) -> int | None:
    """The number of positions up to `at` without a message. It is counted only if the path has such positions."""
    if not path.absent:
        return path.absent
    counted = 0
    for branch, first, last in cut(path.segments, 1, at):
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        counted += sql.fetch(_COUNT, {**place, "first": first, "last": last})[0][0]
    return at - counted


def activate_branch(sql: WriteSql, window: Window, branch: int) -> Branch:
    _hold(sql, window)
    find_path(sql, window)
    sql.execute(update(threads).where(own_rows(threads, window)).values(active_branch=branch))
    return get_branch(sql, window)


_OF_THREAD = and_(*(branches.c[name] == threads.c[name] for name in ("tenant_id", "thread_id")))


async def branches_of(scope: Scope, thread_id: str, *, skip: int = 0, limit: int | None = None) -> list[Branch]:
    """`limit` of the branches (None: all), after the first `skip`. Raises ThreadNotFound and DamagedCell."""
    window, part = Window.of(scope.tenant, thread_id, None), part_of(skip, limit)
    return await scope.read(lambda sql: _list_branches(sql, window, part))


def _list_branches(sql: ReadSql, window: Window, part: slice) -> list[Branch]:
    listed: list[Branch] = []
    skip, left = part.start or 0, END if part.stop is None else part.stop - (part.start or 0)
    while left > 0:
        some = _read_branches(sql, window, min(left, AT_ONCE), skip + len(listed))
        listed, left = listed + some, left - len(some)
        if len(some) < AT_ONCE:
            break
    if not listed:  # raises if there is no such thread
        find_path(sql, window)
    return listed


def _read_branches(sql: ReadSql, window: Window, count: int, skip: int) -> list[Branch]:
    statement = select(branches, threads.c.active_branch).join(threads, _OF_THREAD).where(own_rows(branches, window))
    in_order = statement.order_by(branches.c.branch).limit(count).offset(skip)
    rows = sql.execute(in_order).mappings().all()
    return apart_if_long(lambda: [_to_branch(row) for row in rows], [row["lineage"] for row in rows])


def get_branch(sql: ReadSql, window: Window) -> Branch:
    """Raises ThreadNotFound and BranchNotFound."""
    wanted = threads.c.active_branch if window.branch is None else branch_column(window.branch)
    own = and_(own_rows(branches, window), branches.c.branch == wanted)
    row = sql.execute(select(branches, threads.c.active_branch).join(threads, _OF_THREAD).where(own)).mappings().first()
    if row is None:
        find_path(sql, window)  # says what is not there
        raise damaged_active_branch(window.thread_id)
    return _to_branch(row)


def _fork_point(lineage: Sequence[Segment]) -> dict[str, int]:
    """The last shared position: the branch that it is of, and its seq."""
    shared = [segment for segment in lineage if segment.branch != lineage[-1].branch]
    return {"forked_from": shared[-1].branch, "forked_at": shared[-1].last} if shared else {}


def _to_branch(row: Mapping[Any, Any]) -> Branch:
    """Raises DamagedCell."""
    thread_id, branch = row["thread_id"], row["branch"]
    for name in ("last_seq", "stamp"):
        if type(row[name]) is not int:
            raise damaged_cell(branches, name, row)
    fields = {
        "thread_id": thread_id,
        "branch": branch,
        **_fork_point(read_lineage(row["lineage"], thread_id, branch)),
        "last_seq": row["last_seq"],
        "mark": write_mark(encode_text(thread_id), branch, row["last_seq"], row["stamp"]),
        "active": branch == row["active_branch"],
        "created_at": row["created_at"],
    }
    return to_model(Branch, branches, row, fields)


# --- Marks ------------------------------------------------------------------------------------------------------------


async def advance(scope: Scope, thread_id: str, mark: str) -> str:
    """Lock the marked branch until the transaction ends, and return its new mark. Every older mark is then stale. A
    caller that writes outputs or agents, and no messages, calls this first.

    Raises ThreadNotFound, BranchNotFound, and VersionConflict if the branch changed since it was marked.
    """
    window = Window.of(scope.tenant, thread_id)
    state = read_mark(mark, window.thread, "mark")
    return await scope.write(lambda sql: _advance(sql, window, state))


def _advance(sql: WriteSql, window: Window, mark: Mark) -> str:
    """The mark with a new stamp. The branch's row stays locked until the transaction ends."""
    stamp = new_stamp()
    state = (branches.c.branch == mark.branch, branches.c.last_seq == mark.version, branches.c.stamp == mark.stamp)
    own = and_(own_rows(branches, window), *state)
    if sql.execute(update(branches).where(own).values(stamp=stamp)).rowcount:
        return write_mark(window.thread, mark.branch, mark.version, stamp)
    current = find_path(sql, replace(window, branch=mark.branch))
    raise moved_since(mark, window.thread_id, current.branch, current.last_seq)
