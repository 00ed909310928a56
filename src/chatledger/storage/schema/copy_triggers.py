"""The triggers of a database that a copy fills: while they stand, nobody but the copy writes.

The tables have no triggers of their own. These come with the marker of a copy and go with it (`transfer/copy`). A
program that opened the database before, of whatever release, meets them at its next write, without a round trip more.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from chatledger.storage.schema.tables import INSERTION_ORDER

MARKER = "chatledger_copy"
"""The table that says what is copied from where: a row for each scope, the stored id of a tenant or "" for all."""
SETTING = "chatledger.copying"
"""On PostgreSQL, the copy sets this to the id of its source in its transactions."""
REFUSAL = (
    "a copy into this database is under way, so only the copy writes; once it is complete, end it with: "
    "chatledger copy --from URL --to URL "
)
_OF_ALL, _OF_ONE = f"{REFUSAL}--done", f"{REFUSAL}--tenant T --done"
_EVENTS = {"insert": "NEW", "update": "OLD", "delete": "OLD"}
SQLITE_TRIGGERS = {
    f"{MARKER}_{table.name}_{event}": (
        f"CREATE TRIGGER {MARKER}_{table.name}_{event} BEFORE {event.upper()} ON {table.name} WHEN EXISTS ("
        f"SELECT 1 FROM {MARKER} WHERE scope IN ('', {row}.tenant_id)"
        f") BEGIN SELECT RAISE(ABORT, '{_OF_ALL}') FROM {MARKER} WHERE scope=''; SELECT RAISE(ABORT, '{_OF_ONE}'); END"
    )
    for table in INSERTION_ORDER
    for event, row in _EVENTS.items()
}
"""The statement that creates each trigger, by its name. They serve every scope. The copy drops them in each of its
transactions, and creates them again before it commits: no other connection sees it, and a row takes half the time."""


def postgresql_triggers(schema: str, scope: str, source: str) -> Iterator[str]:
    """The statements that create the triggers of one scope, each with a name of its own."""
    function = f'"{schema}".{MARKER}_refuses'
    yield (
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = TG_ARGV[0]; END $$"
    )
    for table in INSERTION_ORDER:
        for event, row in _EVENTS.items():
            own = f" AND {row}.tenant_id = {_literal(scope)}" if scope else ""
            yield (
                f'CREATE OR REPLACE TRIGGER {_name(scope, event)} BEFORE {event} ON "{schema}".{table.name} '
                f"FOR EACH ROW WHEN (current_setting('{SETTING}', true) IS DISTINCT FROM '{source}'{own}) "
                f"EXECUTE FUNCTION {function}('{_OF_ONE if scope else _OF_ALL}')"
            )


def drop_postgresql(schema: str, scope: str) -> Iterator[str]:
    for table in INSERTION_ORDER:
        for event in _EVENTS:
            yield f'DROP TRIGGER IF EXISTS {_name(scope, event)} ON "{schema}".{table.name}'


def _name(scope: str, event: str) -> str:
    return f"{MARKER}_{sha256(scope.encode()).hexdigest()[:16]}_{event}"


def _literal(text: str) -> str:
    """The text as a literal in which no character can end it."""
    return "E'{}'".format("".join(f"\\U{ord(character):08x}" for character in text))
