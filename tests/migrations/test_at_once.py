"""Several processes at once: one makes or migrates, the others wait, all work."""

from __future__ import annotations

from pathlib import Path

from chatledger.admin import SchemaStatus
from tests.conftest import Database
from tests.migrations.access import fetch
from tests.migrations.processes import run_together
from tests.migrations.revisions import HEAD

OPEN_AND_APPEND = """
async with Ledger.open(arguments[0]) as ledger:
    await ledger.threads.create("t", exist_ok=True)
    await ledger.messages.append("t", [chatledger.ChatMessage(role="user", content="hello")])
    print((await ledger.messages.history("t")).last_seq)
"""


def test_processes_that_open_a_new_file_at_once_all_work(empty_sqlite: Database) -> None:
    printed = run_together(OPEN_AND_APPEND, empty_sqlite.url, count=4)
    assert max(int(version) for version in printed) == 4
    assert fetch(empty_sqlite, "SELECT count(*) FROM chatledger_version") == [(1,)]
    assert not list(Path(empty_sqlite.url).parent.glob("*.bak"))


def test_processes_that_migrate_at_once_all_find_it_done(empty: Database) -> None:
    script = "print(await asyncio.to_thread(migrate, arguments[0]))"
    printed = run_together(script, empty.url, count=3)
    assert printed == [str(SchemaStatus(HEAD, HEAD))] * 3


def test_a_process_waits_for_the_one_that_migrates(empty: Database) -> None:
    """Longer than a writer waits for a lock."""
    script = """
from functools import partial
from chatledger.storage.upgrade import migrate as module
module.SqliteConnection = partial(module.SqliteConnection, timeout=0.1)
run = module.run
def slowly(*given):
    time.sleep(1)
    return run(*given)
module.run = slowly
print((await asyncio.to_thread(migrate, arguments[0])).found)
"""
    assert run_together(script, empty.url, count=2) == [HEAD, HEAD]
