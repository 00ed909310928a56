"""A chat of the AI SDK over a socket: ask, leave and come back, stop, edit, regenerate, approve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatledger import Ledger, TextDelta
from chatledger.answers import Turn
from chatledger.models import ReasoningDelta
from tests.answers.agents import Model, agent_of
from tests.server.conftest import until
from tests.server.test_durable_answers import as_, paying, server
from tests.server.ui_client import Chat


async def stored(ledger: Ledger, thread_id: str = "t") -> list[dict[str, Any]]:
    """The chat as a page that is loaded anew gets it."""
    payload: list[dict[str, Any]] = (await ledger.messages.history(thread_id)).encode("ai-sdk").payload
    return payload


def shown(messages: list[dict[str, Any]]) -> list[Any]:
    """Roles, and the parts without what only a stream or only the store has."""
    own = ("type", "text", "input", "output", "errorText", "toolCallId")
    return [
        (one["role"], [{name: part[name] for name in own if part.get(name) is not None} for part in one["parts"]])
        for one in messages
    ]


@pytest.mark.one_server
async def test_a_chat_asks_and_shows_what_is_stored(ledger: Ledger) -> None:
    async with server(ledger, {"support": agent_of(Model())}) as url, as_("ada ask", url) as client:
        chat = Chat(client)
        assert not await chat.resume()  # nothing there yet
        await chat.send("Tokyo?", "u1")
        assert chat.page.types() == [
            "start", "start-step", "tool-input-start", "tool-input-delta", "tool-input-available",
            "tool-output-available", "finish-step", "start-step",
            *["text-start", "text-delta", "text-end", "finish-step", "finish"],
        ]  # fmt: skip
        assert chat.page.done
        assert chat.page.text() == "It is sunny."
        assert shown(chat.page.messages) == shown(await stored(ledger))
        assert [one["id"] for one in chat.page.messages] == [one["id"] for one in await stored(ledger)]
        assert not await chat.resume()
        await chat.stop()
        await chat.send("And Lima?", "u2")
        assert shown(chat.page.messages) == shown(await stored(ledger))


@pytest.mark.one_server
async def test_a_second_page_gets_the_whole_answer_and_who_leaves_stops_nothing(ledger: Ledger) -> None:
    gate = asyncio.Event()
    model = Model(calls=0, gate=gate)
    async with server(ledger, {"support": agent_of(model)}) as url, as_("ada", url) as client:
        chat, other = Chat(client), Chat(client)
        asking = asyncio.create_task(chat.send("Tokyo?", "u1"))
        await until(lambda: "text-delta" in chat.page.types())
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        coming = asyncio.create_task(other.resume())
        await until(lambda: "text-delta" in other.page.types())
        gate.set()
        assert await asyncio.wait_for(coming, 30)
        assert other.page.text() == "It is sunny."
        assert shown(other.page.messages) == shown(await stored(ledger))[1:]


@pytest.mark.one_server
async def test_a_stop_elsewhere_ends_each_stream_with_abort_and_the_stored_text(ledger: Ledger) -> None:
    model = Model(calls=0, gate=asyncio.Event())
    async with server(ledger, {"support": agent_of(model)}) as url, as_("ada ask", url) as client:
        chat, other = Chat(client), Chat(client)
        asking = asyncio.create_task(chat.send("Tokyo?", "u1"))
        await until(lambda: "text-delta" in chat.page.types())
        watching = asyncio.create_task(other.resume())
        await until(lambda: "text-delta" in other.page.types())
        for _ in range(2):
            await other.stop()
        await asyncio.wait_for(asyncio.gather(asking, watching), 30)
        (message,) = (await stored(ledger))[1:]
        for page in (chat.page, other.page):
            assert page.types()[-3:] == ["text-end", "finish-step", "abort"]
            assert page.done
            assert page.text() == "".join(part.get("text", "") for part in message["parts"]) == "It "


@pytest.mark.one_server
async def test_a_failure_is_an_error_without_its_reason(ledger: Ledger) -> None:
    async def failing(turn: Turn) -> None:
        raise RuntimeError("no route to db-7.internal")

    async with server(ledger, {"support": failing}) as url, as_("ada", url) as client:
        chat = Chat(client)
        await chat.send("Tokyo?", "u1")
        assert chat.page.chunks == [{"type": "error", "errorText": "The answer failed."}]
        assert chat.page.done


@pytest.mark.one_server
async def test_a_call_is_approved_and_another_one_refused(ledger: Ledger) -> None:
    agents = {"support": paying()}
    async with server(ledger, agents, approvals="owner") as url, as_("ada ask", url) as client:
        for approved, reason, state in ((True, None, "output-available"), (False, "too much", "output-denied")):
            chat = Chat(client, f"t{approved}")
            await chat.send("My lamp broke.", "u1")
            call = chat.page.last["parts"][-1]
            assert (call["state"], call["approval"]["requestReason"]) == ("approval-requested", "costs 30 EUR")
            assert chat.page.types()[-2:] == ["finish-step", "finish"]
            reloaded = Chat(client, chat.id)
            assert await reloaded.resume()  # a paused answer is told whole, and its stream ends
            assert reloaded.page.last == chat.page.last
            chat.page.decide(approved, reason)
            chat.page.chunks.clear()
            await chat.post({"messageId": chat.page.last["id"]}, continues=True)
            assert chat.page.types()[0] == f"tool-{state}"
            assert call["state"] == state
            assert chat.page.text() == "It is sunny."
            assert shown(chat.page.messages)[0] == shown(await stored(ledger, chat.id))[0]
            types = [part["type"] for part in chat.page.last["parts"]]
            assert types == ["step-start", "tool-weather", "step-start", "text"]


async def thinking(prompt: Any) -> AsyncIterator[Any]:
    for word in ("Let ", "me ", "see."):
        yield ReasoningDelta(text=word)
    for word in ("It ", "is ", "sunny."):
        yield TextDelta(text=word)


@pytest.mark.one_server
async def test_reasoning_comes_before_the_text(ledger: Ledger) -> None:
    async def agent(turn: Turn) -> None:
        await turn.ask(thinking)

    async with server(ledger, {"support": agent}) as url, as_("ada", url) as client:
        chat = Chat(client)
        await chat.send("Tokyo?", "u1")
        assert shown(chat.page.messages) == shown(await stored(ledger))
        assert [part["type"] for part in chat.page.last["parts"]] == ["step-start", "reasoning", "text"]
        assert all(part["state"] == "done" for part in chat.page.last["parts"][1:])


@pytest.mark.one_server
async def test_an_edit_and_another_answer_are_branches(ledger: Ledger) -> None:
    async with server(ledger, {"support": agent_of(Model(calls=0))}) as url, as_("ada ask", url) as client:
        chat = Chat(client)
        await chat.send("Tokyo?", "u1")
        await chat.send("Lima?", "u2")
        await chat.send("Rome?", "", replaces="u2")
        await chat.send("Oslo?", "", replaces="u2")  # by its place: the id is that of "Lima?"
        assert shown(chat.page.messages) == shown(await stored(ledger))
        assert [one["parts"][0].get("text") for one in chat.page.messages if one["role"] == "user"] == [
            "Tokyo?",
            "Oslo?",
        ]
        await chat.regenerate()
        assert shown(chat.page.messages) == shown(await stored(ledger))
        await chat.send("Bern?", "", replaces="u1")
        assert shown(chat.page.messages) == shown(await stored(ledger))
        assert len(await stored(ledger)) == 2
        assert len(await ledger.branches.list("t")) == 5
