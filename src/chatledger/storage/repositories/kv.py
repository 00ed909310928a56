"""State beside the messages: JSON values of the tenant, of a user or of a thread, by key."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select

from chatledger.errors import InvalidArgument, LimitExceeded, TenantOnly, ThreadNotFound, VersionConflict
from chatledger.models import KvValue, Page
from chatledger.models.json import JsonValue
from chatledger.storage.append.kv import KvPlace, KvWrite, keep_version, make_write, put, store, version_of
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.lists.bounded import FOUND, LARGEST, SIZE, fetch_rows, size_of, take
from chatledger.storage.lists.cursors import read_cursor, to_page
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.kv import KV_COLUMNS, to_value
from chatledger.storage.rows.owned import own_thread, owned
from chatledger.storage.schema.tables import kv, threads
from chatledger.storage.schema.text import decode_text, encode_key

KvScope: TypeAlias = tuple[str, ...]
"""The owner of values: `("tenant",)`, `("user", user_id)` or `("thread", thread_id)`. A namespace may follow."""

_SCOPES_AT_ONCE = 500
_FORMS = "('tenant',), ('user', user_id) or ('thread', thread_id), or one of these with a namespace behind it"
_LENGTHS = {"tenant": 1, "user": 2, "thread": 2}


def refuse_too_large(write: KvWrite, maximum: int) -> None:
    if write.bytes > maximum:
        raise LimitExceeded("bytes of a value", write.bytes, maximum)


# --- Scopes -----------------------------------------------------------------------------------------------------------


def read_scope(scope: KvScope) -> KvPlace:
    """Raises InvalidArgument and LimitExceeded."""
    if not isinstance(scope, tuple) or not all(isinstance(name, str) for name in scope):
        raise InvalidArgument("scope", f"must be {_FORMS}, not {_shape(scope)}")
    kind, *rest = scope or ("",)
    length = _LENGTHS.get(kind)
    if length is None or not length <= len(scope) <= length + 1:
        raise InvalidArgument("scope", f"must be {_FORMS}, not {_shape(scope)}")
    id_ = encode_key(rest[0], f"{kind}_id") if length == 2 else ""
    namespace = encode_key(scope[length], "namespace") if len(scope) > length else ""
    return KvPlace(kind, id_, namespace)


def _shape(scope: object) -> str:
    """The scope for an error: its first word and the types of the others, because an error quotes no id."""
    if not isinstance(scope, tuple):
        return type(scope).__name__
    first = repr(scope[0]) if scope and isinstance(scope[0], str) and scope[0] in _LENGTHS else None
    types = [type(name).__name__ for name in scope]
    return f"({', '.join([first or types[0], *types[1:]])})" if scope else "()"


def _refuse_foreign(tenant: Tenant, place: KvPlace) -> None:
    """On a user's ledger, raises TenantOnly for the scope of the tenant, InvalidArgument for that of another user."""
    if tenant.user is not None and place.kind == "tenant":
        raise TenantOnly("kv of the tenant")
    if place.kind == "user" and tenant.user not in (None, place.scope_id):
        raise InvalidArgument("scope", "is that of another user, and this ledger is the view of one")


def _require_scope(sql: ReadSql, tenant: Tenant, place: KvPlace, *, lock: bool = False) -> None:
    """Raises as `_refuse_foreign`, and ThreadNotFound for the scope of a thread that does not exist. With `lock`,
    nobody deletes the thread before the transaction ends.
    """
    _refuse_foreign(tenant, place)
    if place.kind == "thread":
        thread_id = decode_text(place.scope_id)
        own = own_thread(tenant, thread_id)
        thread = select(threads.c.thread_id).where(own)
        if lock:
            thread = thread.with_for_update(read=True, key_share=True)
        if sql.execute(thread).one_or_none() is None:
            raise ThreadNotFound(thread_id)


# --- Reading ----------------------------------------------------------------------------------------------------------


def _of(tenant: Tenant, place: KvPlace) -> ColumnElement[bool]:
    """The rows of a scope."""
    ids = zip(("scope_id", "namespace"), map(decode_text, place[1:]), strict=True)
    own = (kv.c[name] == value for name, value in ids)
    return and_(kv.c.tenant_id == tenant.name, kv.c.kind == place.kind, *own)


def get_value(sql: ReadSql, tenant: Tenant, place: KvPlace, key: str) -> KvValue | None:
    _require_scope(sql, tenant, place)
    row = sql.execute(select(*KV_COLUMNS).where(_of(tenant, place), kv.c.key == key)).mappings().one_or_none()
    return None if row is None else to_value(tenant, row)


def list_values(sql: ReadSql, tenant: Tenant, place: KvPlace, limit: int, cursor: str | None) -> Page[KvValue]:
    _require_scope(sql, tenant, place)
    statement = select(*KV_COLUMNS).where(_of(tenant, place))
    if cursor is not None:
        (last,) = read_cursor(cursor, str)
        statement = statement.where(kv.c.key > last)
    return to_page(fetch_rows(sql, statement, limit, "key"), lambda row: to_value(tenant, row), "key")


def first_pages(
    sql: ReadSql, tenant: Tenant, places: dict[KvScope, KvPlace], limit: int
) -> dict[KvScope, Page[KvValue]]:
    rows: dict[tuple[str, ...], list[Any]] = {_names(place): [] for place in places.values()}
    for place in places.values():
        _refuse_foreign(tenant, place)
    names = [*rows]
    for at in range(0, len(names), _SCOPES_AT_ONCE):
        for row in sql.execute(_first_rows(sql.dialect, tenant, names[at : at + _SCOPES_AT_ONCE], limit)).mappings():
            rows[row["kind"], row["scope_id"], row["namespace"]].append(row)
    rows_of = {names: take(own, limit) for names, own in rows.items()}
    return {
        scope: to_page(rows_of[_names(place)], lambda row: to_value(tenant, row), "key")
        for scope, place in places.items()
    }


