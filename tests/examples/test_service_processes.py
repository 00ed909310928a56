"""The example of a service as two processes, by HTTP: clients repeat themselves, lose their connections, stop and
approve answers at the other process, and one process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
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

from chatledger import ChatMessage
from chatledger.types import ThreadChange
from tests.conftest import Database
from tests.following import Reader

ROOT = Path(__file__).parents[2]
USERS = ("ada", "eve", "kay", "lin")
LONG = " ".join("abcdefghijklmnopqrst" * 3)
QUESTIONS = (f"first {LONG}", "the weather?", f"second {LONG}", "a trip?", f"third {LONG}")
RESULTS = {"the weather?": "raining in Bergen", "a trip?": None}
STOPPED = f"stop {LONG} {LONG} {LONG} {LONG} {LONG}"
EVENTS_UNTIL_THE_KILL = 12
"""Events of growing answers that all clients together have when a process is killed."""
SECONDS = 120
"""How long a client tries at most. Another process takes up the answers of a dead one after about 6.5 seconds."""


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
    """Counts the events of growing answers that all clients got, and the streams that broke off. The process to kill is
    one that works on the answer of such an event.
    """

    def __init__(self) -> None:
        self.events = 0
        self.broken = 0
        self.url_to_kill = ""
        self.reached = asyncio.Event()

    def add(self, url: str) -> None:
        self.events += 1
        if self.events >= EVENTS_UNTIL_THE_KILL and not self.reached.is_set():
            self.url_to_kill = url
            self.reached.set()


class Client:
    """A user with one thread, who sends each request twice, to both processes, repeats what failed, and reconnects. Its
    copy of the thread has nothing but its questions and what events told.
    """

    def __init__(self, http: httpx.AsyncClient, user: str, servers: list[Server], progress: Progress) -> None:
        self.http = http
        self.user = user
        self.headers = {"X-User": user}
        self.servers = servers
        self.progress = progress
        self.reader = Reader(user)
        self.growing = asyncio.Event()
        self.asked = 0

    def url(self, attempt: int) -> str:
        """The process of the attempt. The first one that is asked works on the answer."""
        number = USERS.index(self.user) + self.asked + attempt  # users are on both processes at any time
        return self.servers[number % len(self.servers)].url

    async def talk(self) -> None:
        for text in QUESTIONS:
            run_id, body = await self.ask(text)
            again, status = await asyncio.gather(
                self.send("POST", f"/threads/{self.user}/answers", body, first=1), self.follow(run_id)
            )
            assert (again["run"]["run_id"], again["replayed"]) == (run_id, True)
            if text == "a trip?":
                assert status == "paused"
                decision = {"approve": ["call_trip"]}
                assert (await self.send("POST", f"/answers/{run_id}/resume", decision, first=1))["waiting"] == {}
                status = await self.follow(run_id, begun=True)
            assert status == "completed"
            self.asked += 1

    async def stop(self) -> None:
        """Stop an answer at another process, in the middle of its words."""
        run_id, _ = await self.ask(STOPPED)
        self.growing.clear()
        following = asyncio.create_task(self.follow(run_id))
        await self.growing.wait()
        assert (await self.send("POST", f"/answers/{run_id}/stop", first=1))["status"] == "cancelled"
        stored = await self.read()
        assert await following == "cancelled"
        assert await self.read() == stored

    async def ask(self, text: str) -> tuple[str, dict[str, str]]:
        body = {"text": text, "request_id": f"q{self.asked}"}
        answer = await self.send("POST", f"/threads/{self.user}/answers", body)
        self.reader.messages.append(ChatMessage.model_validate(answer["question"]))
        return answer["run"]["run_id"], body

    async def send(self, method: str, path: str, body: Any = None, *, first: int = 0) -> Any:
        """Repeat a request until a process answers."""
        async with asyncio.timeout(SECONDS):
            for attempt in range(first, 10_000):
                with contextlib.suppress(httpx.TransportError):  # that process was killed
                    answer = await self.http.request(method, self.url(attempt) + path, json=body, headers=self.headers)
                    if answer.status_code == 200:
                        return answer.json()
                    assert answer.status_code == 503, answer.text
                await asyncio.sleep(0.2)
        raise AssertionError("no process answers")

    async def read(self) -> Any:
        return (await self.send("GET", f"/threads/{self.user}/messages"))["messages"]

    async def follow(self, run_id: str, *, begun: bool = False) -> str:
        """Until the answer has ended or waits. Goes on after each lost connection with the last event."""
        async with asyncio.timeout(SECONDS):
            for attempt in range(10_000):
                headers = self.headers | ({"Last-Event-ID": str(self.reader.cursor)} if begun else {})
                url, told = self.url(attempt), 0
                try:
                    async with self.http.stream("GET", f"{url}/answers/{run_id}/events", headers=headers) as answer:
                        assert answer.status_code in (200, 503), await answer.aread()
                        async for change in changes(answer):
                            self.reader.apply(change)
                            begun, told = True, told + 1
                            if change.kind == "grown":
                                self.growing.set()
                                self.progress.add(url)
                            if change.kind == "run" and change.run_id == run_id and change.status != "running":
                                return str(change.status)
                except httpx.TransportError:
                    self.progress.broken += told > 0
                await asyncio.sleep(0.2)
        raise AssertionError("the answer never ended")


async def changes(answer: httpx.Response) -> AsyncIterator[ThreadChange]:
    """The change of each server-sent event, whose id is its cursor."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            change = ThreadChange.model_validate_json(fields["data"])
            assert (change.kind, change.cursor) == (fields["event"], fields["id"])
            yield change
            fields = {}


async def test_every_answer_is_whole_and_told_once_though_a_process_is_killed(database: Database) -> None:
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
        await clients[0].stop()


async def check(client: Client) -> None:
    messages = await client.read()
    assert [message["seq"] for message in messages] == [*range(1, len(messages) + 1)]
    expected: list[tuple[str, str | None]] = []
    for text in QUESTIONS:
        expected.append(("user", text))
        if text in RESULTS:
            result = RESULTS[text] or messages[len(expected) + 1]["content"]
            expected += [("assistant", None), ("tool", result), ("assistant", f"It is {result}.")]
        else:
            expected.append(("assistant", f"You said: {text}"))
    assert [(message["role"], message["content"]) for message in messages] == expected
    assert {message["state"] for message in messages} == {"complete"}
    told = [message.model_dump(mode="json") for message in client.reader.messages]
    assert [one | {"answers": None} for one in told] == [one | {"answers": None} for one in messages]
    other = next(user for user in USERS if user != client.user)
    found = await client.send("GET", "/threads")
    assert [thread["thread_id"] for thread in found["threads"]] == [client.user]
    refused = await client.http.get(client.url(0) + f"/threads/{other}/messages", headers=client.headers)
    assert refused.status_code == 404
