"""Encrypts cells that the current key did not encrypt: plain text from before the keys, and cells of older keys.

It goes thread by thread, with some of the rows in each transaction, and then through the values of `kv` that are in no
thread. The transaction locks the thread, or those values, so nobody changes a row in between. It also gives the
branches new stamps, so an append that was planned with an older key is planned again. After an interruption it
continues where it stopped, because the header of a cell shows whether it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from sqlalchemy import and_, update

from chatledger.errors import EncryptionError, ThreadNotFound
from chatledger.ids import new_stamp
from chatledger.models import Progress
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.lists.thread_ids import thread_count, threads_after
from chatledger.storage.repositories.locks import hold_thread
from chatledger.storage.rows.encryption import ENCRYPTED, TABLES, CellEncryption, Tenant
from chatledger.storage.schema.tables import branches
from chatledger.storage.schema.text import encode_text

BATCH = 1_000
"""Rows in one transaction. Other writers of the thread, or of a SQLite file, wait for each such transaction."""
_BESIDE = {"kv": "kind IN ('tenant', 'user')", "tenants": "true"}
"""The tables with cells that belong to no thread, and which rows of them those are."""
_OF_THREADS = tuple(table for table in ENCRYPTED if table != "tenants")


async def reencrypt(scope: Scope, progress: Progress | None = None) -> Mapping[str, int]:
    """Returns the number of changed rows by table, once a pass over all threads finds none. Raises EncryptionError."""
    if (encryption := scope.tenant.encryption) is None:
        raise EncryptionError(
            "no-key",
            "there are no keys to encrypt with; open the ledger with encryption=…, or give `chatledger --keys FILE "
            "reencrypt`",
        )
    await scope.mark_encrypted()
    rows: Counter[str] = Counter()
    while changed := await _go_through(scope, encryption, progress):
        rows.update(changed)
    return dict(rows)


async def _go_through(scope: Scope, encryption: CellEncryption, progress: Progress | None) -> Counter[str]:
    """One pass over all threads of the tenant, in the order of their ids."""
    rows: Counter[str] = Counter()
    total = await scope.read(lambda sql: thread_count(sql, scope.tenant))
    done, last = 0, ""
    while ids := await scope.read(lambda sql, after=last: threads_after(sql, scope.tenant, after)):  # type: ignore[misc]
        for thread_id in ids:
            if await scope.read(lambda sql, id_=thread_id: _is_stale(sql, encryption, scope.tenant, id_)):  # type: ignore[misc]
                rows.update(await _encrypt_thread(scope, encryption, thread_id))
            done += 1
            if progress is not None:
                progress(done, max(done, total))
        last = ids[-1]
    while batch := await scope.write(lambda sql: _encrypt_beside(sql, encryption, scope.tenant)):
        rows.update(batch)
    return rows


async def _encrypt_thread(scope: Scope, encryption: CellEncryption, thread_id: str) -> Counter[str]:
    rows: Counter[str] = Counter()
    while batch := await scope.write(lambda sql: _encrypt_some(sql, encryption, scope.tenant, thread_id)):
        rows.update(batch)
    return rows


def _is_stale(sql: WriteSql, encryption: CellEncryption, tenant: Tenant, thread_id: str) -> bool:
    place = {"tenant": tenant.key, "thread": encode_text(thread_id), "header": encryption.ring().header}
    return any(sql.fetch(_select(table, len(place["header"]), 1), place) for table in _OF_THREADS)


def _encrypt_some(sql: WriteSql, encryption: CellEncryption, tenant: Tenant, thread_id: str) -> Counter[str]:
    """Encrypt up to BATCH rows of the thread. Returns no rows if none is left or the thread was deleted."""
    rows: Counter[str] = Counter()
    try:
        hold_thread(sql, tenant, thread_id)
    except ThreadNotFound:
        return rows
    header = encryption.ring().header
    place = {"tenant": tenant.key, "thread": encode_text(thread_id), "header": header}
    for table in _OF_THREADS:
        rows_of_table = sql.fetch(_select(table, len(header), BATCH - rows.total()), place)
        if rows_of_table:
            _encrypt_rows(sql, encryption, tenant, table, rows_of_table)
            rows[table] += len(rows_of_table)
        if rows.total() >= BATCH:
            break
    if rows:
        own = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
        sql.execute(update(branches).where(own).values(stamp=new_stamp()))
    return rows


def _encrypt_beside(sql: WriteSql, encryption: CellEncryption, tenant: Tenant) -> Counter[str]:
    """Encrypt up to BATCH values of users and of the tenant, and the tenant's secret."""
    rows: Counter[str] = Counter()
    header = encryption.ring().header
    lock = " FOR UPDATE" if sql.dialect == "postgresql" else ""
    for table, own in _BESIDE.items():
        statement = _select_stale(table, own, len(header), BATCH)
        rows_of_table = sql.fetch(statement + lock, {"tenant": tenant.key, "header": header})
        if rows_of_table:
            _encrypt_rows(sql, encryption, tenant, table, rows_of_table)
            rows[table] += len(rows_of_table)
    return rows


def _encrypt_rows(sql: WriteSql, encryption: CellEncryption, tenant: Tenant, table: str, stored: Sequence[Row]) -> None:
    columns = _columns(table)
    decrypted = [tuple(row) for row in encryption.decrypt(table, columns, stored)]
    encrypted = encryption.encrypt(table, columns, decrypted)
    changed = [dict(zip(columns, row, strict=True)) | {"tenant": tenant.key} for row in encrypted]
    sql.insert(_update(table), changed)


# --- Statements on stored values --------------------------------------------------------------------------------------


def _key(table: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[table].primary_key if column.name != "tenant_id")


def _columns(table: str) -> tuple[str, ...]:
    return (*_key(table), *ENCRYPTED[table])


@lru_cache(maxsize=512)
def _select(table: str, header: int, limit: int) -> str:
    """The rows of a thread with a cell that does not begin with the header of the current key."""
    of_thread = "kind = 'thread' AND scope_id = :thread" if table == "kv" else "thread_id = :thread"
    if table == "feedback":  # its thread_id is that of the message that it is about, and may be NULL
        runs = "SELECT r.run_id FROM {schema}runs r WHERE r.tenant_id = :tenant AND r.thread_id = :thread"
        of_thread = f"run_id IN ({runs})"
    return _select_stale(table, of_thread, header, limit)


def _select_stale(table: str, own: str, header: int, limit: int) -> str:
    stale = " OR ".join(f"substr({column}, 1, {header}) <> :header" for column in ENCRYPTED[table])
    return (
        f"SELECT {', '.join(_columns(table))} FROM {{schema}}{table}"
        f" WHERE tenant_id = :tenant AND {own} AND ({stale}) LIMIT {limit}"
    )


def _update(table: str) -> str:
    cells = ", ".join(f"{column} = :{column}" for column in ENCRYPTED[table])
    key = "".join(f" AND {column} = :{column}" for column in _key(table))
    return f"UPDATE {{schema}}{table} SET {cells} WHERE tenant_id = :tenant{key}"
