"""The rows of durable runs, in what deletes, erases, copies and shows the rest of a thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import KeyRing, Ledger
from chatledger.admin import copy
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.schema.views import VIEWS
from tests.checks import findings_of
from tests.conftest import KEYS, Database
from tests.conversations import turn, user
from tests.storage.durable import CALL_SECRET, DECISIONS, make_durable
from tests.storage.raw import query, raw_connection
from tests.storage.words import ALL_READERS, RING, Said, say_everything

COUNTS = {"run_leases": 1, "run_decisions": len(DECISIONS)}


async def store(ledger: Ledger, name: str = "t", author: str = "ada") -> None:
    await ledger.user("bob").threads.create(name)
    await ledger.messages.append(name, turn(f"{name}/"), run_id=f"run {name}")
    await make_durable(ledger, name, f"run {name}", author=author)


async def counts(database: Database) -> dict[str, int]:
    return {table: (await query(database, f"SELECT count(*) FROM {table}"))[0][0] for table in COUNTS}


async def test_a_deletion_of_a_thread_counts_and_deletes_them(database: Database, ledger: Ledger) -> None:
    for name in ("t", "u", "v"):
        await store(ledger, name)
    foreseen = await ledger.erasures.erase(("thread", "u"), dry_run=True)
    deleted = await ledger.threads.delete("t")
    erased = await ledger.erasures.erase(("thread", "u"))
    for rows in (deleted.rows, foreseen.rows, erased.rows):
        assert {name: rows[name] for name in COUNTS} == COUNTS
    assert await counts(database) == COUNTS


async def test_a_deletion_of_a_run_counts_and_deletes_them(database: Database, ledger: Ledger) -> None:
    await store(ledger, "t")
    await store(ledger, "u")
    assert (await ledger.runs.delete("run t")).rows == {"feedback": 0, "runs": 1, **COUNTS}
    assert await counts(database) == COUNTS


async def test_a_redaction_takes_the_decisions_about_the_message(database: Database, ledger: Ledger) -> None:
    """A tool's reason to wait may repeat what stood in the call."""
    await store(ledger)
    await erase_at(scope_of(ledger), "t", 2)
    assert await counts(database) == COUNTS
    await erase_at(scope_of(ledger), "t", 1)
    assert await counts(database) == COUNTS | {"run_decisions": 0}


async def test_an_erased_user_leaves_what_was_decided_on_other_threads_but_no_words(database: Database) -> None:
    async with database.open(encryption=KEYS) as ledger:
        await store(ledger, "t", author="ada")
        await store(ledger, "u", author="eve")
        await ledger.tenant("acme").user("bob").threads.create("t")
        await ledger.erasures.erase(("user", "ada"))
        selected = "SELECT decision, author, reason IS NULL, begun_at IS NULL FROM run_decisions WHERE thread_id = '{}'"
        left = await query(database, selected.format("t") + " ORDER BY idx")
        assert [(row[0], row[1], bool(row[2]), bool(row[3])) for row in left] == [
            (None, None, True, True),
            ("approved", None, True, False),
            ("refused", None, True, True),
            ("result", None, True, True),
        ]
        other = await query(database, selected.format("u") + " ORDER BY idx")
        assert [(row[1], bool(row[2])) for row in other] == [(None, True), *[("eve", False)] * 3]
        assert await findings_of(ledger, "t") == await findings_of(ledger, "u") == []


async def test_no_reader_shows_the_secret_of_a_run(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, Said())
        assert await query(database, f"SELECT count(*) FROM runs WHERE call_secret = '{CALL_SECRET}'") == [(2,)]
        for name, read in ALL_READERS.items():
            assert CALL_SECRET not in repr(await read(ledger)), name
        exported = [row async for batch in ledger.frames("runs") for row in batch.to_pylist()]
        assert exported
        assert CALL_SECRET not in repr(exported)
        run = await ledger.runs.get("run t")
        assert "call_secret" not in json.loads(run.model_dump_json())
        async with raw_connection(database) as raw:
            for view in VIEWS:
                assert CALL_SECRET not in repr(await raw(f"SELECT * FROM {view}")), view


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "keys"])
async def test_a_copy_has_the_decisions_and_no_lease(database: Database, tmp_path: Path, keys: KeyRing | None) -> None:
    async with database.open(encryption=keys) as ledger:
        await store(ledger)
    target = Database("sqlite", str(tmp_path / "target.db"))
    report = await copy(database.url, target.url)
    assert (report.rows["run_decisions"], "run_leases" in report.rows) == (len(DECISIONS), False)
    assert await counts(target) == {"run_leases": 0, "run_decisions": len(DECISIONS)}
    own = "thread_id, run_id, branch, seq, idx, revision, decision, reason, pending_reason, author"
    for selected in (
        "SELECT question_id, branch, tools_of, call_secret, attempts FROM runs",
        f"SELECT {own} FROM run_decisions ORDER BY idx",
    ):
        assert await rows(target, selected) == await rows(database, selected)
    assert (await copy(database.url, target.url)).copied == 0
    assert (await copy(database.url, target.url, verify=True)).differences == []


async def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await query(database, statement)]


async def test_retention_takes_them(database: Database, ledger: Ledger) -> None:
    await store(ledger)
    await ledger.messages.append("t", [user("late")])
    thread = await ledger.threads.get("t")
    deleted = await ledger.threads.delete_inactive(older_than=thread.active_at.replace(year=2999))
    assert {name: deleted.rows[name] for name in COUNTS} == COUNTS
    assert await counts(database) == dict.fromkeys(COUNTS, 0)
