"""Ids, names and search terms that look like SQL, like a bound parameter or like a template: they stay data."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from chatledger import ChatMessage, Feedback, Ledger, NotFound
from chatledger.errors import InvalidCursor
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.storage.repositories.outputs import add_outputs, list_agents, list_outputs, replace_agents
from chatledger.types import OpenDraft
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.migrations.access import all_rows

WORDS = [
    "'; DROP TABLE messages; --",
    '"x" OR 1=1',
    "%",
    "_",
    "100%(name)s %s %%",
    ":tenant",
    "a::text",
    "{schema}",
    "{}",
    "$1",
    "?",
    "\\",
    "' || (SELECT 1) || '",
    "*/ -- /*",
]


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_in_every_place_comes_back_as_it_is(database: Database, word: str) -> None:
    async with database.open(tenant=word) as ledger:
        await fill(ledger, word)
        [thread] = await ledger.user(word).threads.list()
        assert (thread.thread_id, thread.title, thread.user_id, thread.metadata) == (word, word, word, {word: word})
        history = await ledger.user(word).messages.history(word, run_id=word)
        assert [message.text for message in history.messages] == [word, "", word, word]
        assert (await ledger.messages.get(word, word)).seq == 1
        [run] = await ledger.runs.list(thread_id=word)
        assert (run.run_id, run.agent, run.model, run.input) == (word, word, word, word)
        [score] = await ledger.feedback.list(events=True, run_id=word)
        assert (score.key, score.author) == (word, word)
        [summed] = await ledger.feedback.summary(key=word, agent=word, model=word)
        assert summed.count == 1


async def fill(ledger: Ledger, word: str) -> None:
    await ledger.user(word).threads.create(word, title=word, metadata={word: word})
    await ledger.runs.start(word, run_id=word, agent=word, model=word, input=word)
    calls = [call(word, name=word)]
    messages = [user(word, message_id=word), assistant("", calls=calls), result(word, word), last(word)]
    await ledger.messages.append(word, messages, run_id=word, idempotency_key=word)
    score = Feedback(run_id=word, key=word, score=1, author=word, source=word)
    await ledger.feedback.record(score, idempotency_key=word)


def last(word: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=word, name=word)


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_in_what_hangs_on_a_thread_comes_back_as_it_is(database: Database, word: str) -> None:
    """Agents, outputs, partial messages, pages, and erasures."""
    async with database.open(tenant=word) as ledger:
        await ledger.user(word).threads.create(word)
        await ledger.messages.append(word, [user(word, message_id=word)])
        agent = ThreadAgent(name=word, definition={word: word}, settings={word: word})
        assert await replace_agents(scope_of(ledger), word, [agent], stored=[])
        assert await list_agents(scope_of(ledger), word) == [agent]
        output = Output(branch=0, seq=1, nonce=word, mime_type=word, text=word, body={word: word})
        await add_outputs(scope_of(ledger), word, [output])
        assert await list_outputs(scope_of(ledger), word) == [output]
        await ledger.messages.append(word, [ChatMessage(role="assistant", content=word, state="partial", run_id=word)])
        (left,) = await ledger.drafts.list()
        assert (left.thread_id, left.run_id) == (word, word)
        assert await ledger.drafts.interrupt(left)
        await ledger.user(word).threads.create(f"{word}2")
        pages = [await ledger.user(word).threads.list(limit=1)]
        pages.append(await ledger.user(word).threads.list(limit=1, cursor=pages[0].next_cursor))
        assert {thread.thread_id for page in pages for thread in page} == {word, f"{word}2"}
        await ledger.erasures.erase(("thread", word))
        assert (await ledger.erasures.find(("thread", word))) is not None
        await ledger.erasures.erase(("user", word))
        assert (await ledger.erasures.find(("user", word))) is not None
        assert (await ledger.threads.list()).items == []


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_reaches_nothing_that_hangs_on_another_thread(database: Database, word: str) -> None:
    async with database.open() as ledger:
        await fill(ledger, "other")
        await replace_agents(scope_of(ledger), "other", [ThreadAgent(name="a", definition={})], stored=[])
        await add_outputs(scope_of(ledger), "other", [Output(branch=0, seq=1, nonce="n", mime_type="m", text="x")])
        before = await asyncio.to_thread(all_rows, database)
        assert await ledger.erasures.find(("thread", word)) is None
        assert (await ledger.erasures.erase(("user", word))).total == 0
        assert (await ledger.tenant(word).erasures.erase(("tenant",))).total == 0
        nothing = OpenDraft(thread_id=word, branch=0, seq=1, message_id=word, run_id=word, created_at=NOW, since=NOW)
        assert not await ledger.drafts.interrupt(nothing)
        for refused in (
            list_agents(scope_of(ledger), word),
            list_outputs(scope_of(ledger), word),
            replace_agents(scope_of(ledger), word, [], stored=[]),
            add_outputs(scope_of(ledger), word, [Output(branch=0, seq=1, nonce=word, mime_type="m", text="x")]),
            ledger.erasures.erase(("thread", word)),
            ledger.messages.erase(word, word),
            ledger.threads.list(cursor=word),
            ledger.runs.list(cursor=word),
            ledger.feedback.list(events=True, cursor=word),
            ledger.erasures.list(cursor=word),
        ):
            with pytest.raises((NotFound, InvalidCursor)):
                await refused
        with pytest.raises(InvalidCursor):
            ledger.replica(word)
        after = await asyncio.to_thread(all_rows, database)
        assert {table: rows for table, rows in after.items() if table not in ("erasures", "tenants")} == {
            table: rows for table, rows in before.items() if table not in ("erasures", "tenants")
        }


NOW = datetime(2024, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_finds_nothing_but_itself(database: Database, word: str) -> None:
    """A wildcard or an injected condition would find, change or delete the other."""
    async with database.open() as ledger:
        await fill(ledger, "other")
        before = await asyncio.to_thread(all_rows, database)
        assert (await ledger.user(word).threads.list()).items == []
        assert await ledger.threads.find(word) is None
        assert await ledger.runs.find(word) is None
        assert (await ledger.runs.list(thread_id=word)).items == []
        assert (await ledger.feedback.list(events=True, run_id=word)).items == []
        assert await ledger.feedback.summary(key=word) == []
        assert (await ledger.messages.history("other", run_id=word)).messages == []
        for refused in (
            ledger.threads.delete(word),
            ledger.messages.history(word),
            ledger.user(word).messages.history("other"),
            ledger.messages.get("other", word),
            ledger.runs.finish(word, status="failed"),
            ledger.branches.list(word),
            ledger.tenant(word).threads.get("other"),
        ):
            with pytest.raises(NotFound):
                await refused
        assert await asyncio.to_thread(all_rows, database) == before
