"""The SQL histories of LangChain, moved in: their readers and ours then give the same messages."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Ledger
from chatledger.adapters.langchain import LedgerChatMessageHistory
from chatledger.transfer.import_other_store import StoreOptions
from tests.adapters.langchain.test_history import talk
from tests.transfer.other_stores import moved

with warnings.catch_warnings():  # both packages announce their end, or that of others, when they are imported
    warnings.simplefilter("ignore")
    from langchain_community.chat_message_histories import SQLChatMessageHistory
    from langchain_postgres import PostgresChatMessageHistory

NAMES = [str(UUID(int=number)) for number in range(1, 6)]
OWN: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "What is this?"}, {"type": "image", "url": "https://example.com/a.png"}]),
    AIMessage(
        [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}, {"type": "text", "text": "A map."}],
        id="run-1",
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        response_metadata={"model_provider": "anthropic"},
    ),
    ToolMessage("broken", tool_call_id="c0", status="error", artifact={"rows": [1, None]}),
]


@pytest.fixture(params=["from sqlite", "from postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "from sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'source.db'}"
    found: str = request.getfixturevalue("pg_url")
    return found.replace("://", "+asyncpg://")


async def test_sqlchatmessagehistory_and_ours_give_the_same(ledger: Ledger, url: str) -> None:
    engine = create_async_engine(url)
    theirs = [SQLChatMessageHistory(name, connection=engine, async_mode=True) for name in NAMES]
    options = StoreOptions("langchain", user_id="ada")
    for round_ in range(2):
        await written(theirs, round_)
        report = await moved(ledger, url, options)
        assert not report.failures
        for name, history in zip(NAMES, theirs, strict=True):
            ours = LedgerChatMessageHistory(name, ledger, user_id="ada")
            assert await ours.aget_messages() == await history.aget_messages() != []
        again = await moved(ledger, url, options)
        assert (again.unchanged, again.messages) == (len(NAMES), 0)
    await engine.dispose()


async def test_postgreschatmessagehistory_and_ours_give_the_same(ledger: Ledger, pg_url: str) -> None:
    options = StoreOptions("langchain", table="my_history")
    async with await psycopg.AsyncConnection.connect(pg_url) as connection:
        await PostgresChatMessageHistory.acreate_tables(connection, "my_history")
        theirs = [PostgresChatMessageHistory("my_history", name, async_connection=connection) for name in NAMES]
        for round_ in range(2):
            await written(theirs, round_)
            report = await moved(ledger, pg_url, options)
            assert (report.failures, report.without_time) == ([], 0)
            for name, history in zip(NAMES, theirs, strict=True):
                expected = await history.aget_messages()
                assert await LedgerChatMessageHistory(name, ledger).aget_messages() == expected != []


async def written(histories: list[Any], round_: int) -> None:
    """Messages in turns, so that the sessions are mixed in the table."""
    shuffled = random.Random(round_)
    for number in range(30):
        batch = [*talk(number)[: shuffled.randrange(1, 5)], *OWN[: shuffled.randrange(5)]]
        await shuffled.choice(histories).aadd_messages(batch)
    for history in histories:
        await history.aadd_messages(OWN)
