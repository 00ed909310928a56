"""The example of a service as two processes, by HTTP: clients repeat themselves, and one process is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import Database

ROOT = Path(__file__).parents[2]
USERS = ("ada", "eve", "kay", "lin")
QUESTIONS = 5
PIECES_UNTIL_THE_KILL = 150
"""Pieces of answers that all clients together have when a process is killed."""
SECONDS = 120
"""How long a client tries at most. A draft whose process was killed is live for ten seconds."""


class Server:
    """A process of the service on a port of its own, on loopback."""

    process: Process
    url: str

    async def start(self, database_url: str) -> None:
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "CHATLEDGER_URL": database_url, "PYTHONPATH": paths}
        options = ("--host", "127.0.0.1", "--port", "0", "--timeout-graceful-shutdown", "1", "--no-access-log")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "uvicorn", "examples.service.app:app", *options, env=environment, stderr=PIPE
        )
        assert self.process.stderr is not None
        said = ""
        while (found := re.search(r"running on (http://[\d.:]+)", said)) is None:
            line = await self.process.stderr.readline()
            assert line, said
            said += line.decode()
        self.url = found[1]
        self._log = asyncio.create_task(self.process.stderr.read())

    async def stop(self, number: int = signal.SIGTERM) -> str:
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.process.wait()
        return (await self._log).decode()


@asynccontextmanager
async def running(url: str, *, count: int) -> AsyncIterator[list[Server]]:
    servers = [Server() for _ in range(count)]
    try:
        await asyncio.gather(*(server.start(url) for server in servers))
        yield servers
    finally:
        logs = await asyncio.gather(*(server.stop() for server in servers if hasattr(server, "process")))
    assert not [log for log in logs if "Traceback" in log]


class Progress:
    """Counts the pieces that all clients got, and the answers that broke off. The process to kill is one that is in the
    middle of an answer.
    """

    def __init__(self) -> None:
        self.pieces = 0
        self.broken = 0
        self.url_to_kill = ""
        self.reached = asyncio.Event()

    def add(self, url: str, pieces: int) -> None:
        self.pieces += 1
        if self.pieces >= PIECES_UNTIL_THE_KILL and pieces == 5 and not self.reached.is_set():
            self.url_to_kill = url
            self.reached.set()


class Client:
    """A user with one thread, who sends each request to another process, repeats failed requests, and sends each one
    twice.
    """

    def __init__(self, http: httpx.AsyncClient, user: str, servers: list[Server], progress: Progress) -> None:
        self.http = http
        self.user = user
        self.servers = servers
        self.progress = progress
        self.asked: list[str] = []
        self.followed: dict[int, dict[str, Any]] = {}
        self.cursors: list[str] = []

    def url(self, attempt: int) -> str:
        number = USERS.index(self.user) + len(self.asked) + attempt  # users are on both processes at any time
        return self.servers[number % len(self.servers)].url

    async def talk(self) -> None:
        follower = None
        for number in range(QUESTIONS):
            text = "the weather?" if number == 1 else f"{self.user} asks {number}: " + " ".join("abcdefghijklmnopqrst")
            self.asked.append(text)
            body = {"text": text, "request_id": f"q{number}"}
            ends = await asyncio.gather(*(self.until_told(f"/threads/{self.user}/messages", body) for _ in range(2)))
            assert ends[0] == ends[1]
            follower = follower or asyncio.create_task(self.follow())
        question = (await self.read())["messages"][-2]
        body = {"question": question["message_id"], "request_id": "another"}
        await asyncio.gather(*(self.until_told(f"/threads/{self.user}/answers", body) for _ in range(2)))
        assert follower is not None
        async with asyncio.timeout(SECONDS):
            await follower

    async def until_told(self, path: str, body: dict[str, str]) -> Any:
        """Repeat a request until a process told the end of a complete answer."""
        async with asyncio.timeout(SECONDS):
            for attempt in range(10_000):
                with contextlib.suppress(httpx.TransportError):
                    end = await self.ask(self.url(attempt) + path, body)
                    if end is not None and end["state"] == "complete":
                        return end
                await asyncio.sleep(0.2)
        raise AssertionError("the answer never ended")

    async def ask(self, url: str, body: dict[str, str]) -> Any:
        async with self.http.stream("POST", url, json=body, headers={"X-User": self.user}) as answer:
            if answer.status_code != 200:
                assert answer.status_code in (409, 503), await answer.aread()
                return None
            pieces = 0
            try:
                async for name, data, _ in events(answer):
                    if name == "end":
                        return data
                    pieces += 1
                    self.progress.add(url, pieces)
            except httpx.TransportError:
                self.progress.broken += pieces > 0
                raise
        return None

    async def read(self) -> Any:
        path, headers = f"/threads/{self.user}/messages", {"X-User": self.user}
        async with asyncio.timeout(SECONDS):
            for attempt in range(10_000):
                with contextlib.suppress(httpx.TransportError):  # that process was killed
                    return (await self.http.get(self.url(attempt) + path, headers=headers)).raise_for_status().json()
                await asyncio.sleep(0.2)
        raise AssertionError("no process answers")

    async def follow(self) -> None:
        """Until the other answer is complete. Begins with the messages as they are, and goes on after each lost
        connection with the last event.
        """
        page = await self.read()
        self.followed = {message["seq"]: message for message in page["messages"]}
        path = f"/threads/{self.user}/changes?cursor={page['mark']}"
        for attempt in range(10_000):
            headers = {"X-User": self.user} | ({"Last-Event-ID": self.cursors[-1]} if self.cursors else {})
            with contextlib.suppress(httpx.TransportError):
                async with self.http.stream("GET", self.url(attempt) + path, headers=headers) as answer:
                    assert answer.status_code in (200, 503), await answer.aread()
                    async for name, change, cursor in events(answer):
                        self.cursors.append(cursor)
                        if self.apply(name, change):
                            return
            await asyncio.sleep(0.2)

    def apply(self, name: str, change: Any) -> bool:
        if name == "appended":
            assert change["seq"] not in self.followed, "a message was told twice"
        if name == "activated":
            self.followed = {seq: message for seq, message in self.followed.items() if seq <= change["seq"]}
        elif change["message"] is not None:
            self.followed[change["seq"]] = change["message"]
        return name in ("appended", "completed") and change["branch"] > 0 and change["message"]["state"] == "complete"


async def events(answer: httpx.Response) -> AsyncIterator[tuple[str, Any, str]]:
    """The name, the data and the id of each server-sent event."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id", "")
            fields = {}


