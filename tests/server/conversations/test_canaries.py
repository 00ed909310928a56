"""No id that the server makes proves a word of the request, with an idempotency key or without."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI

from chatledger.ids import derived_id
from chatledger.server import create_app
from chatledger.storage.schema.tables import metadata
from tests.conftest import Database
from tests.server.conftest import by_header, client_of
from tests.server.conversations.conftest import openai_of
from tests.storage.derived import search, windows
from tests.storage.raw import query
from tests.storage.words import RING, Said


async def say(openai: AsyncOpenAI, said: Said, headers: dict[str, str]) -> None:
    def items() -> list[Any]:
        return [{"role": "user", "content": said("item")}]

    made = await openai.conversations.create(items=items(), metadata={"m": said("metadata")}, extra_headers=headers)
    await openai.conversations.items.create(made.id, items=items(), extra_headers=headers)
    call: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": f'{{"q": "{said("argument")}"}}'}
    await openai.conversations.items.create(made.id, items=[call])


async def test_no_id_of_the_server_tells_a_word_of_the_request(database: Database) -> None:
    said = Said()
    async with database.open(encryption=RING) as ledger:
        app = create_app(ledger, authenticate=by_header)
        async with openai_of(app) as openai, client_of(app) as client:
            for headers in ({}, {"Idempotency-Key": "k"}):
                await say(openai, said, headers)
                made = await client.post("/v1/threads", json={"title": said("title")}, headers=headers)
                run = {"input": {"q": said("input")}}
                answer = await client.post(f"/v1/threads/{made.json()['thread_id']}/runs", json=run, headers=headers)
                assert (made.status_code, answer.status_code) == (201, 201)
        wanted = windows(said.words)
        assert search(await _dump(database), wanted) == set()
        word = said.words[0]  # and as an earlier release made the id of a conversation
        body = f'{{"items": [{{"content": "{word}", "role": "user"}}], "metadata": null}}'
        await ledger.threads.create(f"conv_{derived_id('conversation', '', 'k', body).replace('-', '')}")
        assert search(await _dump(database), wanted) == {word}


async def _dump(database: Database) -> bytes:
    return repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables]).encode()
