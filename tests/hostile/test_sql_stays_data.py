"""Ids, names and search terms that look like SQL, like a bound parameter or like a template: they stay data."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import ChatMessage, Feedback, Ledger, NotFound
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
        [thread] = await ledger.threads.list(user_id=word)
        assert (thread.thread_id, thread.title, thread.user_id, thread.metadata) == (word, word, word, {word: word})
        history = await ledger.messages.history(word, run_id=word, user_id=word)
        assert [message.text for message in history.messages] == [word, "", word, word]
        assert (await ledger.messages.get(word, word)).seq == 1
        [run] = await ledger.runs.list(thread_id=word)
        assert (run.run_id, run.agent, run.model, run.input) == (word, word, word, word)
        [score] = await ledger.feedback.list(run_id=word)
        assert (score.key, score.author) == (word, word)
        [summed] = await ledger.feedback.summary(key=word, agent=word, model=word)
        assert summed.count == 1


async def fill(ledger: Ledger, word: str) -> None:
    await ledger.threads.create(word, title=word, user_id=word, metadata={word: word})
    await ledger.runs.start(word, run_id=word, agent=word, model=word, input=word)
    calls = [call(word, name=word)]
    messages = [user(word, message_id=word), assistant("", calls=calls), result(word, word), last(word)]
    await ledger.messages.append(word, messages, run_id=word, idempotency_key=word)
    score = Feedback(run_id=word, key=word, score=1, author=word, source=word)
    await ledger.feedback.record(score, idempotency_key=word)


def last(word: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=word, name=word)


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_finds_nothing_but_itself(database: Database, word: str) -> None:
    """A wildcard or an injected condition would find, change or delete the other."""
    async with database.open() as ledger:
        await fill(ledger, "other")
        before = await asyncio.to_thread(all_rows, database)
        assert (await ledger.threads.list(user_id=word)).items == []
        assert await ledger.threads.find(word) is None
        assert await ledger.runs.find(word) is None
        assert (await ledger.runs.list(thread_id=word)).items == []
        assert (await ledger.feedback.list(run_id=word)).items == []
        assert await ledger.feedback.summary(key=word) == []
        assert (await ledger.messages.history("other", run_id=word)).messages == []
        for refused in (
            ledger.threads.delete(word),
            ledger.messages.history(word),
            ledger.messages.history("other", user_id=word),
            ledger.messages.get("other", word),
            ledger.runs.finish(word, status="failed"),
            ledger.branches.list(word),
            ledger.tenant(word).threads.get("other"),
        ):
            with pytest.raises(NotFound):
                await refused
        assert await asyncio.to_thread(all_rows, database) == before