async def test_every_user_sees_every_acknowledged_message_once_though_a_process_is_killed(database: Database) -> None:
    progress = Progress()
    async with running(database.url, count=2) as servers, httpx.AsyncClient(timeout=SECONDS) as http:
        clients = [Client(http, user, servers, progress) for user in USERS]
        talks = [asyncio.create_task(client.talk()) for client in clients]
        try:
            await asyncio.wait([asyncio.create_task(progress.reached.wait()), *talks], return_when="FIRST_COMPLETED")
            assert progress.reached.is_set()
            killed = next(server for server in servers if progress.url_to_kill.startswith(server.url))
            log = await killed.stop(signal.SIGKILL)
            assert "Traceback" not in log
            await killed.start(database.url)
            await asyncio.gather(*talks)
        finally:
            for talk in talks:
                talk.cancel()
        assert progress.broken > 0
        for client in clients:
            await check(client)


async def check(client: Client) -> None:
    messages = (await client.read())["messages"]
    assert [message["seq"] for message in messages] == [*range(1, len(messages) + 1)]
    told = [(message["role"], message["content"]) for message in messages if message["state"] == "complete"]
    expected: list[tuple[str, str | None]] = []
    for text in client.asked:
        expected.append(("user", text))
        if text == "the weather?":
            expected += [("assistant", None), ("tool", "raining in Bergen"), ("assistant", "It is raining in Bergen.")]
        else:
            expected.append(("assistant", f"You said: {text}"))
    assert told == expected
    assert [client.followed[seq]["content"] for seq in sorted(client.followed)] == [one["content"] for one in messages]
    assert len(set(client.cursors)) == len(client.cursors)
    other = next(user for user in USERS if user != client.user)
    headers = {"X-User": client.user}
    found = await client.http.get(client.url(0) + "/threads", headers=headers)
    assert [thread["thread_id"] for thread in found.json()["threads"]] == [client.user]
    refused = await client.http.get(client.url(0) + f"/threads/{other}/messages", headers=headers)
    assert refused.status_code == 404
