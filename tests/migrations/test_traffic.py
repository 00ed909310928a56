"""Migrations while others write: no append fails, none is lost, and code of one revision back reads and writes on.

On PostgreSQL the writers go on beside the migrator; on SQLite they wait for its lock, and their appends come after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chatledger.admin import migrate
from tests.conftest import Database
from tests.migrations.catalog import read_catalog
from tests.migrations.later import later_revision
from tests.migrations.processes import run_together
from tests.migrations.released.kept import released, restore
from tests.migrations.revisions import HEAD, revisions
from tests.migrations.writing import WRITERS, Traffic, check_stored, size_of, writers

_ROOT = Path(__file__).parents[2]
OLDER = [name for name in released() if name < HEAD]

CHANGES_THE_MESSAGES = """
def upgrade(schema):
    with op.batch_alter_table("messages", schema=schema, recreate="never") as messages:
        messages.add_column(sa.Column("colour", sa.Text()))
    name = "messages_tenant_id_colour_idx"
    if op.get_context().dialect.name == "sqlite":
        op.create_index(name, "messages", ["tenant_id", "colour"])
        return
    with op.get_context().autocommit_block():
        op.create_index(name, "messages", ["tenant_id", "colour"], schema=schema, postgresql_concurrently=True)

def downgrade(schema):
    op.drop_index("messages_tenant_id_colour_idx", schema=schema)
    op.drop_column("messages", "colour", schema=schema)
"""


@pytest.fixture(params=OLDER)
def older(request: pytest.FixtureRequest, empty: Database) -> tuple[Database, str]:
    """A database of a released schema, with its rows."""
    revision: str = request.param
    restore(empty, revision)
    return empty, revision


def say(database: Database, step: str, traffic: Traffic) -> None:
    counted = f"{len(traffic.written):,} appends of {WRITERS} writers, {len(traffic.failed)} failed"
    print(f"{database.kind}, {step}: {counted}, the longest {traffic.stall * 1000:,.0f} ms; {size_of(database)}")


@pytest.mark.parametrize("older", OLDER[:1], indirect=True)
def test_no_append_fails_while_revisions_run(older: tuple[Database, str], other: Database) -> None:
    """From the first revision, step by step, with writers of the revision below each."""
    database, below = older
    climb_under_writers(database, below)
    migrate(other.url)
    assert read_catalog(database) == read_catalog(other)


def climb_under_writers(database: Database, below: str) -> list[Traffic]:
    done = []
    for revision in (name for name in revisions() if name > below):
        with writers(database, below) as traffic:
            assert migrate(database.url, to=revision).found == revision
        assert traffic.failed == []
        say(database, f"{below} to {revision}", traffic)
        done.append(traffic)
        below = revision
    check_stored(database, done)
    return done


def test_todays_code_writes_to_the_next_releases_schema(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writers(database, HEAD) as traffic:
        following = later_revision(CHANGES_THE_MESSAGES, tmp_path, monkeypatch)
        assert migrate(database.url).found == following
    assert traffic.failed == []
    say(database, f"{HEAD} to one to come", traffic)
    check_stored(database, [traffic])


@pytest.mark.parametrize("older", OLDER[-1:], indirect=True)
def test_of_two_migrators_one_waits_and_no_append_fails(older: tuple[Database, str]) -> None:
    database, below = older
    following = revisions()[revisions().index(below) + 1]
    script = f"print((await asyncio.to_thread(migrate, arguments[0], to={following!r})).found)"
    with writers(database, below) as traffic:
        assert run_together(script, database.url, count=2) == [following, following]
    assert traffic.failed == []
    check_stored(database, [traffic])


@pytest.mark.parametrize("older", ["0002", OLDER[-1]], indirect=True)  # 0002 needs its transaction
def test_migrators_killed_before_each_statement_leave_a_whole_revision(older: tuple[Database, str]) -> None:
    """Also before each COMMIT. The next one goes on from there, and the writers notice none of it."""
    kill_migrators(*older)


def kill_migrators(database: Database, below: str) -> tuple[Traffic, int]:
    """The writes that happened meanwhile, and the number of killed migrators."""
    following = revisions()[revisions().index(below) + 1]
    with writers(database, below) as traffic:
        found = migrators_killed(database, following)
    assert traffic.failed == []
    print(f"{database.kind}: {len(found)} migrators killed between {below} and {following}")
    assert found == sorted(found)
    assert found.count(below) >= 3  # a statement of its own at least, the one that writes its number, the COMMIT
    assert set(found) <= {below, following}
    check_stored(database, [traffic])
    return traffic, len(found)


KILLED = """
import os, signal, sys
import tests  # before the library, for mutants
from sqlalchemy import Engine, event
from chatledger.admin import migrate, schema_status
from chatledger.storage.upgrade import migrate as _
from chatledger.storage.drivers.sqlite import SqliteConnection

url, to = sys.argv[1:]

def migrate_until(statement):
    left = statement
    def count(*given):
        nonlocal left
        words = given[2].split() if len(given) > 2 else ["COMMIT"]
        if words[0].upper() not in ("SELECT", "PRAGMA", "SHOW", "SET"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    event.listen(Engine, "before_cursor_execute", count)
    event.listen(Engine, "commit", count)
    execute = SqliteConnection.execute
    def execute_or_die(self, text):
        if text == "COMMIT":
            count()
        execute(self, text)
    SqliteConnection.execute = execute_or_die
    migrate(url, to=to)

def in_a_child(work):
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

statement = 1
while (code := in_a_child(lambda: migrate_until(statement))) == signal.SIGKILL:
    assert in_a_child(lambda: print(schema_status(url).found)) == 0
    statement += 1
sys.exit(code)
"""


def migrators_killed(database: Database, revision: str) -> list[str]:
    """Where the database was after a migrator was killed before its first statement that writes, then before its
    second, and so on until one came to its end.
    """
    process = subprocess.run(
        [sys.executable, "-c", KILLED, database.url, revision],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])},
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split()
