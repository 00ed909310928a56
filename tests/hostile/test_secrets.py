"""Secrets: a password in a URL, and keys in an application's data of a run, reach no log, no error and no row."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatledger import Ledger, StorageError
from chatledger.admin import migrate
from chatledger.cli import main
from chatledger.errors import SchemaMismatch
from chatledger.models import secrets
from chatledger.models.secrets import SECRET_NAMES, is_secret_name, masked, masked_text
from chatledger.storage.repositories import runs
from tests.conftest import Database
from tests.migrations.access import all_rows

CANARY = "c4n4ry-7f3a"


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Everything that any logger wrote, at the lowest level."""
    caplog.set_level(logging.DEBUG)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "asyncio", "alembic", "aiosqlite"):
        caplog.set_level(logging.DEBUG, name)
    return lambda: caplog.text


URLS = [
    f"postgresql://u:{CANARY}@127.0.0.1:1/x",
    f"postgresql://127.0.0.1:1/x?user=u&password={CANARY}",
    f"postgresql://u:{CANARY}@127.0.0.1:port/x",
    f"postgresql://u:{CANARY}@127.0.0.1:1/x?ssl=nonsense",
    f"postgresql:/u:{CANARY}@127.0.0.1/x",
    f"postgresql:u:{CANARY}@127.0.0.1/x",
    f"postgresql//u:{CANARY}@127.0.0.1/x",
    f"postgres+asyncpg:/u:{CANARY}@127.0.0.1/x",
    f"mysql://u:{CANARY}@127.0.0.1/x",
]


