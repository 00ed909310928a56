"""Servers that are killed or told to stop while clients write and follow: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest

from chatledger import Ledger
from tests.conftest import Database
from tests.server.clients import Follower, Writers
from tests.server.conftest import Serving, serving

ROUNDS = 3
WRITERS = 8
TURNS = 40
"""Turns to acknowledge between two kills."""


async def start(stack: contextlib.ExitStack, url: str, *options: str) -> Serving:
    return await asyncio.to_thread(stack.enter_context, serving(url, *options))


async def test_a_killed_server_loses_nothing_acknowledged_and_its_streams_go_on_at_the_other(
    database: Database,
) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    async with Ledger.open(database.url) as ledger:
        threads = [(await ledger.threads.create()).thread_id for _ in range(2)]
        marks = {thread: (await ledger.branches.get(thread)).mark for thread in threads}
        with contextlib.ExitStack() as stack:
            servers = await asyncio.gather(*(start(stack, database.url) for _ in range(2)))
            urls = [server.url for server in servers]
            writers = Writers(urls, threads)
            followers = [Follower(urls, thread, marks[thread], first) for thread in threads for first in range(2)]
            async with asyncio.TaskGroup() as following:
                follow = [following.create_task(one.follow()) for one in followers]
                async with asyncio.TaskGroup() as writing:
                    write = [writing.create_task(writers.write(f"w{number}")) for number in range(WRITERS)]
                    for number in range(ROUNDS):
                        await writers.reach(TURNS, write)
                        await asyncio.sleep(chance.uniform(0, 0.05))
                        servers[number % 2].stop(signal.SIGKILL)
                        await writers.reach(TURNS, write)
                        servers[number % 2] = await start(stack, database.url)
                        urls[number % 2] = servers[number % 2].url
                    writers.ended = True
                stored = {thread: (await ledger.messages.history(thread)).messages for thread in threads}
                async with asyncio.timeout(10):
                    while any(len(one.seen) < len(stored[one.thread]) for one in followers):  # noqa: ASYNC110 - a test may poll
                        await asyncio.sleep(0.02)
                for task in follow:
                    task.cancel()
    assert writers.resent, "no server was killed between a request and its answer"
    for thread, messages in stored.items():
        turns = [(messages[at].content, messages[at + 1].content) for at in range(0, len(messages), 2)]
        assert all(question == answer for question, answer in turns), "a turn is torn"
        assert [message.role for message in messages] == ["user", "assistant"] * len(turns)
        expected = Counter(key for key, its_thread in writers.acknowledged.items() if its_thread == thread)
        assert Counter(question for question, _ in turns) == expected
    for one in followers:
        assert one.seen == [(message.seq, message.content) for message in stored[one.thread]]
        assert one.streams > 1


# --- SIGTERM ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_that_is_told_to_stop_answers_what_it_was_asked(database: Database, workers: int) -> None:
    """A client that asks anew afterwards is refused. Every request that was sent before gets its whole answer."""
    async with Ledger.open(database.url) as ledger:
        threads = [(await ledger.threads.create()).thread_id for _ in range(WRITERS)]
        with contextlib.ExitStack() as stack:
            server = await start(stack, database.url, "--workers", str(workers))
            stopping = asyncio.Event()
            answered: Counter[str] = Counter()

            async def append(thread: str) -> None:
                body = {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}
                async with httpx.AsyncClient(timeout=20) as client:
                    while not stopping.is_set():
                        answer = await client.post(f"{server.url}/v1/threads/{thread}/messages", json=body)
                        assert answer.status_code == 201
                        answered[thread] += len(answer.json()["messages"])

            async def follow(thread: str) -> None:
                async with (
                    httpx.AsyncClient(timeout=20) as client,
                    client.stream("GET", f"{server.url}/v1/threads/{thread}/events") as events,
                ):
                    async for _ in events.aiter_lines():
                        pass

            async with asyncio.timeout(20), asyncio.TaskGroup() as clients:
                for thread in threads:
                    clients.create_task(append(thread))
                    clients.create_task(follow(thread))
                begun = await begin_append(server, threads[0])
                while sum(answered.values()) < 100:  # noqa: ASYNC110 - a test may poll
                    await asyncio.sleep(0.01)
                stopping.set()
                server.process.terminate()
                status = await end_append(*begun)
            assert status == 201
            answered[threads[0]] += 1
            await asyncio.to_thread(server.process.wait, 10)
        stored = {thread: (await ledger.messages.history(thread)).last_seq for thread in threads}
    assert stored == answered


async def begin_append(server: Serving, thread: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Sends a request but for the last byte of its body."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"messages": [{"role": "system", "content": "slow"}], "rules": "lenient"}).encode()
    head = f"POST /v1/threads/{thread}/messages HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
    await writer.drain()
    return reader, writer


async def end_append(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    await asyncio.sleep(0.3)  # the server has begun to stop
    writer.write(b"}")
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status


async def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    async with Ledger.open(path):
        pass
    with serving(path, "--workers", "2") as server:
        server.stop(signal.SIGKILL)
        async with httpx.AsyncClient() as client, asyncio.timeout(10):
            with pytest.raises(httpx.TransportError):
                while True:
                    await client.get(f"{server.url}/healthz")
                    await asyncio.sleep(0.05)
