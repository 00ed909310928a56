from __future__ import annotations

import asyncio
from pathlib import Path

from chatledger import Ledger
from chatledger.storage.upgrade.versions import HEAD
from tests.cli.commands import chatledger


def test_schema_names_the_command_that_migrates(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")
    before = chatledger("schema", url=path)
    assert (before.code, before.err) == (1, "")
    assert before.out == f"{path}: found none, expected {HEAD}; run: chatledger migrate --url {path}\n"
    assert chatledger("migrate", url=path).out == f"{path} is at schema {HEAD}\n"
    assert chatledger("schema", url=path).out == f"{path}: found {HEAD}, expected {HEAD}\n"


def test_migrate_brings_postgresql_to_the_newest_schema(pg_url: str) -> None:
    assert chatledger("schema", "--json", url=pg_url).json["found"] is None
    assert chatledger("threads", url=pg_url).code == 3
    assert chatledger("migrate", "--json", url=pg_url).json["usable"] is True
    assert chatledger("schema", url=pg_url).code == 0
    assert chatledger("threads", "--json", url=pg_url).json == {"items": [], "next_cursor": None}


def test_migrate_downgrades_only_with_yes(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")
    assert chatledger("migrate", url=path).code == 0
    refused = chatledger("migrate", "--to", "base", url=path)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert chatledger("schema", url=path).code == 0
    assert chatledger("migrate", "--to", "base", "--yes", "--json", url=path).json["found"] is None


def test_a_downgrade_discards_values_only_with_yes_and_tombstones_only_with_their_option(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")

    async def fill() -> None:
        async with Ledger.open(path) as ledger:
            await ledger.kv.put(("tenant",), "a", 1)
            await ledger.user("ada").threads.create("t")
            await ledger.erasures.erase(("user", "ada"))

    asyncio.run(fill())
    refused = chatledger("migrate", "--to", "0002", url=path)
    assert (refused.code, "erasures: 2 rows; kv: 1 row; " in refused.error) == (3, True)
    assert "--discard-tombstones" in chatledger("migrate", "--to", "0002", "--yes", url=path).error
    assert chatledger("schema", url=path).code == 0
    done = chatledger("migrate", "--to", "0002", "--yes", "--discard-tombstones", "--json", url=path)
    assert done.json["found"] == "0002"


def test_migrate_prints_sql_without_a_database() -> None:
    outcome = chatledger("migrate", "--sql", url="postgresql://nowhere.invalid/x")
    assert (outcome.code, outcome.err) == (0, "")
    assert "CREATE TABLE chatledger.threads (" in outcome.out
    older = chatledger("migrate", "--sql", "--to", "0004", url="postgresql://nowhere.invalid/x")
    assert '\n-- SELECT count(*) FROM "chatledger".kv;\n' in older.out


def test_an_unknown_revision_is_a_usage_error(tmp_path: Path) -> None:
    assert chatledger("migrate", "--to", "newest", url=str(tmp_path / "l.db")).code == 2


def test_row_level_security_is_switched_on_and_off(pg_url: str, tmp_path: Path) -> None:
    assert chatledger("migrate", "--rls", "--json", url=pg_url).json["rls"] is True
    assert "with row-level security" in chatledger("schema", url=pg_url).out
    assert chatledger("migrate", "--json", url=pg_url).json["rls"] is True
    assert chatledger("migrate", "--no-rls", "--json", url=pg_url).json["rls"] is False
    assert chatledger("migrate", "--rls", "--sql", url=pg_url).code == 2
    assert "PostgreSQL" in chatledger("migrate", "--rls", url=str(tmp_path / "l.db")).error
