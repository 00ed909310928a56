"""What a client of the AI SDK has already does not come again, unless it is not what is stored."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger, ToolCall
from chatledger.answers import Agent, Turn
from chatledger.errors import InvalidArgument
from chatledger.models import Cursor, Piece, ThreadChange
from chatledger.server import create_app
from chatledger.server.ai_sdk.chunks import ChunkWriter
from chatledger.server.ai_sdk.known import read_have, to_units
from tests.server.conftest import json_of, listening, until
from tests.server.test_durable_answers import as_, by_words, server
from tests.server.ui_client import Chat, Page

ASCII = [f"word {number}, " for number in range(200)]
MIXED = [f"w{number} {'😀日本e' + chr(0x301) if number % 4 == 0 else 'plain text '}" for number in range(200)]
"""A tenth and more of it are emoji, CJK and combining marks."""


def units(text: str) -> int:
    return len(to_units(text)) // 2


def speaking(pieces: Sequence[str], pause: float = 0.02) -> Agent:
    async def speak(prompt: Any) -> AsyncIterator[str]:
        for piece in pieces:
            yield piece
            await asyncio.sleep(pause)

    async def agent(turn: Turn) -> None:
        await turn.ask(speak)

    return agent


@pytest.mark.one_server
@pytest.mark.parametrize("pieces", [ASCII, MIXED], ids=["ascii", "mixed"])
async def test_who_comes_back_again_and_again_gets_each_unit_once(ledger: Ledger, pieces: list[str]) -> None:
    rng = random.Random(len("".join(pieces)))
    async with server(ledger, {"support": speaking(pieces)}) as url, as_("ada", url) as client:
        chat, cuts = Chat(client), 0
        reading: asyncio.Task[Any] = asyncio.create_task(chat.send("Say it.", "u1"))
        while not chat.page.done:
            seen = len(chat.page.chunks) + rng.randint(1, 3)
            while len(chat.page.chunks) < seen and not reading.done():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            if reading.done():
                break
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            cuts += 1
            reading = asyncio.create_task(chat.resume(exact=True))
        await reading
        if not chat.page.done:  # it ended while nobody listened: the page reads the thread
            assert not await chat.resume(exact=True)
        text = "".join(pieces)
        stored = (await ledger.messages.history("t")).messages[-1].text
        assert stored == text
        assert cuts > 3
        assert text.startswith(chat.page.text())
        assert chat.page.received == units(chat.page.text())
        assert chat.page.resets == 0


# --- Each place at which a client may have been cut off ---------------------------------------------------------------


def change(kind: str, **fields: Any) -> ThreadChange:
    place = {"cursor": Cursor("c"), "thread_id": "t", "branch": 0, "seq": 2, **fields}
    return ThreadChange.model_validate({"kind": kind, **place})


def answer(text: str | None, seq: int = 2, state: str = "partial", **fields: Any) -> ChatMessage:
    own = {"message_id": f"m{seq}", "seq": seq, "run_id": "r", "content": text, "state": state, **fields}
    return ChatMessage.model_validate({"role": "assistant", **own})


def appended(message: ChatMessage) -> ThreadChange:
    return change("appended", message=message, seq=message.seq)


def page_after(*changes: ThreadChange) -> Page:
    page, writer = Page(), ChunkWriter("r")
    for one in changes:
        for chunk in writer.write(one):
            page.take(chunk)
    return page


def have(parts: list[list[Any]], message_id: str = "m2") -> str:
    return json.dumps({"id": message_id, "parts": [["step-start", 0], *parts]})


def resumed(text: str, *changes: ThreadChange) -> list[dict[str, Any]]:
    writer = ChunkWriter("r", read_have(text))
    return [chunk for one in changes for chunk in writer.write(one)]


def test_every_length_is_gone_on_from_but_for_one_inside_a_surrogate_pair() -> None:
    text = "aé日😀e\u0301👩\u200d👧z"
    whole = to_units(text)
    for length in range(1, units(text)):
        chunks = resumed(have([["text", length, "streaming"]]), appended(answer(text)))
        try:
            begun = whole[: 2 * length].decode("utf-16-le")
        except UnicodeDecodeError:
            assert [chunk["type"] for chunk in chunks] == ["reset-step", "text-start", "text-delta"]
            assert chunks[-1]["delta"] == text
        else:
            assert [(chunk["type"], chunk["delta"]) for chunk in chunks] == [("text-delta", text[len(begun) :])]


@pytest.mark.parametrize(
    "parts",
    [
        [["text", 6, "streaming"]],  # longer than the stored text
        [["text", 5, "streaming", "00000000"]],  # of another attempt
        [["text", 2, "streaming"], ["text", 1, "streaming"]],  # one too many
        [["reasoning", 2, "streaming"]],
        [["text", 2, "done"]],  # it ended, and goes on
        [["tool-f", 0, "input-streaming", "c"]],
    ],
)
def test_what_is_not_stored_comes_whole_behind_reset_step(parts: list[list[Any]]) -> None:
    chunks = resumed(have(parts), appended(answer("hello")))
    assert [chunk["type"] for chunk in chunks] == ["reset-step", "text-start", "text-delta"]
    assert chunks[-1]["delta"] == "hello"


@pytest.mark.parametrize("text", [have([["hologram", 3]]), have([["text", 2, "streaming"]], "m1")])
def test_an_unknown_part_and_another_answer_are_a_full_replay(text: str) -> None:
    chunks = resumed(text, appended(answer("hello")))
    assert [chunk["type"] for chunk in chunks] == ["start", "start-step", "text-start", "text-delta"]


def test_more_steps_than_there_are_are_a_full_replay() -> None:
    claimed = have([["text", 5, "done"], ["step-start", 0], ["text", 3, "streaming"]])
    first = appended(answer("hello", state="complete"))
    assert resumed(claimed, first) == []
    chunks = resumed(claimed, first, change("run", run_id="r", status="running"))
    assert [chunk["type"] for chunk in chunks][:2] == ["start", "start-step"]
    assert [chunk["type"] for chunk in resumed(claimed, first, appended(answer("now", 3)))] == []
    shorter = have([["text", 4, "done"], ["step-start", 0], ["text", 3, "streaming"]])
    chunks = resumed(shorter, first, appended(answer("now", 3)))
    assert [chunk["type"] for chunk in chunks].count("start-step") == 2


@pytest.mark.parametrize(
    "text", ["x", "[]", "{}", '{"id": 1, "parts": []}', '{"id": "m", "parts": [["text", -1]]}', "[" * 9_999]
)
def test_what_says_nothing_is_a_wrong_argument(text: str) -> None:
    with pytest.raises(InvalidArgument, match="have"):
        read_have(text)


def test_a_page_at_each_chunk_of_an_answer_with_tools_goes_on_to_the_same_page() -> None:
    call = ToolCall(id="c", name="f", arguments='{"a": "😀"}')
    result = ChatMessage(role="tool", content="22", tool_call_id="c", message_id="m3", seq=3, run_id="r")
    changes = [
        appended(answer(None)),
        change("grown", pieces=[Piece(at="reasoning", text="Hm 😀")]),
        change("grown", pieces=[Piece(at="reasoning", text="m."), Piece(at="content", text="I lo")]),
        change("grown", pieces=[Piece(at="content", text="ok."), Piece(at="tool_calls.0", call=call)]),
        change("completed", pieces=[], message=answer(None, state="complete")),
        appended(result),
        appended(answer("It is 日", 4)),
        change("grown", pieces=[Piece(at="content", text="22.")], seq=4),
        change("completed", pieces=[], message=answer(None, 4, state="complete"), seq=4),
        change("run", run_id="r", status="completed"),
    ]
    whole = page_after(*changes)
    assert whole.text() == "I look.It is 日22."
    now = [
        appended(answer("I look.", state="complete", reasoning="Hm 😀m.", tool_calls=[call])),
        appended(result),
        appended(answer("It is 日22.", 4, state="complete")),
        change("run", run_id="r", status="completed"),
    ]
    for count in range(1, len(whole.chunks)):
        page = Page()
        for chunk in whole.chunks[:count]:
            page.take(chunk)
        received = page.received
        for chunk in resumed(page.have(), *now):
            page.take(chunk)
        if page.resets == 0:
            assert page.received == whole.received, count
        assert _plain(page) == _plain(whole), (count, received)


def _plain(page: Page) -> list[dict[str, Any]]:
    return [{name: value for name, value in part.items() if name != "providerMetadata"} for part in page.last["parts"]]


# --- Another attempt --------------------------------------------------------------------------------------------------


async def unserved(ledger: Ledger, use: Callable[[str], Awaitable[None]]) -> None:
    """A server whose agents the test runs itself."""
    outer = FastAPI()
    outer.mount("/", create_app(ledger, authenticate=by_words, answers={"support": speaking([])}))
    async with listening(outer) as port:
        await use(f"http://127.0.0.1:{port}")


@pytest.mark.one_server
@pytest.mark.parametrize("leaves", [False, True])
async def test_an_attempt_with_other_words_begins_the_step_anew(ledger: Ledger, leaves: bool) -> None:
    async def use(url: str) -> None:
        async with as_("ada", url) as client:
            chat = Chat(client)
            async with ledger.answers.serve({"support": speaking(["One ", "two "] * 400)}, all_tenants=True):
                reading: asyncio.Task[Any] = asyncio.create_task(chat.send("Count.", "u1"))
                await until(lambda: chat.page.received > 20)
                if leaves:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
            async with ledger.answers.serve({"support": speaking(["Uno ", "due ", "tre. "] * 20)}, all_tenants=True):
                if leaves:
                    await until(lambda: chat.page.received > 20)
                    reading = asyncio.create_task(chat.resume(exact=True))
                await asyncio.wait_for(reading, 60)
            stored = (await ledger.messages.history("t")).messages[-1].text
            assert chat.page.text() == stored == "Uno due tre. " * 20
            assert chat.page.resets == 1

    await unserved(ledger, use)


@pytest.mark.one_server
async def test_a_draft_that_a_program_writes_by_itself_is_streamed_too(ledger: Ledger) -> None:
    async with server(ledger, {}) as url, as_("ada", url) as client:
        ada = ledger.user("ada")
        await ada.messages.append("t", [ChatMessage.user("?")], create=True)
        chat = Chat(client)
        async with ada.messages.stream("t") as draft:
            await draft.feed("Hel")
            await draft.flush()
            reading = asyncio.create_task(chat.resume())
            await until(lambda: chat.page.received == 3)
            await draft.feed("lo")
            await draft.flush()
            await until(lambda: chat.page.received == 5)
        assert await asyncio.wait_for(reading, 30)
        assert chat.page.types()[-1] == "finish"
        assert chat.page.text() == "Hello"
        assert not await chat.resume()
        wrong = await client.get(f"{chat.api}/t/stream", params={"have": "x"})
        assert json_of(wrong, 400)["argument"] == "have"
