"""Databases that the release candidate made, from its files and by its own program: head upgrades and reads each."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from release.candidate import NAMED, NoCandidate, build
from sqlalchemy import Connection, inspect, text

from chatledger import Ledger
from chatledger.admin import migrate
from release import candidate
from tests.conftest import Database
from tests.migrations.access import connected, fetch, schema_of
from tests.migrations.released.candidate import KINDS, name_of, run_candidate, start_deleting
from tests.migrations.released.candidate.program import MESSAGES, Reads, as_json, read
from tests.migrations.released.kept import FOLDER, kept_reads, restore
from tests.storage.durable import make_durable


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    named: str = request.param
    return named


@pytest.fixture
def stored(empty: Database, kind: str) -> Database:
    restore(empty, name_of(kind))
    return empty


def test_a_database_of_the_candidate_reads_as_it_did(stored: Database, kind: str) -> None:
    migrate(stored.url)
    assert_reads(asyncio.run(read(stored.url, kind)), kept_reads(name_of(kind)))


def test_a_database_of_the_candidate_has_what_was_written(kind: str) -> None:
    reads = kept_reads(name_of(kind))
    for tenant in ("default", "acme"):
        found = {one["message_id"]: one for one in reads[tenant]["messages"] if one["branch"] == 0}
        for message in MESSAGES:
            written = as_json([message.model_dump(exclude_unset=True)])[0]
            assert within(found[message.message_id], written) == written


def test_a_database_of_the_candidate_has_rows_in_every_table(stored: Database) -> None:
    assert connected(stored, lambda connection: empty_tables(connection, schema_of(stored))) == []


def empty_tables(connection: Connection, schema: str | None) -> list[str]:
    prefix = f"{schema}." if schema else ""
    tables = inspect(connection).get_table_names(schema=schema)
    return [one for one in tables if not connection.execute(text(f"SELECT count(*) FROM {prefix}{one}")).scalar()]


def test_an_encrypted_database_of_the_candidate_has_no_plain_words() -> None:
    plain, encrypted = [(FOLDER / f"{name_of(kind)}.jsonl").read_text().partition('{"#":"reads"')[0] for kind in KINDS]
    for words in ("Wetter", "Be brief.", "rain", "later"):
        assert (words in plain, words in encrypted) == (True, False)


@pytest.mark.old_program
def test_a_database_that_the_candidates_program_writes_is_upgraded(empty: Database, kind: str) -> None:
    said = run_candidate("write", empty.url, kind)
    migrate(empty.url)
    assert_reads(asyncio.run(read(empty.url, kind)), said)


@pytest.mark.old_program
def test_the_candidates_program_deletes_durable_runs_of_head(empty: Database) -> None:
    """It opened the database before the upgrade, and goes on."""
    process = start_deleting(empty.url)
    try:
        migrate(empty.url)
        asyncio.run(make_all_durable(empty.url, ["deleted", "erased", "idle"]))
        assert all(count >= 3 for count in counts_of(empty).values())
        printed, errors = process.communicate("go\n", timeout=120)
        assert process.returncode == 0, errors
    finally:
        process.kill()
        process.communicate()
    deleted = json.loads(printed)
    assert {name: rows["runs"] for name, rows in deleted.items()} == dict.fromkeys(deleted, 1)
    assert counts_of(empty) == {"run_leases": 0, "run_decisions": 0}


async def make_all_durable(url: str, names: list[str]) -> None:
    async with Ledger.open(url) as ledger:
        for name in names:
            await make_durable(ledger, name, f"run {name}")


def counts_of(database: Database) -> dict[str, int]:
    prefix = f"{schema_of(database)}." if schema_of(database) else ""
    tables = ("run_leases", "run_decisions")
    return {table: fetch(database, f"SELECT count(*) FROM {prefix}{table}")[0][0] for table in tables}


@pytest.mark.old_program
def test_the_candidates_program_is_not_the_checkout() -> None:
    site = build() / "site"
    program = "import chatledger; print(chatledger.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(site))


def test_a_clone_without_the_candidate_is_told_what_to_do(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = tmp_path / "candidate.toml"
    lost.write_text('version = "9.9.9"\ncommit = "0000000000000000000000000000000000000000"\n')
    monkeypatch.setattr(candidate, "NAMED", lost)
    with pytest.raises(NoCandidate, match=r"no tag v9\.9\.9 and no commit 0000.*git fetch --unshallow"):
        build()
    assert NAMED.is_file()


def assert_reads(found: Reads, then: dict[str, dict[str, list[Any]]]) -> None:
    """Each value that was read then is read now. A field that models have since is no part of it."""
    for tenant, kinds in then.items():
        for kind, items in kinds.items():
            now = found[tenant][kind]
            assert [within(one, item) for one, item in zip(now, items, strict=True)] == items, json.dumps(now)[:200]


def within(now: Any, then: Any) -> Any:
    """`now` without the fields that `then` lacks, in nested values too."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: within(now.get(name), value) for name, value in then.items()}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [within(*pair) for pair in zip(now, then, strict=True)]
    return now
