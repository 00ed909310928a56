"""PostgreSQL's row-level security, opt in. It keeps tenants apart even if a statement lacks the tenant's filter.

Each table, partitions included, gets a policy: a session sees a row only if the setting `chatledger.tenant` names the
row's tenant. A ledger sets it for one transaction at a time. The policy is forced, so it holds for the tables' owner as
well. No policy holds for a superuser or a role with BYPASSRLS, so a ledger with `rls=True` refuses to open as one.

A process that runs agents has to find the runs that nobody works on, of all tenants. A third policy shows it the rows
of `run_leases` alone, while it turns on `chatledger.serving`, and lets it write none.

A migration has to see every tenant's rows. A second policy lets the tables' owner see them while the migration turns on
a setting of its own. The owner could switch row-level security off anyway, so a ledger with `rls=True` refuses to open
as the owner. PostgreSQL joins permissive policies by OR, so one that is not ours could show every row: refused too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from chatledger.errors import StorageError
from chatledger.storage.schema.tables import run_leases
from chatledger.storage.schema.views import VIEWS

_log = logging.getLogger("chatledger.connections")
TENANT = "chatledger.tenant"
MIGRATING = "chatledger.migrating"
SERVING = "chatledger.serving"
NEEDS = 150_000
"""The PostgreSQL version that is needed. From 15 on a view can work with its reader's rights; with its owner's rights
it could bypass the policies.
"""

_TABLES = """
SELECT c.relname, pg_get_userbyid(c.relowner), s.served,
       c.relrowsecurity AND c.relforcerowsecurity AND count(*) FILTER (WHERE p.ours) = 2 + s.served::int,
       row_security_active(c.oid), pg_has_role(c.relowner, 'USAGE'),
       min(p.polname) FILTER (WHERE p.polpermissive AND NOT p.ours)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
CROSS JOIN LATERAL (
    SELECT relname = :served AS served FROM pg_class WHERE oid = coalesce(pg_partition_root(c.oid), c.oid)
) s
LEFT JOIN LATERAL (
    SELECT polname, polpermissive, polpermissive AND polwithcheck IS NULL AND (
        (polname = 'chatledger_tenant' AND polcmd = '*' AND polroles = '{0}'
            AND pg_get_expr(polqual, c.oid) = :of_tenant)
        OR (polname = 'chatledger_migrator' AND polcmd = '*' AND polroles = ARRAY[c.relowner]
            AND pg_get_expr(polqual, c.oid) = :of_migration)
        OR (polname = 'chatledger_server' AND polcmd = 'r' AND s.served
            AND pg_get_expr(polqual, c.oid) = :of_server)
    ) AS ours
    FROM pg_policy WHERE polrelid = c.oid
) p ON true
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname, c.relowner, s.served, c.relrowsecurity, c.relforcerowsecurity ORDER BY c.relname
"""
_EXPRESSIONS = {
    "of_tenant": f"(tenant_id = current_setting('{TENANT}'::text, true))",
    "of_migration": f"(current_setting('{MIGRATING}'::text, true) = 'on'::text)",
    "of_server": f"(current_setting('{SERVING}'::text, true) = 'on'::text)",
}
"""The expressions of the policies, as PostgreSQL writes them. In a subquery the setting would be read once a statement,
but no policy of a table that Citus distributes may have one.
"""
_POLICIES = ("chatledger_tenant", "chatledger_migrator", "chatledger_server")
_NOT_ACTIVE = "row-level security does not apply to a superuser or a role with BYPASSRLS; connect as another role"
_VIEWS = "SELECT viewname FROM pg_views WHERE schemaname = :schema AND viewname = ANY(:names)"


@dataclass(frozen=True, slots=True)
class _TableSecurity:
    name: str
    owner: str
    served: bool
    """Whether a process that runs agents reads the rows of every tenant."""
    secured: bool
    active: bool
    """Whether the policies hold for the connected role."""
    is_own: bool
    """Whether the connected role has the rights of the table's owner."""
    foreign: str | None
    """A policy that may show more rows than ours."""


def is_on(connection: Connection, schema: str | None) -> bool:
    """Whether every table of the schema has its policies, as this release writes them."""
    tables = _tables(connection, schema)
    return bool(tables) and all(table.secured for table in tables)


