"""Creates a thread and its first branch: alone, or with the first append (`create=True`).

On PostgreSQL one statement creates the thread, its first branch and the messages, and reads the rows of a preflight. If
the thread exists, the statement writes nothing, and those rows are the preflight of the append. If the statement
neither created nor saw a thread, somebody else is creating it, or it was erased; the next attempt then looks under the
lock. Elsewhere a transaction creates the thread before the append is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from chatledger.errors import Erased
from chatledger.ids import erasure_digest, new_stamp
from chatledger.rules import Tip
from chatledger.storage.append.guarded_write import Guard, GuardedWrite, Step, write_by_table
from chatledger.storage.append.preflight import LOOK, Preflight, read_preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import Plan, TryAgain, Written, guarded, tip_columns
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.history.path import Segment, write_lineage
from chatledger.storage.history.window_request import END, branch_column
from chatledger.storage.rows.encrypted import UNLESS_ENCRYPTED, refuse_marked
from chatledger.storage.rows.secrets import ERASED, find_erased

FIRST_LINEAGE = write_lineage([Segment(0, 1, END)])
"""The lineage of a thread's first branch."""
_OF_THREAD = "tenant_id = :tenant AND thread_id = :thread"
_TYPES = {
    **dict.fromkeys(("tenant", "thread", "user", "title", "metadata", "rules", "kind"), "text"),
    **dict.fromkeys(("lineage", "last_role", "open_calls"), "text"),
    **dict.fromkeys(("last_seq", "new_stamp", "partial_seq"), "bigint"),
    "branch": "int",
    "now": "timestamptz",
    "created": "timestamptz",
}


def new_thread(request: AppendRequest, stamp: int = 0) -> Preflight:
    """The preflight of the thread as it would be right after its creation."""
    assert request.creation is not None
    found = request.branch in (None, 0)
    return Preflight(
        True,
        request.creation.rules,
        branch=0 if found else None,
        tip=Tip() if found else None,
        stamp=stamp,
        touched=request.now,
        user_id=request.tenant.user,
    )


def create_thread(sql: WriteSql, request: AppendRequest) -> Preflight | None:
    """Create the thread of the request, in a transaction. Returns None if the thread exists or another writer created
    it first. Raises Erased and EncryptionError.
    """
    seen = new_thread(request, new_stamp())
    parameters = _parameters(request) | {"branch": 0, "new_stamp": seen.stamp, **tip_columns(Tip())}
    write = GuardedWrite(_guard(plain=request.tenant.encryption is None), (), {}, parameters)
    if not sql.by_table and sql.fetch(*write.at_once("SELECT 1 FROM tip")):
        return seen
    made = sql.by_table and write_by_table(sql, write) is not None
    refuse_marked(sql, request.tenant)  # each caller has looked for the record
    if find_erased(sql, request.tenant, [request.thread_id]) is not None:
        raise Erased(request.thread_id)
    return seen if made else None


def creating_statement(plan: Plan) -> tuple[str, dict[str, Any]]:
    """The append as one statement that creates the thread, for `read_created`. The plan is judged on `new_thread`, and
    has no values of kv.
    """
    write = guarded(plan)
    write.guard = _guard(plain=plan.request.tenant.encryption is None)
    write.parameters |= _parameters(plan.request)
    write.parameters |= {"asked": branch_column(plan.request.branch), "ids": plan.request.message_ids}
    return write.at_once(_CREATED_OR_SEEN, _LOOK)


def read_created(request: AppendRequest, rows: Sequence[Row]) -> Written | Preflight | TryAgain:
    """The outcome from the rows of `creating_statement`: written, or the preflight. Raises DamagedCell."""
    created, *look = rows[0]
    if created:
        return Written(touched=True)
    if all(cell is None for cell in look):
        return TryAgain()
    return read_preflight(request, [row[1:] for row in rows])


def _parameters(request: AppendRequest) -> dict[str, Any]:
    creation, tenant = request.creation, request.tenant
    assert creation is not None
    title, metadata = words = creation.title, creation.metadata
    if words != (None, None) and tenant.encryption is not None:
        ((title, metadata),) = tenant.encryption.encrypt("threads", ("title", "metadata"), [words], request.thread)
    return {
        "tenant": tenant.key,
        "thread": request.thread,
        "user": tenant.user,
        "title": title,
        "metadata": metadata,
        "rules": creation.rules,
        "kind": creation.kind,
        "lineage": FIRST_LINEAGE,
        "now": request.now,
        "created": creation.created_at or request.now,
        "subject": erasure_digest("thread", request.thread_id),
    }


_THREAD_COLUMNS = (
    "INSERT INTO {schema}threads"
    " (tenant_id, thread_id, user_id, title, metadata, rules, kind, created_at, active_at, active_branch)"
)
_THREAD_VALUES = "tenant, thread, user, title, metadata, rules, kind, created, now"
_BRANCH_COLUMNS = (
    "INSERT INTO {schema}branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls,"
    " partial_seq, created_at)"
)
_BRANCH_VALUES = "tenant, thread, branch, lineage, last_seq, new_stamp, last_role, open_calls, partial_seq, created"


def _values(names: str, *, typed: bool) -> str:
    return ", ".join(f":{name}::{_TYPES[name]}" if typed else f":{name}" for name in names.split(", "))


_THREAD_BY_VALUES = (
    f"{_THREAD_COLUMNS} VALUES ({_values(_THREAD_VALUES, typed=False)}, 0) ON CONFLICT DO NOTHING RETURNING 1"
)
_BRANCH_BY_VALUES = f"{_BRANCH_COLUMNS} VALUES ({_values(_BRANCH_VALUES, typed=False)}) RETURNING 1"


def _insert_thread(*, plain: bool) -> str:
    """With `plain`, it inserts the thread only if the tenant is not encrypted. One snapshot decides all conditions:
    until an erasure commits, the statement sees the thread and creates nothing; from then on it sees the tombstone.
    """
    unless_encrypted = UNLESS_ENCRYPTED if plain else ""
    return (
        f"{_THREAD_COLUMNS} SELECT {_values(_THREAD_VALUES, typed=True)}, 0"
        f" WHERE NOT EXISTS ({ERASED}) AND NOT EXISTS (SELECT 1 FROM {{schema}}threads WHERE {_OF_THREAD})"
        f"{unless_encrypted} ON CONFLICT DO NOTHING RETURNING 1"
    )


_BRANCH_OF_MADE = f"{_BRANCH_COLUMNS} SELECT {_values(_BRANCH_VALUES, typed=True)} FROM made RETURNING 1"
_LOOK = (Step("seen", LOOK.replace(":branch::int", ":asked::int")),)
_CREATED_OR_SEEN = "SELECT (SELECT count(*) FROM tip), seen.* FROM (SELECT 1) AS one LEFT JOIN seen ON true"


@lru_cache(maxsize=2)
def _guard(*, plain: bool) -> Guard:
    """The guard of a write that begins a thread. Where it runs alone, its caller looks for a reason against the thread
    afterwards: an INSERT waits for an erasure of the thread, so only a later statement is certain to see its tombstone.
    """
    made = f"WITH made AS ({_insert_thread(plain=plain)}),\ntip AS ({_BRANCH_OF_MADE})"
    return Guard(made, (_THREAD_BY_VALUES, _BRANCH_BY_VALUES))
