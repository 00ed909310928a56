"""Answers over HTTP: a client asks, follows, leaves and comes back, stops, and decides about calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from chatledger import ChatMessage, Ledger
from chatledger.answers import Agent, Call, Pending, Turn
from chatledger.errors import InvalidArgument
from chatledger.server import Caller, create_app
from tests.answers.agents import Model, Tools, agent_of
from tests.server.conftest import client_of, json_of, listening, until


async def by_words(request: Request) -> Caller | None:
    """`X-User: ada ask` is user ada with a token of scope ask, and `X-User: *` the administrator."""
    user, _, scope = request.headers.get("x-user", "").partition(" ")
    return Caller(admin=True) if user == "*" else Caller(user, scope=scope or "write")  # type: ignore[arg-type]


def paying() -> Agent:
    """An agent that pays only what somebody approved."""

    def pay(call: Call) -> str:
        if not call.approved:
            raise Pending("costs 30 EUR")
        return "paid"

    return agent_of(Model(), Tools(pay), again=False)


@asynccontextmanager
async def server(ledger: Ledger, agents: Mapping[str, Agent], **options: Any) -> AsyncIterator[str]:
    app = create_app(ledger, authenticate=by_words, answers=agents, **options)
    async with listening(app) as port:
        yield f"http://127.0.0.1:{port}"


def as_(who: str, url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"X-User": who}, timeout=30)


Event = tuple[str, str, dict[str, Any]]


async def events_of(
    client: httpx.AsyncClient, run_id: str, last: str | None = None, *, most: int = 10**6, until: str = ""
) -> list[Event]:
    """The id, the kind and the data of each event, until the server ends the stream, or the run has the status."""
    events: list[Event] = []
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", f"/v1/answers/{run_id}/events", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                events.append((fields["id"], fields["event"], json.loads(fields["data"])))
                fields = {}
                if len(events) >= most or events[-1][2].get("status") == until:
                    break
    return events


def put_together(events: list[Event]) -> dict[int, str]:
    """The texts of the answer's messages, by their places, from the events alone."""
    said: dict[int, str] = {}
    for _, kind, data in events:
        if kind == "appended":
            content = data["message"].get("content")
            said[data["seq"]] = content if isinstance(content, str) else ""
        for piece in data.get("pieces", ()):
            said[data["seq"]] = said.get(data["seq"], "") + piece.get("text", "")
    return {seq: text for seq, text in said.items() if text}


@pytest.mark.one_server
async def test_a_client_asks_follows_approves_and_reads_the_answer_to_its_end(ledger: Ledger) -> None:
    async with server(ledger, {"support": paying()}) as url, as_("ada", url) as ada, as_("*", url) as admin:
        asked = {"question": "My lamp broke.", "create": True, "metadata": {"from": "web"}}
        begun = await ada.post("/v1/threads/t/answers", json=asked, headers={"Idempotency-Key": "1"})
        answer = json_of(begun, 201)
        run_id = answer["run"]["run_id"]
        assert begun.headers["location"] == f"/v1/answers/{run_id}"
        assert (answer["question"]["text"], answer["run"]["agent"], answer["replayed"]) == (
            "My lamp broke.", "support", False
        )  # fmt: skip
        following = asyncio.create_task(events_of(ada, run_id))
        await (await ledger.answers.get(run_id)).wait()
        assert json_of(await ada.get(f"/v1/answers/{run_id}"))["waiting"] == {"call-0": "costs 30 EUR"}
        live = json_of(await ada.post("/v1/threads/t/answers", json={"question": "Hello?"}), 409)
        assert (live["type"], live["run_id"], live["until"]) == ("urn:chatledger:RunLive", run_id, None)
        paused = (await events_of(ada, run_id, until="paused"))[-1]
        assert paused[1:] == (
            "run",
            {"seq": 2, "run_id": run_id, "status": "paused", "waiting": {"call-0": "costs 30 EUR"}},
        )
        assert not following.done()  # a pause is no end
        resumed = json_of(await admin.post(f"/v1/answers/{run_id}/resume", json={"approve": ["call-0"]}))
        assert resumed["waiting"] == {}
        events = await asyncio.wait_for(following, 30)
        assert (events[-1][1], events[-1][2]["status"]) == ("run", "completed")  # a slow follower skips states before
        assert put_together(events) == {3: "paid", 4: "It is sunny."}
        again = await ada.post("/v1/threads/t/answers", json=asked, headers={"Idempotency-Key": "1"})
        assert json_of(again)["replayed"]
        other = {**asked, "question": "My chair broke."}
        conflict = json_of(await ada.post("/v1/threads/t/answers", json=other, headers={"Idempotency-Key": "1"}), 409)
        assert conflict["type"] == "urn:chatledger:IdConflict"
        opposite = await admin.post(f"/v1/answers/{run_id}/resume", json={"refuse": {"call-0": None}})
        assert json_of(opposite, 409)["type"] == "urn:chatledger:RunConflict"


