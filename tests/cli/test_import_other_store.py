"""`chatledger import --from URL --store NAME`, as somebody who leaves a framework's own store calls it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.transfer.other_stores import (
    Source,
    add_events,
    add_items,
    add_session,
    make_adk,
    make_agents,
    make_histories,
    set_shared_state,
)

QUESTION = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello."}


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A store of OpenAI Agents with three sessions, one of which has a bad row."""

    async def make() -> None:
        source = Source("sqlite", str(tmp_path / "agents.db"))
        await make_agents(source)
        await add_items(source, "one", QUESTION, ANSWER)
        await add_items(source, "two", QUESTION)
        await add_items(source, "three", QUESTION, "{torn")

    asyncio.run(make())
    return tmp_path


def test_a_store_is_imported_twice(database: Database, agents: Path) -> None:
    command = ("import", "--from", agents / "agents.db", "--store", "openai-agents")
    first = chatledger(*command, url=database.url)
    assert (first.code, first.out) == (1, "2 threads (2 created), 3 messages stored, 1 session failed\n")
    file = agents / "agents.db"
    assert first.error == f"chatledger: {file}, session 'three': table agent_messages, row 5: not JSON"
    again = chatledger(*command, "--json", url=database.url)
    assert again.json["threads"] == {"created": 0, "grown": 0, "unchanged": 2, "failed": 1}
    assert again.json["failures"][0]["place"] == "session 'three'"
    shown = chatledger("show", "one", "--format", "openai-responses", url=database.url)
    assert shown.json == [QUESTION, ANSWER]


def test_an_owner_and_chosen_sessions(agents: Path) -> None:
    chosen = ("--session", "one", "--session", "two", "--user", "ada")
    command = ("import", "--from", "agents.db", "--store", "openai-agents", *chosen)
    done = chatledger(*command, url="l.db", cwd=agents)
    assert (done.code, done.out) == (0, "2 threads (2 created), 3 messages stored\n")
    listed = chatledger("threads", "--user", "ada", "--json", url="l.db", cwd=agents)
    assert {thread["thread_id"] for thread in listed.json["items"]} == {"one", "two"}


def test_a_store_on_postgresql_with_state(pg_url: str, tmp_path: Path) -> None:
    async def make() -> None:
        source = Source("postgresql", pg_url)
        await make_adk(source)
        await set_shared_state(source, {"tone": "calm"}, "ada", {"name": "Ada"})
        await add_session(source, "ada", "s")
        event = {"id": "e", "invocation_id": "i", "timestamp": 5.0, "author": "user", "content": {"parts": []}}
        await add_events(source, "ada", "s", event)

    asyncio.run(make())
    done = chatledger("import", "--from", pg_url, "--store", "adk", url="l.db", cwd=tmp_path)
    said = "1 thread (1 created), 1 message and 2 values of shared state stored\n"
    assert (done.code, done.out, done.err) == (0, said, "")


def test_a_dry_run_and_a_wrong_source_make_no_file(agents: Path) -> None:
    command = ("import", "--store", "openai-agents", "--from")
    dry = chatledger(*command, "agents.db", "--session", "one", "--dry-run", url="l.db", cwd=agents)
    assert (dry.code, dry.out) == (
        0,
        "dry run, nothing is written: 1 thread (1 created), 2 messages to store\n",
    )
    wrong = chatledger(*command, "agent.db", url="l.db", cwd=agents)
    assert (wrong.code, wrong.error) == (3, "chatledger: there is no database agent.db to import from")
    other = chatledger("import", "--from", "agents.db", "--store", "langchain", url="l.db", cwd=agents)
    assert (other.code, other.error) == (
        3,
        "chatledger: agents.db has no table 'message_store' (its tables: agent_messages); name the table with --table",
    )
    assert not (agents / "l.db").exists()


def test_an_empty_store_is_reported(tmp_path: Path) -> None:
    asyncio.run(make_histories(Source("sqlite", str(tmp_path / "source.db"))))
    done = chatledger("import", "--from", "source.db", "--store", "langchain", url="l.db", cwd=tmp_path)
    assert (done.code, done.out) == (0, "0 threads, 0 messages stored\n")
    assert done.error == "chatledger: source.db: contains no sessions"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "give FILE or --from"),
        ("agents.db --from agents.db --store adk", "give FILE or --from, not both"),
        ("--from agents.db", "give --from and --store together"),
        ("--store adk", "give --from and --store together"),
        ("--from agents.db --store adk --field messages", "--field does not go with --from"),
        ("--from agents.db --store adk --format anthropic", "--format does not go with --from"),
        ("agents.db --user ada", "--user does not go with files"),
        ("agents.db --session s", "--session does not go with files"),
        ("agents.db --table t", "--table does not go with files"),
        ("--from agents.db --store adk --user ada", "user_id cannot be given: ADK's sessions have users"),
        ("--from mysql://host/db --store adk", "mysql is not supported"),
    ],
)
def test_options_that_do_not_go_together(agents: Path, words: str, said: str) -> None:
    outcome = chatledger("import", *words.split(), url="l.db", cwd=agents)
    assert outcome.code in (2, 3)
    assert said in outcome.error
    assert not (agents / "l.db").exists()


def test_a_password_is_not_repeated(tmp_path: Path) -> None:
    source = "postgresql://ada:geheim@127.0.0.1:9/chats"
    outcome = chatledger("import", "--from", source, "--store", "adk", url="l.db", cwd=tmp_path)
    assert outcome.code == 3
    assert "geheim" not in outcome.err + outcome.out
