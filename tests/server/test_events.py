"""The events of a thread: each kind of change, resumed in another server process, and the ends of a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger, Pace, ReasoningDelta
from chatledger.repositories import scope_of
from chatledger.server import ServerLimits, create_app
from chatledger.server.answers.event_stream import EncodedOnce
from chatledger.server.state import State
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.databases import poller
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import ThreadChange
from tests.conftest import Database
from tests.following import Reader
from tests.server.conftest import by_header, client_of, json_of, listening, serving, until

LONG = 30
"""Seconds after which an event that does not come is a failure."""


def said(text: str, **fields: Any) -> ChatMessage:
    return ChatMessage(role="user", content=text, **fields)


class Stream:
    """The events of a response. `last` is the id of the last one."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()
        self.last: str | None = None

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The name and the data of the next event."""
        found: dict[str, str] = {}
        async with asyncio.timeout(LONG):
            async for line in self._lines:
                if line == "" and "data" in found:
                    self.last = found.get("id", self.last)
                    return found["event"], json.loads(found["data"])
                name, colon, value = line.partition(": ")
                if name and colon:
                    found[name] = value
        raise AssertionError("the stream ended")

    async def take(self, count: int) -> list[str]:
        """What the next events say: the kind of the change and the text of its message."""
        found = [await self.next() for _ in range(count)]
        return [f"{kind} {(data['message'] or {}).get('content')}" for kind, data in found]


@asynccontextmanager
async def following(url: str, query: str = "", **headers: str) -> AsyncIterator[Stream]:
    async with (
        httpx.AsyncClient(base_url=url, timeout=LONG) as client,
        client.stream("GET", f"/v1/threads/t/events{query}", headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield Stream(response)


async def test_each_kind_of_change_is_an_event(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.messages.append("t", [said("a", message_id="a")], create=True)
        mark = (await ledger.messages.history("t")).mark
        with serving(database.url) as server:
            async with following(server.url, f"?cursor={mark}") as events:
                async with ledger.messages.stream("t") as draft:
                    assert await events.take(1) == ["appended None"]
                    for piece in ("b", "c"):
                        await draft.feed(piece)
                        await draft.flush()
                        kind, change = await events.next()
                        assert (kind, change["message"]["state"]) == ("grown", "partial")
                    await draft.complete()
                assert await events.take(1) == ["completed bc"]
                await ledger.messages.revise("t", "a", said("A"))
                assert await events.take(1) == ["revised A"]
                await ledger.messages.append("t", [said("d", message_id="d")])
                assert await events.take(1) == ["appended d"]
                await ledger.messages.remove("t", "d")
                assert await events.take(1) == ["retracted None"]
                await fork_at(scope_of(ledger), "t", 1)
                assert await events.take(1) == ["activated None"]
                await ledger.messages.append("t", [said("e"), said("f")])
                assert await events.take(2) == ["appended e", "appended f"]
                await rewind_to(scope_of(ledger), "t", 1)
                assert await events.take(1) == ["rewound None"]
                await ledger.threads.delete("t")
                kind, problem = await events.next()
                assert (kind, problem["type"]) == ("problem", "urn:chatledger:ThreadNotFound")


async def test_a_stream_is_resumed_at_another_server(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.messages.append("t", [said("0")], create=True)
        mark = (await ledger.messages.history("t")).mark
    with serving(database.url) as first, serving(database.url) as second:
        async with httpx.AsyncClient(base_url=second.url) as writer:

            async def write(text: str) -> None:
                stored = await writer.post(
                    "/v1/threads/t/messages", json={"messages": [{"role": "user", "content": text}]}
                )
                assert stored.status_code == 201

            async with following(first.url, f"?cursor={mark}") as events:
                await write("1")
                await write("2")
                assert await events.take(2) == ["appended 1", "appended 2"]
            first.process.kill()
            await write("3")
            async with following(second.url, f"?cursor={mark}", **{"Last-Event-ID": events.last or ""}) as resumed:
                await write("4")
                assert await resumed.take(2) == ["appended 3", "appended 4"]


TEXT = "Regen in Tōkyō 東京 🌧, und \u2028\x85\r\n\ud800. "


async def test_a_draft_comes_in_pieces_to_whichever_server_a_reader_goes(database: Database) -> None:
    """The reader leaves after each event. What it puts together is what is stored, and no character came twice."""
    async with database.open() as ledger, ledger.begin() as tx:
        await tx.messages.append("t", [said("0")], create=True)
    async with database.open() as ledger:
        reader = await Reader.of(ledger, "t")
        with serving(database.url) as first, serving(database.url) as second:
            async with ledger.messages.stream("t") as draft:
                for number, piece in enumerate(["", *[TEXT] * 5, ReasoningDelta(text=TEXT, signature="s")]):
                    await draft.feed(piece)
                    await draft.flush()
                    await read_one(reader, (first, second)[number % 2].url)
                await draft.complete()
            await read_one(reader, second.url)
        history = await ledger.messages.history("t")
    assert reader.has(history)
    pieces = [piece for change in reader.told for piece in change.pieces or ()]
    assert repr(pieces).count("Regen") == 6
    assert [change.kind for change in reader.told] == ["appended", *["grown"] * 6, "completed"]


async def test_states_come_with_deltas_alone(database: Database) -> None:
    """A client that connects gets the present ones, and then each that is another one."""
    async with database.open() as ledger:
        await ledger.messages.append("t", [said("0")], create=True)
        async with ledger.messages.stream("t", idempotency_key="k", run_id="r") as draft:
            await draft.leave()
        with serving(database.url) as server:
            async with following(server.url, "?deltas=true") as events, following(server.url) as others:
                assert await events.next() == ("abandoned", {"seq": 2, "message_id": draft.message.message_id})
                assert await events.next() == ("run", {"seq": 2, "run_id": "r", "status": "running"})
                await ledger.runs.finish("r", status="completed")
                assert await events.next() == ("run", {"seq": 2, "run_id": "r", "status": "completed"})
                await ledger.messages.append("t", [said("next")])
                assert [(await others.next())[0] for _ in range(2)] == ["completed", "appended"]


async def read_one(reader: Reader, url: str) -> None:
    async with following(url, "?deltas=true", **{"Last-Event-ID": reader.cursor or ""}) as events:
        kind, fields = await events.next()
        fields.get("message", {}).pop("text", None)  # of a whole message, beside its content
        reader.apply(ThreadChange(kind=kind, cursor=events.last, thread_id="t", **{"branch": 0, **fields}))


async def test_a_text_of_twenty_thousand_characters_costs_little_more_than_itself(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)
    for unit in ("It is sunny. ", "東京は晴れです。"):
        text = (unit * 20_000)[:20_000]
        async with sqlite_database.open() as ledger:
            await ledger.messages.append(unit, [said("?")], create=True)
            mark = (await ledger.messages.history(unit)).mark
            changes = ledger.messages.follow(unit, cursor=mark, deltas=True)
            async with ledger.messages.stream(unit, pace=Pace(interval=3_600, lease=7_200)) as draft:
                told = [await anext(changes)]
                for start in range(0, len(text), 400):
                    await draft.feed(text[start : start + 400])
                    await draft.flush()
                    told.append(await anext(changes))
            told.append(await anext(changes))
            await changes.aclose()
        assert [change.kind for change in told] == ["appended", *["grown"] * 50, "completed"]
        assert max(len(change.cursor) for change in told) <= 28
        events = [await EncodedOnce().of(change, deltas=True).read() for change in told]
        assert sum(map(len, events)) <= 1.35 * len(text.encode())


async def test_a_reader_without_a_place_gets_what_happens_from_now_on(ledger: Ledger) -> None:
    await ledger.messages.append("t", [said("before")], create=True)
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(stream_seconds=2))
    async with client_of(app) as client:
        reading = asyncio.create_task(client.get("/v1/threads/t/events"))
        await until(lambda: bool(app.state.server.waits))
        await asyncio.sleep(0.2)  # the first look at the thread is its place
        await ledger.messages.append("t", [said("after")])
        response = await reading
    assert "before" not in response.text
    assert "after" in response.text
    assert "retry: 1000" in response.text
    assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("place", [b"nonsense", b"\xff"])
async def test_a_place_that_no_event_had_is_refused(client: httpx.AsyncClient, ledger: Ledger, place: bytes) -> None:
    await ledger.threads.create("t")
    refused = await client.get("/v1/threads/t/events", headers={b"Last-Event-ID": place})
    assert json_of(refused, 400)["type"] == "urn:chatledger:InvalidCursor"


async def test_a_stream_has_what_is_appended_as_soon_as_it_is_connected(app: FastAPI, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    async with (
        listening(app) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
        client.stream("GET", "/v1/threads/t/events", headers={"X-User": "*"}) as stream,
    ):
        lines = stream.aiter_lines()
        assert await anext(lines) == ": connected"
        await ledger.messages.append("t", [ChatMessage(role="user", content="at once")])
        while not (line := await anext(lines)).startswith("data:"):
            pass
        assert "at once" in line


async def test_a_server_drains_even_if_the_time_of_a_stream_is_over() -> None:
    state = State(ServerLimits(), by_header)
    ended: list[str] = []

    async def wait(name: str, seconds: float, cleanup: float) -> None:
        try:
            async with asyncio.timeout(seconds) as limit:
                state.waits.add(limit)
                try:
                    await asyncio.sleep(60)
                finally:
                    await asyncio.sleep(cleanup)
        except TimeoutError:
            ended.append(name)

    waiting = [asyncio.create_task(wait("over", 0.01, 0.2)), asyncio.create_task(wait("open", 60, 0))]
    await asyncio.sleep(0.1)
    state.drain()
    await asyncio.gather(*waiting)
    assert sorted(ended) == ["open", "over"]


async def test_the_streams_end_when_the_server_is_told_to_stop(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    app = create_app(ledger, authenticate=by_header)
    async with client_of(app) as client:
        reading = [asyncio.create_task(client.get("/v1/threads/t/events")) for _ in range(3)]
        await until(lambda: len(app.state.server.waits) == 3)
        app.state.server.drain()
        for response in await asyncio.gather(*reading):
            assert "event:" not in response.text
        late = await client.get("/v1/threads/t/events")
        assert late.status_code == 200
        assert (await client.get("/healthz")).status_code == 503