def _names(place: KvPlace) -> tuple[str, ...]:
    return tuple(map(decode_text, place))


def _first_rows(dialect: str, tenant: Tenant, scopes: Iterable[tuple[str, ...]], limit: int) -> Select[Any]:
    """Up to `limit` rows of each scope, in the order of their keys, that fit into one page together; the first of each
    scope in any case. Scopes with the same kind and namespace are looked up together. Only the rows that fit are read.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for kind, scope_id, namespace in scopes:
        alike.setdefault((kind, namespace), []).append(scope_id)
    wanted = [
        and_(kv.c.kind == kind, kv.c.namespace == namespace, kv.c.scope_id.in_(_existing(tenant, kind, ids)))
        for (kind, namespace), ids in alike.items()
    ]
    scope = ("kind", "scope_id", "namespace")
    number = func.row_number().over(partition_by=[kv.c[name] for name in scope], order_by=kv.c.key).label("number")
    key = [kv.c[name] for name in (*scope, "key")]
    sized_rows = select(*key, number, size_of(dialect, [kv.c.value]).label(SIZE))
    near = sized_rows.where(kv.c.tenant_id == tenant.name, or_(*wanted)).subquery("near")
    first = select(near).where(near.c.number <= limit + 1).subquery("first")
    total = func.sum(first.c[SIZE]).over(order_by=(first.c.number, *(first.c[name] for name in scope)), rows=(None, 0))
    count = func.count().over(partition_by=[first.c[name] for name in scope]).label(FOUND)
    sized = select(first, total.label("total"), count).subquery("sized")
    fits = and_(sized.c.number <= limit, or_(sized.c.total <= LARGEST, sized.c.number == 1))
    same = and_(kv.c.tenant_id == tenant.name, *(kv.c[name] == sized.c[name] for name in (*scope, "key")))
    joined = select(*KV_COLUMNS, sized.c[SIZE], sized.c[FOUND]).join(sized, same)
    return joined.where(fits).order_by(kv.c.key)


def _existing(tenant: Tenant, kind: str, ids: list[str]) -> list[str] | Select[Any]:
    """The ids; on a user's ledger, of threads only the user's own."""
    if kind != "thread" or tenant.user is None:
        return ids
    return select(threads.c.thread_id).where(owned(threads, tenant), threads.c.thread_id.in_(ids))


# --- Writing ----------------------------------------------------------------------------------------------------------


def put_value(sql: WriteSql, tenant: Tenant, place: KvPlace, write: KvWrite, value: JsonValue) -> KvValue:
    _require_scope(sql, tenant, place, lock=True)
    now = datetime.now(UTC)
    version = put(sql, tenant, place, write, now)
    return KvValue(key=decode_text(write.key), value=value, version=version, updated_at=now)


def merge_value(
    sql: WriteSql, tenant: Tenant, place: KvPlace, key: str, values: dict[str, Any], expected: int | None, maximum: int
) -> KvValue:
    """Reads, merges and writes under the lock of the row. There may be none to lock: then only the first writer's row
    is stored, and the others begin again.
    """
    _require_scope(sql, tenant, place, lock=True)
    while True:
        earlier = _hold(sql, tenant, place, key)
        version = 0 if earlier is None else earlier.version
        if expected not in (None, version):
            raise VersionConflict("value", expected or 0, version, key=key)
        if earlier is not None and not isinstance(earlier.value, dict):
            raise InvalidArgument("key", f"{key!r} holds a value that is no object, which put can replace")
        merged = values if earlier is None else {**earlier.value, **values}
        write = make_write(key, merged, 0 if earlier is None else None, named="key", argument="value")
        refuse_too_large(write, maximum)
        now = datetime.now(UTC)
        if (written := store(sql, tenant, place, write, now)) is not None:
            return KvValue(key=key, value=merged, version=written, updated_at=now)


def _hold(sql: WriteSql, tenant: Tenant, place: KvPlace, key: str) -> KvValue | None:
    """The value, whose row nobody changes before the transaction ends."""
    statement = select(*KV_COLUMNS).where(_of(tenant, place), kv.c.key == key)
    row = sql.execute(statement.with_for_update()).mappings().one_or_none()
    return None if row is None else to_value(tenant, row)


def delete_value(sql: WriteSql, tenant: Tenant, place: KvPlace, key: str, expected: int | None) -> bool:
    _require_scope(sql, tenant, place)
    statement = delete(kv).where(_of(tenant, place), kv.c.key == key).returning(kv.c.version)
    if expected is not None:
        statement = statement.where(kv.c.version == expected)
    while not (gone := sql.execute(statement).scalars().all()):
        version = version_of(sql, tenant, place, encode_key(key, "key"))
        if expected is not None and version != expected:
            raise VersionConflict("value", expected, version, key=key)
        if not version:
            return False
    keep_version(sql, tenant, *gone)
    return True


def delete_values(sql: WriteSql, which: ColumnElement[bool]) -> tuple[int, int]:
    """Return how many values were deleted, and the highest version of them, for `keep_version`."""
    count, highest = 0, 0
    while (version := sql.execute(select(func.max(kv.c.version)).where(which)).scalar_one()) is not None:
        highest = max(highest, version)
        # One that somebody else wrote since has a higher version, and is looked at again.
        count += sql.execute(delete(kv).where(which, kv.c.version <= version)).rowcount
    return count, highest
