from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from chatledger import Ledger
from chatledger.cli.demo import SAMPLES, samples_folder
from tests import postgres
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.server.conftest import serving

READ = ("--id-field", "id", "--user-field", "user", "--time-field", "created_at")


async def rows(url: str) -> tuple[int, int, int]:
    async with Ledger.open(url) as ledger:
        threads = await ledger.threads.list()
        return len(threads), sum(one.message_count for one in threads), len(await ledger.feedback.list(events=True))


async def test_demo_can_be_run_twice(database: Database) -> None:
    first = chatledger("demo", url=database.url)
    assert (first.code, first.err) == (0, "")
    stored = await rows(database.url)
    assert stored == (4, 30, 1)
    again = chatledger("demo", url=database.url)
    assert (again.code, again.out.count("stored before")) == (0, 2)
    assert await rows(database.url) == stored


async def test_demo_shows_on_one_screen_what_a_ledger_does(sqlite_database: Database) -> None:
    out = chatledger("demo", url=sqlite_database.url).out
    assert len(out.splitlines()) < 40
    assert "2 of 2: Which platform, and where is car 7?" in out
    assert "breaks R6" in out
    assert "#8 user: Book a window seat, please." in out
    async with Ledger.open(sqlite_database.url) as ledger:
        assert await ledger.messages.search("sunny") == await ledger.messages.search("a word that stands nowhere")


def test_demo_migrates_if_it_is_told_to(pg_url: str) -> None:
    assert chatledger("demo", url=pg_url).code == 3
    assert chatledger("demo", "--migrate", "--json", url=pg_url).json["run_id"] == "demo-run-1"


def test_demo_names_the_next_commands(sqlite_database: Database) -> None:
    out = chatledger("demo", url=sqlite_database.url).out
    assert f"next: chatledger threads --url {sqlite_database.url}" in out
    assert out.splitlines()[-1].startswith(f"      chatledger serve --url {sqlite_database.url} ")


@pytest.mark.parametrize(("found", "named"), [(True, "chatledger"), (False, ".venv-demo/bin/chatledger")])
def test_the_next_commands_have_the_path_of_a_program_that_the_shell_does_not_find(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: bool, named: str
) -> None:
    if found:
        (tmp_path / "chatledger").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv-demo/bin/chatledger", "demo"])
    assert f"next: {named} threads" in chatledger("demo", url=sqlite_database.url).out


def test_the_last_command_of_the_demo_serves_what_it_made(sqlite_database: Database) -> None:
    chatledger("demo", url=sqlite_database.url)
    with serving(sqlite_database.url) as server:
        threads = httpx.get(f"{server.url}/v1/threads").json()["items"]
    assert len(threads) == 4


def test_a_missing_postgresql_is_reported_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_none() -> Path:
        raise postgres.NoPostgres

    monkeypatch.setattr(postgres, "find_binaries", find_none)
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "argv", ["postgres", "--if-found", "false"])
    assert postgres.main() == 0
    assert capsys.readouterr().out == "no PostgreSQL was found, so nothing is run on it\n"


def test_samples_hold_what_their_table_says(sqlite_database: Database) -> None:
    files = [samples_folder() / name for name in SAMPLES]
    report = chatledger("import", *files, *READ, "--json", url=sqlite_database.url).json
    assert (report["threads"]["created"], report["without_time"], report["losses"]) == (4, 0, {})
    assert report["violations"] == {"R6": 1, "R8": 3}
    strict = chatledger("import", *files, *READ, "--rules", "strict", "--tenant", "s", url=sqlite_database.url)
    assert (strict.code, strict.error.split(": ")[1]) == (1, "support.jsonl, line 1")


def test_without_a_url_the_samples_stay_out_of_the_default_file(tmp_path: Path) -> None:
    out = chatledger("demo", cwd=tmp_path).out
    assert "--url demo.db" in out
    assert (tmp_path / "demo.db").exists()
    assert not (tmp_path / "chatledger.db").exists()
