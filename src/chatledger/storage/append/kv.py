"""Writes values of `kv`: one by one, or in the one statement of an append on PostgreSQL.

A write may expect a version: it then writes nothing unless the stored value has it. If it stands alone, such a write
returns no row, and its caller reads the stored version. In the statement of an append it has to undo the messages as
well, so the statement then divides by zero, which `drivers/errors.py` reads as a conflict. The next attempt is a
transaction. It writes the values one by one, and can say which of them conflicts.

No key gets a version again. A new value begins at the clock, which may step back, and above the highest version of all
values of the tenant that were deleted. What deletes values keeps that version, and no write does. An INSERT may have
waited for the deletion of its key, so another statement of its transaction reads that version afterwards. This is why
the one statement of an append only updates values: an append with a new key is a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from chatledger.arguments import DICT_OR_NONE, require
from chatledger.errors import InvalidArgument, LimitExceeded, VersionConflict
from chatledger.models.json import JsonValue, dumps, json_problem, text_bytes
from chatledger.models.kv import Put
from chatledger.storage.append.guarded_write import Step
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import decode_text, encode_key, encode_text, to_microseconds

MOST = 64
"""Maximum number of values in one append. Each value adds a part to its statement."""


class KvPlace(NamedTuple):
    """The scope and the namespace of values, as their columns store them."""

    kind: str
    scope_id: str
    namespace: str


@dataclass(frozen=True, slots=True)
class KvWrite:
    """A value to write. Key and value are as stored, the value before it is encrypted. `expected` is the version that
    the stored value must have: 0 requires that there is none, None accepts any version.
    """

    key: str
    value: str
    expected: int | None = None

    @property
    def bytes(self) -> int:
        return text_bytes(self.value)


def make_write(key: str, value: JsonValue, expected: int | None, *, named: str, argument: str) -> KvWrite:
    """`named` and `argument` are what errors call key and value. Raises InvalidArgument and LimitExceeded."""
    stored = encode_key(key, named)
    problem = json_problem(value)
    if problem is not None:
        raise InvalidArgument(argument, f"is not valid: {problem[0]}: {problem[1]}")
    return KvWrite(stored, encode_text(dumps(value)), expected)


def make_writes(kv: Mapping[str, JsonValue | Put]) -> tuple[KvWrite, ...]:
    """The values of an append, in the order of their keys, so that two appends never wait for each other."""
    require(DICT_OR_NONE, kv=kv)
    if len(kv) > MOST:
        raise LimitExceeded("values of kv", len(kv), MOST)
    puts = {key: given if isinstance(given, Put) else Put(given) for key, given in kv.items()}
    writes = [
        make_write(key, put.value, put.expected, named="a key of kv", argument=f"kv[{key!r}]")
        for key, put in puts.items()
    ]
    return tuple(sorted(writes, key=lambda write: write.key))


# --- One value --------------------------------------------------------------------------------------------------------

_KEY = "tenant_id = :tenant AND kind = :kind AND scope_id = :scope_id AND namespace = :namespace AND key = :key"
_VERSION = f"SELECT version FROM {{schema}}kv WHERE {_KEY}"
_DELETED = "(SELECT t.kv_version FROM {schema}tenants t WHERE t.tenant_id = :tenant)"
_ABOVE_DELETED = (
    f"UPDATE {{schema}}kv SET version = {_DELETED} + 1 WHERE {_KEY} AND version <= {_DELETED} RETURNING version"
)
_INTO = "INSERT INTO {schema}kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)"
_VALUES = "VALUES (:tenant, :kind, :scope_id, :namespace, :key, :value, :version, :now)"
_ALONE = {
    None: f"{_INTO} {_VALUES} ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE"
    " SET value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at RETURNING version",
    0: f"{_INTO} {_VALUES} ON CONFLICT DO NOTHING RETURNING version",
    1: f"UPDATE {{schema}}kv SET value = :value, version = version + 1, updated_at = :now WHERE {_KEY}"
    " AND version = :expected RETURNING version",
}


def store(sql: WriteSql, tenant: Tenant, place: KvPlace, write: KvWrite, now: datetime) -> int | None:
    """The new version. None, with nothing written, if the stored value does not have the version that is expected."""
    ((key, value),) = _encrypted(tenant, place, [write])
    parameters = {
        "tenant": tenant.key,
        **place._asdict(),
        "key": key,
        "value": value,
        "version": to_microseconds(now),
        "now": sql.moment(now),
        "expected": write.expected,
    }
    rows = sql.fetch(_ALONE[None if write.expected is None else min(write.expected, 1)], parameters)
    if rows and rows[0][0] == parameters["version"]:  # the value is new
        rows = sql.fetch(_ABOVE_DELETED, parameters) or rows
    return rows[0][0] if rows else None


def keeping(versions: str) -> str:
    """The statement that keeps a version, if it is higher. `versions` selects the tenant and the version."""
    return (
        f"INSERT INTO {{schema}}tenants AS s (tenant_id, kv_version) {versions}"
        " ON CONFLICT (tenant_id) DO UPDATE SET kv_version = excluded.kv_version"
        " WHERE s.kv_version IS NULL OR s.kv_version < excluded.kv_version"
    )


KEEP_VERSION = keeping("VALUES (:tenant, :version)")


def keep_version(sql: WriteSql, tenant: Tenant, version: int) -> None:
    """After a deletion of values, of which `version` is the highest; 0 if there were none. A transaction that deletes
    does it last, because all deletions of a tenant meet here.
    """
    if version:
        sql.fetch(KEEP_VERSION, {"tenant": tenant.key, "version": version})


def version_of(sql: WriteSql, tenant: Tenant, place: KvPlace, key: str) -> int:
    """The version of the stored value; 0 if there is none."""
    rows = sql.fetch(_VERSION, {"tenant": tenant.key, **place._asdict(), "key": key})
    return rows[0][0] if rows else 0


def put(sql: WriteSql, tenant: Tenant, place: KvPlace, write: KvWrite, now: datetime) -> int:
    """Write the value, in a transaction. Returns its new version. Raises VersionConflict."""
    while (version := store(sql, tenant, place, write, now)) is None:
        found = version_of(sql, tenant, place, write.key)
        if found != write.expected:  # else another writer came between the two statements
            raise VersionConflict("value", write.expected or 0, found, key=decode_text(write.key))
    return version


def of_thread(thread: str) -> KvPlace:
    """The place that an append writes to. `thread` is the key as stored."""
    return KvPlace("thread", thread, "")


def _encrypted(tenant: Tenant, place: KvPlace, writes: Sequence[KvWrite]) -> Sequence[Sequence[str]]:
    """Key and value of each write, as stored."""
    rows = [(write.key, write.value) for write in writes]
    return rows if tenant.encryption is None else tenant.encryption.encrypt("kv", ("key", "value"), rows, *place)


# --- In the statement of an append, on PostgreSQL ---------------------------------------------------------------------

Forms = tuple[bool, ...]
"""For each value of an append, whether it expects a version."""


def bind(tenant: Tenant, thread: str, writes: Sequence[KvWrite], now: datetime, parameters: dict[str, Any]) -> Forms:
    """Add the parameters of the writes. They are scalars: with arrays the statement would be planned at each call."""
    parameters["now"] = now
    for index, (write, row) in enumerate(zip(writes, _encrypted(tenant, of_thread(thread), writes), strict=True)):
        parameters[f"kv{index}_key"], parameters[f"kv{index}_value"] = row
        if write.expected:
            parameters[f"kv{index}_expected"] = write.expected
    return tuple([bool(write.expected) for write in writes])


_OF_THREAD = "tenant_id = :tenant AND kind = 'thread' AND scope_id = :thread AND namespace = ''"


@lru_cache(maxsize=64)
def steps(forms: Forms) -> tuple[Step, ...]:
    """A step for each value, `kv0`, `kv1` …"""
    return tuple([Step(f"kv{index}", _text(index, expects=expects)) for index, expects in enumerate(forms)])


def _text(index: int, *, expects: bool) -> str:
    expected = f" AND version = :kv{index}_expected" if expects else ""
    return (
        f"UPDATE {{schema}}kv SET value = :kv{index}_value, version = version + 1, updated_at = :now"
        f" WHERE {_OF_THREAD} AND key = :kv{index}_key{expected}{{guard}} RETURNING 1"
    )


@lru_cache(maxsize=64)
def stored(forms: Forms) -> str:
    """The condition of the guard that the values which expect no version are stored: those that do conflict if not."""
    keys = [f":kv{index}_key" for index, expects in enumerate(forms) if not expects]
    if not keys:
        return ""
    return f" AND (SELECT count(*) FROM {{schema}}kv WHERE {_OF_THREAD} AND key IN ({', '.join(keys)})) = {len(keys)}"


def moved(forms: Forms) -> str:
    """The number of tips that moved. If the tip moved and a value was not written, the statement divides by zero. It
    counts all values, so that PostgreSQL writes them in the order of their keys.
    """
    written = " + ".join(f"(SELECT count(*) FROM kv{index})" for index in range(len(forms)))
    return f"CASE WHEN count(*) = 0 THEN 0 ELSE count(*) / ({written} = {len(forms)})::int END"