@pytest.mark.parametrize("url", URLS)
async def test_an_error_says_no_password(url: str, heard: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    def told(error: BaseException) -> str:
        return "".join(traceback.format_exception(error)) + repr(vars(error))

    with pytest.raises(StorageError) as opening:
        await Ledger.open(url)
    with pytest.raises(StorageError) as migrating:
        await asyncio.to_thread(migrate, url)
    assert CANARY not in told(opening.value) + told(migrating.value) + heard()


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("command", ["schema", "threads", "migrate"])
def test_a_command_says_no_password(url: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--url", url, "--debug"]) != 0
    said = capsys.readouterr()
    assert CANARY not in said.out + said.err


def with_password(url: str) -> str:
    """The tests' server asks for none, so any will do."""
    return url.replace("://chatledger@", f"://chatledger:{CANARY}@") + f"?password={CANARY}"


async def test_the_command_that_mends_a_schema_says_no_password(pg_url: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(with_password(pg_url))
    assert "***" in caught.value.command
    assert CANARY not in str(caught.value) + caught.value.command


def test_the_status_of_a_schema_says_no_password(pg_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema", "--url", with_password(pg_url)])
    assert CANARY not in capsys.readouterr().out


async def test_a_ledger_shows_no_password(pg_database: Database, heard: Callable[[], str]) -> None:
    async with Ledger.open(with_password(pg_database.url)) as ledger:
        await ledger.threads.create("t")
        shown = repr(ledger) + repr(vars(ledger)) + repr(ledger._scope)
        assert CANARY not in shown + heard()


SPOKEN = {
    "model": "m-1",
    "llm": {"api_key": CANARY, "headers": {"Authorization": f"Bearer {CANARY}", "X-API-Key": CANARY}},
    "providers": [{"openaiApiKey": CANARY, "max_tokens": 5, "eos_token": "</s>", "key": "stars"}],
    "db": {"url": "here", "PASSWORD": {"old": CANARY, "new": [CANARY]}, "client-secret": CANARY},
    "api_key": "",
    "token": None,
}
KEPT = {
    "model": "m-1",
    "llm": {"api_key": "***", "headers": {"Authorization": "***", "X-API-Key": "***"}},
    "providers": [{"openaiApiKey": "***", "max_tokens": 5, "eos_token": "</s>", "key": "stars"}],
    "db": {"url": "here", "PASSWORD": "***", "client-secret": "***"},
    "api_key": "",
    "token": None,
}


async def test_keys_of_a_run_reach_no_row(database: Database, heard: Callable[[], str]) -> None:
    given = json.dumps(SPOKEN)
    async with database.open() as ledger:
        await ledger.threads.create("t")
        for _ in range(2):  # the same again completes nothing
            run = await ledger.runs.start("t", run_id="r", input=SPOKEN, metadata=SPOKEN)
        assert (run.input, run.metadata) == (KEPT, KEPT)
        assert await ledger.runs.get("r") == run
    assert json.dumps(SPOKEN) == given
    assert CANARY not in repr(await asyncio.to_thread(all_rows, database)) + heard()
    if database.kind == "sqlite":
        files = Path(database.url).parent.glob(Path(database.url).name + "*")
        assert not any(CANARY.encode() in file.read_bytes() for file in files)


async def test_an_error_about_a_run_says_no_key(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.runs.start("t", run_id="r", input={"a": 1})
        with pytest.raises(Exception, match="another input") as caught:
            await ledger.runs.start("t", run_id="r", input=SPOKEN)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


QUOTED = {
    "Incorrect API key provided: sk-proj-c4n4ry7f3aAAAAAAAAAA. See https://example.org/keys.": (
        "Incorrect API key provided: ***. See https://example.org/keys."
    ),
    "401 for {'Authorization': 'Bearer c4n4ry-7f3a'}": "401 for {'Authorization': 'Bearer ***'}",
    '{"x-api-key": "c4n4ry-7f3a", "model": "m-1"}': '{"x-api-key": "***", "model": "m-1"}',
    "cannot reach postgresql://u:c4n4ry-7f3a@db:5432/x": "cannot reach postgresql://u:***@db:5432/x",
    "GET /v1?api_key=c4n4ry-7f3a&n=1 failed": "GET /v1?api_key=***&n=1 failed",
    "token AKIAC4N4RY7F3AAAAAAA is expired": "token *** is expired",
}


@pytest.mark.parametrize("said", QUOTED)
async def test_keys_that_an_error_quotes_reach_no_row(database: Database, heard: Callable[[], str], said: str) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.runs.start("t", run_id="r")
        for _ in range(2):  # the same again changes nothing
            assert (await ledger.runs.finish("r", status="failed", error=said)).error == QUOTED[said]
    assert "c4n4ry" not in (repr(await asyncio.to_thread(all_rows, database)) + heard()).lower()


@pytest.mark.parametrize(
    "said",
    [
        "out of \ud800 quota",
        "the password must not be empty",
        "max_tokens: 5 is too few for token 7 of task sk-1",
        "Basic usage: see https://example.org:8080/a@b",
        "basic: 12345678",
    ],
)
def test_an_error_that_quotes_no_key_is_kept_as_it_is(said: str) -> None:
    assert masked_text(said) == said


def test_a_long_text_is_looked_through_in_linear_time() -> None:
    """Some of the worst for a pattern that tries each of its beginnings to the end: this would not come back."""
    for piece in ("api_key", "a-", "://a:", "sk-", "bearer ", "api_key: "):
        masked_text(piece * (200_000 // len(piece)))


def test_values_without_secrets_are_kept() -> None:
    harmless: Any = {"keys": ["a"], "tokens": 5, "total_tokens": 1, "passwordless": True, "author": "ada", "secrets": 2}
    assert masked(harmless) == harmless
    assert not any(map(is_secret_name, harmless))
    assert all(map(is_secret_name, SECRET_NAMES))


def test_masking_needs_no_recursion() -> None:
    deep: Any = {"api_key": CANARY}
    for _ in range(20_000):
        deep = [deep]
    kept = masked(deep)
    while isinstance(kept, list):
        [kept] = kept
    assert kept == {"api_key": "***"}


def test_the_environment_is_not_quoted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(os.environ, "CHATLEDGER_URL", URLS[0])
    assert main(["threads", "--debug"]) != 0
    assert CANARY not in str(capsys.readouterr())


PIECES = st.sampled_from(
    ["api", "key", "Key", "_", "-", ".", " ", "secret", "Access", "token", "x" * 30, "A", "\n", "pass", "word"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_end_of_a_name_says_whether_it_is_secret(name: str) -> None:
    words = secrets._WORD.sub("_", name).lower()
    whole = re.fullmatch(rf"(?:.*_)?(?:{'|'.join(SECRET_NAMES)})", words[-60:])
    assert is_secret_name(name) == (whole is not None and len(name) <= 200)


async def test_the_secrets_of_many_names_are_masked_apart_from_the_event_loop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noted(value: Any) -> Any:
        threads.append(threading.get_ident())
        return masked(value)

    monkeypatch.setattr(runs, "masked", noted)
    await ledger.threads.create("t")
    run = await ledger.runs.start("t", input={f"api_key{number}": number for number in range(20_000)} | {"api_key": 1})
    assert (run.input or {})["api_key"] == "***"
    assert threading.get_ident() not in threads
    assert len(threads) == 2