@pytest.mark.one_server
async def test_who_comes_back_behind_any_event_gets_the_rest_and_behind_the_last_one_204(ledger: Ledger) -> None:
    async with server(ledger, {"weather": agent_of(Model())}) as url, as_("ada", url) as client:
        asked = {"question": "Tokyo?", "create": True}
        run_id = json_of(await client.post("/v1/threads/t/answers", json=asked), 201)["run"]["run_id"]
        whole = await asyncio.wait_for(events_of(client, run_id), 30)
        once_more = await events_of(client, run_id)
        assert put_together(once_more) == put_together(whole) == {3: "sunny in Tokyo", 4: "It is sunny."}
        assert [events[-1][2]["status"] for events in (whole, once_more)] == ["completed", "completed"]
        for event_id, _, data in whole[:-1]:
            if data["seq"] < 4:
                rest = await events_of(client, run_id, event_id)
                assert put_together(rest)[4] == "It is sunny."
        ended = await client.get(f"/v1/answers/{run_id}/events", headers={"Last-Event-ID": whole[-1][0]})
        assert (ended.status_code, ended.content) == (204, b"")
        wrong = await client.get(f"/v1/answers/{run_id}/events", headers={"Last-Event-ID": "wrong"})
        assert wrong.status_code == 400


@pytest.mark.one_server
async def test_who_asks_may_stop_and_the_stream_ends_with_the_answer(ledger: Ledger) -> None:
    model = Model(calls=0, gate=asyncio.Event())
    async with server(ledger, {"weather": agent_of(model)}) as url, as_("ada ask", url) as client:
        asked = {"question": "Tokyo?", "create": True}
        run_id = json_of(await client.post("/v1/threads/t/answers", json=asked), 201)["run"]["run_id"]
        following = asyncio.create_task(events_of(client, run_id))
        await until(lambda: model.asked > 0)
        live = await client.post("/v1/threads/t/answers", json={"question": "Lima?"})
        assert json_of(live, 409)["until"] is not None
        assert int(live.headers["retry-after"]) > 0
        for _ in range(2):
            stopped = json_of(await client.post(f"/v1/answers/{run_id}/stop"))
            assert (stopped["status"], stopped["error"]) == ("cancelled", "stopped")
        events = await asyncio.wait_for(following, 30)
        assert events[-1][2] == {"seq": events[-1][2]["seq"], "run_id": run_id, "status": "cancelled"}
        model.gate = None
        started = await client.post("/v1/threads/t/answers", json={"question": "Lima?", "when_live": "stop"})
        assert started.status_code == 201


@pytest.mark.one_server
async def test_the_stream_of_an_answer_on_another_branch_ends_too(ledger: Ledger) -> None:
    async with server(ledger, {"weather": agent_of(Model(calls=0))}) as url, as_("ada", url) as client:
        answer = await ledger.user("ada").answers.start("t", "Tokyo?", agent="somewhere else", create=True)
        following = asyncio.create_task(events_of(client, answer.run.run_id))
        await asyncio.sleep(0.5)
        await ledger.branches.fork("t", at=None)
        await ledger.answers.stop(answer.run.run_id)
        events = await asyncio.wait_for(following, 30)
        assert (events[-1][1], events[-1][2]["status"]) == ("run", "cancelled")


@pytest.mark.one_server
async def test_who_comes_back_gets_nothing_twice_if_no_message_says_how_the_answer_ended(ledger: Ledger) -> None:
    async with server(ledger, {"weather": agent_of(Model())}) as url, as_("ada", url) as client:
        ada = ledger.user("ada")
        answer = await ada.answers.start("t", "Tokyo?", agent="somewhere else", create=True)
        run_id = answer.run.run_id
        await ada.messages.append("t", [ChatMessage.user("In May.")])
        [(last, kind, _)] = await events_of(client, run_id, most=1)
        assert kind == "appended"
        following = asyncio.create_task(events_of(client, run_id, last))
        await asyncio.sleep(0.5)
        await ada.answers.stop(run_id)
        assert [kind for _, kind, _ in await asyncio.wait_for(following, 30)] == ["run"]


@pytest.mark.one_server
async def test_who_has_the_end_of_an_answer_that_said_nothing_gets_204(ledger: Ledger) -> None:
    async with server(ledger, {"weather": agent_of(Model())}) as url, as_("ada", url) as client:
        answer = await ledger.user("ada").answers.start("t", "Tokyo?", agent="somewhere else", create=True)
        await ledger.answers.stop(answer.run.run_id)
        [(last, kind, data)] = await events_of(client, answer.run.run_id)
        assert (kind, data["status"]) == ("run", "cancelled")
        again = await client.get(f"/v1/answers/{answer.run.run_id}/events", headers={"Last-Event-ID": last})
        assert again.status_code == 204