def agreed(connection: Connection, schema: str | None, rls: bool | None, command: str) -> bool:
    """Whether each transaction has to set the tenant. Raises StorageError if `rls=True` would secure nothing, or if
    statements would find no row with `rls=False`.
    """
    tables = _tables(connection, schema)
    active = any(table.active for table in tables)
    if rls is False and active:
        raise StorageError("row-level security is on in this schema, so rls=False would find no rows; leave rls out")
    if not rls:
        if tables and not active and all(table.secured for table in tables):
            _log.warning(_NOT_ACTIVE)
        return active
    if not (tables and all(table.secured for table in tables)):
        raise StorageError(f"row-level security is not on in this schema; run: {command} --rls")
    if not all(table.active for table in tables):
        raise StorageError(_NOT_ACTIVE)
    if any(table.is_own for table in tables):
        raise StorageError("the owner of the tables can switch row-level security off; connect as another role")
    for table in tables:
        if table.foreign is not None:
            detail = f"the policy {table.foreign!r} on table {table.name} is not chatledger's, and may show more rows"
            raise StorageError(f"{detail}; drop it, or make it AS RESTRICTIVE")
    return True


def require_all_rows(connection: Connection, schema: str) -> None:
    """Raises StorageError if row-level security hides rows from a migration by the connected role."""
    if any(table.active and not table.is_own for table in _tables(connection, schema)):
        raise StorageError("row-level security hides rows from this role; connect as the owner of the tables")


def enable(connection: Connection, schema: str) -> None:
    """Add the policies to all tables that lack them, in the open transaction. Locks these tables until it ends."""
    version = connection.exec_driver_sql("SELECT current_setting('server_version_num')::int").scalar() or 0
    if version < NEEDS:
        raise StorageError(
            "row-level security needs PostgreSQL 15 or later; earlier servers read views with their owner's rights"
        )
    for table in _tables(connection, schema):
        if not table.secured:
            _run(connection, _secure(f'"{schema}"."{table.name}"', table))
    _run(connection, [f"ALTER VIEW {view} SET (security_invoker = true)" for view in _views(connection, schema)])


def disable(connection: Connection, schema: str) -> None:
    for table in _tables(connection, schema):
        name = f'"{schema}"."{table.name}"'
        _run(connection, _drop_policies(name))
        _run(connection, [f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY"])
    _run(connection, [f"ALTER VIEW {view} RESET (security_invoker)" for view in _views(connection, schema)])


def keep(connection: Connection, schema: str | None) -> None:
    """After a revision, in its transaction: if other tables have policies, add them to the tables that it created. The
    views work with the rights of their readers again.
    """
    tables = _tables(connection, schema)
    if schema is not None and any(table.secured for table in tables):
        enable(connection, schema)


def only_postgresql() -> StorageError:
    return StorageError("row-level security needs PostgreSQL; SQLite does not have it")


def set_tenant(tenant: str) -> str:
    """The statement that sets the tenant until the transaction ends. It is a SET with the value itself, because a
    distributed PostgreSQL sends its other servers only that, and not the call of a function. It cannot have parameters,
    so each character of the tenant's name is sent as hexadecimal digits, which cannot be anything but a value.
    """
    digits = "".join([f"\\U{ord(character):08x}" for character in tenant])
    return f"SET LOCAL {TENANT} = E'{digits}'"


def begin_as(begin: str, tenant: str) -> str:
    """The statements that begin a transaction of this tenant in one round trip."""
    return f"{begin}; {set_tenant(tenant)}"


def _tables(connection: Connection, schema: str | None) -> list[_TableSecurity]:
    if schema is None:  # SQLite has no row-level security
        return []
    parameters = {"schema": schema, "served": run_leases.name, **_EXPRESSIONS}
    return [_TableSecurity(*row) for row in connection.execute(text(_TABLES), parameters)]


def _views(connection: Connection, schema: str) -> list[str]:
    """The views of ours that the schema has: an older revision, which a downgrade may have left, has fewer."""
    views = connection.execute(text(_VIEWS), {"schema": schema, "names": list(VIEWS)}).scalars()
    return [f'"{schema}"."{name}"' for name in views]


def _secure(name: str, table: _TableSecurity) -> Sequence[str]:
    owner = '"' + table.owner.replace('"', '""') + '"'
    policies = [
        f"chatledger_tenant ON {name} USING (tenant_id = current_setting('{TENANT}', true))",
        f"chatledger_migrator ON {name} TO {owner} USING (current_setting('{MIGRATING}', true) = 'on')",
    ]
    if table.served:
        policies.append(f"chatledger_server ON {name} FOR SELECT USING (current_setting('{SERVING}', true) = 'on')")
    return [
        *_drop_policies(name),
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        *(f"CREATE POLICY {policy}" for policy in policies),
    ]


def _drop_policies(table: str) -> list[str]:
    return [f"DROP POLICY IF EXISTS {name} ON {table}" for name in _POLICIES]


def _run(connection: Connection, statements: Sequence[Any]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)
