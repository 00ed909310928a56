"""The client against real servers: two workers on PostgreSQL and one on SQLite, with tokens."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError, OpenAI

from chatledger.server import Caller, TokenFile
from tests.conftest import Database
from tests.server.conftest import serving

WRITERS = 8
ROUNDS = 10


@dataclass
class Service:
    url: str
    ada: str
    """A token of user ada."""
    bob: str


@pytest.fixture
def service(database: Database, tmp_path: Path) -> Iterator[Service]:
    path = tmp_path / "tokens.json"
    tokens = TokenFile.create(path)
    ada, bob = (tokens.add(Caller(user)) for user in ("ada", "bob"))
    workers = "2" if database.kind == "postgresql" else "1"
    with serving(database.url, "--tokens", str(path), "--workers", workers) as server:
        yield Service(f"{server.url}/v1", ada, bob)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def test_the_client_without_an_event_loop_does_everything(service: Service) -> None:
    with OpenAI(base_url=service.url, api_key=service.ada) as client:
        conversation = client.conversations.create(metadata={"topic": "weather"}, items=[user("0")])
        for number in range(1, 45, 4):
            made = client.conversations.items.create(
                conversation.id, items=[user(str(number + place)) for place in range(4)]
            )
            assert len(made.data) == 4
        found: list[Any] = [item.to_dict() for item in client.conversations.items.list(conversation.id, order="asc")]
        assert [item["content"][0]["text"] for item in found] == [str(number) for number in range(45)]
        assert [item.id for item in client.conversations.items.list(conversation.id, limit=7)] == [
            item["id"] for item in reversed(found)
        ]
        item = client.conversations.items.retrieve(found[3]["id"], conversation_id=conversation.id)
        assert item.to_dict() == found[3]
        assert client.conversations.items.delete(found[3]["id"], conversation_id=conversation.id) == conversation
        assert client.conversations.update(conversation.id, metadata={"a": "b"}).metadata == {"a": "b"}
        assert client.conversations.retrieve(conversation.id).metadata == {"a": "b"}
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(NotFoundError):
            client.conversations.retrieve(conversation.id)


def test_a_token_decides_what_is_found(service: Service) -> None:
    with (
        OpenAI(base_url=service.url, api_key=service.ada) as ada,
        OpenAI(base_url=service.url, api_key=service.bob) as bob,
    ):
        conversation = ada.conversations.create(items=[user("hello")])
        with pytest.raises(NotFoundError):
            bob.conversations.items.list(conversation.id)
    with OpenAI(base_url=service.url, api_key="wrong") as nobody, pytest.raises(AuthenticationError):
        nobody.conversations.retrieve(conversation.id)


async def test_writers_at_the_same_time_each_keep_their_order(service: Service, database: Database) -> None:
    async with AsyncOpenAI(base_url=service.url, api_key=service.ada) as client:
        conversation = await client.conversations.create()

        async def write(writer: int) -> None:
            async with AsyncOpenAI(
                base_url=service.url, api_key=service.ada
            ) as own:  # its own connection, to any worker
                for round_ in range(ROUNDS):
                    items = [user(f"{writer} {round_} {number}") for number in range(3)]
                    await own.conversations.items.create(conversation.id, items=items)

        await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
        listed: Any = client.conversations.items.list(conversation.id, order="asc", limit=100)
        found = [item.to_dict()["content"][0]["text"] async for item in listed]
    assert len(found) == WRITERS * ROUNDS * 3
    for writer in range(WRITERS):
        own = [text for text in found if text.startswith(f"{writer} ")]
        assert own == [f"{writer} {round_} {number}" for round_ in range(ROUNDS) for number in range(3)]
    batches = [{text.rsplit(" ", 1)[0] for text in found[at : at + 3]} for at in range(0, len(found), 3)]
    assert all(len(batch) == 1 for batch in batches)
    async with database.open() as ledger:
        history = (await ledger.messages.history(conversation.id)).encode("openai-chat", as_="dicts")
        assert [message["content"] for message in history.payload] == found


def test_the_same_request_from_many_clients_is_stored_once(service: Service) -> None:
    """As if a client had lost the answers: each sends the same key, to whichever worker takes the connection."""
    key = {"Idempotency-Key": "k"}

    def create(_: int) -> tuple[str, list[str]]:
        with OpenAI(base_url=service.url, api_key=service.ada) as client:
            conversation = client.conversations.create(items=[user("1"), user("2")], extra_headers=key)
            client.conversations.items.create(conversation.id, items=[user("3"), user("4")], extra_headers=key)
            return conversation.id, [str(item.id) for item in client.conversations.items.list(conversation.id)]

    with ThreadPoolExecutor(WRITERS) as pool:
        made = list(pool.map(create, range(WRITERS)))
    assert made == [made[0]] * WRITERS
    assert len(made[0][1]) == 4


def test_a_worker_that_is_killed_loses_and_doubles_nothing(pg_database: Database) -> None:
    """The clients repeat what was cut off, on the other worker; the ids of the items make that safe."""
    with serving(pg_database.url, "--workers", "2") as server, ThreadPoolExecutor(WRITERS) as pool:
        url = f"{server.url}/v1"
        with OpenAI(base_url=url, api_key="any", max_retries=20) as client:
            conversation = client.conversations.create()

            def write(writer: int) -> None:
                with OpenAI(base_url=url, api_key="any", max_retries=20) as own:
                    for number in range(ROUNDS):
                        item = user(f"{writer} {number}") | {"id": f"msg_{writer}_{number}"}
                        own.conversations.items.create(conversation.id, items=[item])

            writing = [pool.submit(write, writer) for writer in range(WRITERS)]
            os.kill(workers_of(server.process.pid)[0], signal.SIGKILL)
            for one in writing:
                one.result()
            found = [str(item.id) for item in client.conversations.items.list(conversation.id, order="asc", limit=100)]
    for writer in range(WRITERS):
        assert [id_ for id_ in found if id_.startswith(f"msg_{writer}_")] == [
            f"msg_{writer}_{number}" for number in range(ROUNDS)
        ]
    assert len(found) == WRITERS * ROUNDS


def workers_of(pid: int) -> list[int]:
    """The processes that the server started to serve requests."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
