"""The marker in the target: that a copy is under way, from which source, and of what. While it stands, triggers let
nobody but the copy write.

The target has nothing of what is copied when the marker is put, so no later pass writes over what somebody else wrote.
"""

from __future__ import annotations

import re

from chatledger.errors import StorageError
from chatledger.storage.schema.copy_triggers import (
    MARKER,
    SQLITE_TRIGGERS,
    drop_postgresql,
    postgresql_triggers,
)
from chatledger.storage.schema.text import decode_text
from chatledger.transfer.copy.parts import APART, COPIED
from chatledger.transfer.copy.sides import Side

ALL = ""
"""The scope of a copy of all tenants; any other scope is a tenant as its column stores it."""
_PLAIN = re.compile(r"[A-Za-z0-9-]{1,64}")
_EXISTS = {
    "postgresql": "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE n.nspname = :schema AND c.relname = '{MARKER}'",
    "sqlite": f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{MARKER}'",
}
_CREATE = f"CREATE TABLE IF NOT EXISTS {{schema}}{MARKER} (scope TEXT PRIMARY KEY, source TEXT NOT NULL)"


async def read(side: Side, schema: str) -> dict[str, str]:
    """The source of each scope that is copied into this database."""
    if not await side.fetch(_EXISTS[side.dialect], {"schema": schema}):
        return {}
    return {row[0]: row[1] for row in await side.fetch(f"SELECT scope, source FROM {{schema}}{MARKER}", {})}


def require_same(markers: dict[str, str], scope: str, source: str, side: Side) -> None:
    """Raises StorageError if a copy of another scope or from another source is under way."""
    others = [other for other in markers if other != scope and ALL in (other, scope)]
    if others:
        raise StorageError(
            f"a copy of {of(others[0])} into {side.name} is under way, and this one is of {of(scope)}; end that one "
            "first, with --done"
        )
    if markers.get(scope, source) != source:
        raise StorageError(
            f"the copy of {of(scope)} into {side.name} that is under way is from another source; copy from that one, "
            "or choose another target"
        )


def require(markers: dict[str, str], scope: str, side: Side) -> None:
    """Raises StorageError if no copy of the scope is under way."""
    if scope not in markers:
        raise StorageError(f"no copy of {of(scope)} into {side.name} is under way, so there is nothing to end")


def of(scope: str) -> str:
    return f"tenant {decode_text(scope)!r}" if scope else "all tenants"


async def put(side: Side, schema: str, scope: str, source: str) -> None:
    """Put the marker and its triggers. Raises StorageError if the target has rows of the scope already: tombstones do
    not count.
    """
    assert _PLAIN.fullmatch(source)
    async with side.changing():
        await side.execute(_CREATE)
        for statement in _triggers(side, schema, scope, source):  # they lock the tables, so nobody writes any more
            await side.execute(statement)
        markers = await read(side, schema)  # another copy may have put its own since
        require_same(markers, scope, source, side)
        if scope in markers:
            return
        filled = await _filled(side, scope)
        if filled is not None:
            raise StorageError(
                f"{side.name} has rows of {of(scope)} already (in {filled}), and no copy put them there; copy into a "
                "new or an empty database"
            )
        into = f"INSERT INTO {{schema}}{MARKER} (scope, source) VALUES (:scope, :source)"
        await side.run(into, [{"scope": scope, "source": source}])


async def clear(side: Side, schema: str, scope: str, source: str) -> None:
    """Raises StorageError if the marker is gone, or is another one now."""
    async with side.changing():
        markers = await read(side, schema)
        require(markers, scope, side)
        require_same(markers, scope, source, side)
        await side.run(f"DELETE FROM {{schema}}{MARKER} WHERE scope = :scope", [{"scope": scope}])
        left = await side.fetch(f"SELECT 1 FROM {{schema}}{MARKER} LIMIT 1", {})
        if side.dialect == "postgresql":
            for statement in drop_postgresql(schema, scope):
                await side.execute(statement)
        if left:
            return
        if side.dialect == "postgresql":
            await side.execute(f"DROP FUNCTION {{schema}}{MARKER}_refuses()")
        else:
            for name in SQLITE_TRIGGERS:
                await side.execute(f"DROP TRIGGER {name}")
        await side.execute(f"DROP TABLE {{schema}}{MARKER}")


def _triggers(side: Side, schema: str, scope: str, source: str) -> list[str]:
    if side.dialect == "postgresql":
        return list(postgresql_triggers(schema, scope, source))
    return [text.replace("CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS", 1) for text in SQLITE_TRIGGERS.values()]


async def _filled(side: Side, scope: str) -> str | None:
    """A table with rows of the scope, if any."""
    for table in COPIED:
        if table not in APART:
            own = " WHERE tenant_id = :scope" if scope else ""
            if await side.fetch(f"SELECT 1 FROM {{schema}}{table.name}{own} LIMIT 1", {"scope": scope}):
                return table.name
    return None
