"""What a migration to an older revision would discard: the rows and values that the older schema has no place for.

They are counted before any revision runs down. A migration that would lose some changes nothing and names them, unless
the caller says that they may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection

from chatledger.errors import StorageError

ADDED: Mapping[str, tuple[str, ...]] = {
    "0001": (
        "threads", "branches", "runs", "messages", "message_parts", "tool_calls", "tool_results", "feedback",
    ),
    "0002": ("agents", "outputs"),
    "0003": ("erasures", "kept_scores"),
    "0005": (
        "revisions", "kv", "tenants", "branches.absent", "threads.kind", "threads.archived_at", "threads.revision",
        "messages.revision", "messages.digest", "feedback.message_id", "feedback.call_idx", "feedback.user_id",
        "feedback.retracted_at",
    ),
    "0006": ("tenants.digest_secret", "tenants.tombstone_secret", "chatledger_version.encrypted_at"),
    "0007": ("tenants.kv_version", "chatledger_version.database_id"),
    "0008": (
        "run_leases", "run_decisions", "workers", "runs.question_id", "runs.branch", "runs.tools_of",
        "runs.call_secret", "runs.attempts",
    ),
    "0009": ("run_leases.user_id", "run_leases.place", "run_leases.database_id"),
}  # fmt: skip
"""The tables, and the columns of older tables, that each revision adds."""
_TOMBSTONES = frozenset({"erasures", "tenants.tombstone_secret"})
"""Without its secret, no tombstone is found."""
_REMOVED = "branches.absent"
_MADE_ANEW = frozenset({"chatledger_version.database_id", *ADDED["0009"]})
"""A migration makes them, so nothing is lost."""


class Allowed(NamedTuple):
    """What a migration may discard."""

    values: bool = False
    """Everything that may be discarded but tombstones."""
    tombstones: bool = False


NOTHING = Allowed()


def require_nothing_lost(connection: Connection, schema: str | None, current: str, to: str, allowed: Allowed) -> None:
    """Raises StorageError, with the counts, if the way from revision `current` down to `to` would discard what is not
    allowed. Removed and revised messages never are: in no older schema can a position be without a message.
    """
    counts = {
        name: connection.exec_driver_sql(query).scalar_one()
        for name, query in queries(current, to, schema).items()
        if name == _REMOVED or not (allowed.tombstones if name in _TOMBSTONES else allowed.values)
    }
    if removed := counts.pop(_REMOVED, 0):
        branches = f"{removed:,} branch" + ("" if removed == 1 else "es")
        raise StorageError(
            f"messages were removed or revised on {branches}, which no older schema can express: stay at {current}; "
            "nothing was changed"
        )
    lost = {name: count for name, count in counts.items() if count}
    if lost:
        raise StorageError(
            f"revision {to} has no place for what this database has at revision {current}: "
            f"{'; '.join(_counted(name, count) for name, count in lost.items())}; nothing was changed. {_advice(lost)}"
        )


def queries(current: str, to: str, schema: str | None) -> dict[str, str]:
    """The queries that count what the way from revision `current` down to `to` discards, by table or column."""
    lowest = "" if to == "base" else to
    added_since = [name for revision, added in ADDED.items() if lowest < revision <= current for name in added]
    names = [name for name in added_since if name not in _MADE_ANEW]
    apart = {_REMOVED, *_TOMBSTONES}  # they count by themselves, even if the whole table goes
    counted = [name for name in names if name in apart or "." not in name or name.partition(".")[0] not in names]
    return {name: _query(name, schema) for name in counted}


def comment(current: str, to: str, schema: str | None) -> str:
    """The queries for a person to run, as a comment in SQL; empty if the revision has a place for everything."""
    lines = [f"-- {query};" for query in queries(current, to, schema).values()]
    if lines:
        lines.insert(0, f"-- What a database at revision {current} would lose on the way down to {to}:")
    return "".join(f"{line}\n" for line in lines)


def _query(name: str, schema: str | None) -> str:
    table, _, column = name.partition(".")
    place = f'"{schema}".{table}' if schema else table
    if name == _REMOVED:
        return f"SELECT count(*) FROM {place} WHERE {column} > 0"
    if name == "tenants":  # a row without it has only secrets, which later revisions added
        column = "encrypted_at"
    return f"SELECT count({column or '*'}) FROM {place}"


def _counted(name: str, count: int) -> str:
    return f"{name}: {count:,} {'value' if '.' in name else 'row'}" + ("" if count == 1 else "s")


def _advice(lost: Mapping[str, int]) -> str:
    """What to pass. Without its tombstone, what was erased comes back with the next import."""
    lines = []
    if lost.keys() - _TOMBSTONES:
        lines.append("discard=True (--yes) to lose them")
    if lost.keys() & _TOMBSTONES:
        lines.append("discard_tombstones=True (--discard-tombstones) to let erased threads and users be imported again")
    return f"Make a backup, and pass {', and '.join(lines)}"