@pytest.mark.one_server
async def test_approvals_are_the_administrators_unless_the_server_lets_owners_decide(ledger: Ledger) -> None:
    async def paused(client: httpx.AsyncClient, thread_id: str) -> str:
        asked = {"question": "?", "create": True}
        run_id = json_of(await client.post(f"/v1/threads/{thread_id}/answers", json=asked), 201)["run"]["run_id"]
        await (await ledger.answers.get(run_id)).wait()
        return str(run_id)

    async with server(ledger, {"support": paying()}) as url, as_("ada ask", url) as ask, as_("ada", url) as write:
        run_id = await paused(ask, "a")
        for client in (ask, write):
            for decision in ({"approve": ["call-0"]}, {"refuse": {"call-0": "no"}}):
                refused = json_of(await client.post(f"/v1/answers/{run_id}/resume", json=decision), 403)
                assert refused["type"] == "urn:chatledger:AdministratorOnly"
        forged = await ask.post(f"/v1/answers/{run_id}/resume", json={"results": {"call-0": "forged"}})
        assert json_of(forged, 403)["type"] == "urn:chatledger:OutOfScope"
        assert json_of(await write.post(f"/v1/answers/{run_id}/resume", json={"results": {"call-0": "given"}}))
        async with as_("bob", url) as stranger:
            assert (await stranger.post(f"/v1/answers/{run_id}/resume", json={"approve": ["x"]})).status_code == 404
    async with server(ledger, {"support": paying()}, approvals="owner") as url, as_("ada ask", url) as ask:
        run_id = await paused(ask, "b")
        assert json_of(await ask.post(f"/v1/answers/{run_id}/resume", json={"approve": ["call-0"]}))["waiting"] == {}
        assert (await asyncio.wait_for(events_of(ask, run_id), 30))[-1][2]["status"] == "completed"
        async with as_("ada read", url) as read:
            assert (await read.post(f"/v1/answers/{run_id}/resume", json={"approve": ["call-0"]})).status_code == 403


@pytest.mark.one_server
async def test_why_an_agent_failed_is_for_the_administrator(ledger: Ledger) -> None:
    async def failing(turn: Turn) -> None:
        await turn.ask(Model(calls=0))
        raise RuntimeError("no route to db-7.internal")

    async with server(ledger, {"support": failing}) as url, as_("ada", url) as ada, as_("*", url) as admin:
        asked = {"question": "?", "create": True}
        run_id = json_of(await ada.post("/v1/threads/t/answers", json=asked), 201)["run"]["run_id"]
        assert (await asyncio.wait_for(events_of(ada, run_id), 30))[-1][2]["status"] == "failed"
        for path in (f"/v1/answers/{run_id}", f"/v1/runs/{run_id}", "/v1/runs?thread_id=t", "/threads/t"):
            told = (await ada.get(path)).text
            assert "db-7" not in told, path
            assert "db-7" in (await admin.get(path)).text, path


async def test_an_agent_that_the_server_does_not_have_is_named(ledger: Ledger) -> None:
    agents = {"one": agent_of(Model()), "two": agent_of(Model())}
    app = create_app(ledger, authenticate=by_words, answers=agents)
    async with client_of(app, "ada") as client:
        for named in ({"agent": "three"}, {}):
            asked = {"question": "?", "create": True, **named}
            refused = json_of(await client.post("/v1/threads/t/answers", json=asked), 400)
            assert refused["detail"] == "agent must be one of the server's: it has the agents one, two"
    async with client_of(create_app(ledger, authenticate=by_words), "ada") as client:
        refused = json_of(await client.post("/v1/threads/t/answers", json={"question": "?", "agent": "one"}), 400)
        assert refused["detail"] == "agent must be one of the server's: it has no agents"
    assert list(await ledger.threads.list()) == []


async def test_a_mounted_server_that_runs_no_agent_says_so(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """Once, and not where the application around it serves."""
    agents = {"one": agent_of(Model())}
    app = create_app(ledger, authenticate=by_words, answers=agents)
    async with client_of(app, "ada") as client:
        async with ledger.answers.serve(agents, all_tenants=True):
            json_of(await client.post("/v1/threads/t/answers", json={"question": "?", "create": True}), 201)
        assert caplog.messages == []
        for thread in ("u", "v"):
            json_of(await client.post(f"/v1/threads/{thread}/answers", json={"question": "?", "create": True}), 201)
    assert [message.partition(":")[0] for message in caplog.messages] == ["this process does not run the agent 'one'"]


@pytest.mark.parametrize("options", [{"answers": 1}, {"approvals": "me"}])
def test_wrong_arguments_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        create_app(Ledger.open("sqlite://"), authenticate=by_words, **options)
