"""Stores something of everything through the public API, and reads it back.

    python program.py write URL [plain | encrypted]
    python program.py read URL [plain | encrypted]

Both print what they read, as JSON. It imports nothing of the checkout, so that the wheel of a candidate can run it too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from chatledger import (
    AudioPart,
    ChatMessage,
    Feedback,
    FilePart,
    ImagePart,
    KeyRing,
    Ledger,
    NewThread,
    OpaquePart,
    Payload,
    Put,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
    Usage,
    VideoPart,
)
from chatledger.admin import migrate
from chatledger.answers import Call, Pending, Turn
from chatledger.formats.message_file import MessageOutputBuilder
from chatledger.message_file import MessageFile

KEYS = KeyRing({"1": bytes(range(32)), "2": b"k" * 32}, current="2")
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)

Reads = dict[str, dict[str, list[Any]]]
"""By tenant and kind, the models as JSON."""


def opened(url: str, kind: str) -> AbstractAsyncContextManager[Ledger]:
    return Ledger.open(url, encryption=KEYS) if kind == "encrypted" else Ledger.open(url)


async def write(url: str, kind: str) -> Reads:
    """Makes the database at the URL, which must be empty, fills it and reads it."""
    await asyncio.to_thread(migrate, url, encrypted=kind == "encrypted")
    async with opened(url, kind) as ledger:
        await fill(ledger)
        await conversation(ledger.tenant("acme"))  # the same ids twice: they are each tenant's own
    return await read(url, kind)


async def read(url: str, kind: str) -> Reads:
    async with opened(url, kind) as ledger:
        found = {"default": await read_all(ledger), "acme": await read_threads(ledger.tenant("acme"))}
    return {tenant: {kind: as_json(items) for kind, items in kinds.items()} for tenant, kinds in found.items()}


def as_json(items: Sequence[Any]) -> list[Any]:
    models = [item.model_dump() if isinstance(item, BaseModel) else item for item in items]
    return list(json.loads(json.dumps(models, default=str)))


# --- What is stored ---------------------------------------------------------------------------------------------------

CALLS = [
    ToolCall(id="call_0", name="weather", arguments='{"city": "Tōkyō"}'),
    ToolCall(id="call_1", name="weather", arguments={"z": -0.0, "n": 10**20}, extras={"x": 1}),
    ToolCall(id=None, name="clock", arguments=None),
]
MESSAGES = [
    ChatMessage(role="system", content="Be brief.", message_id="w0"),
    ChatMessage(
        role="user",
        name="ada",
        message_id="w1",
        created_at=MOMENT,
        content=[
            TextPart(text="see \ue000 \x00"),
            ImagePart(url="https://example.org/a.png"),
            AudioPart(data="AAAA", mime_type="audio/wav"),
            FilePart(id="file-1", name="a.pdf"),
            VideoPart(url="https://example.org/a.mp4"),
            OpaquePart(type="chart", value={"n": 10**30}),
        ],
    ),
    ChatMessage(role="assistant", content=[], tool_calls=CALLS, reasoning="hm", message_id="w2"),
    ChatMessage(role="tool", tool_call_id="call_1", content="rain", is_error=True, message_id="w3"),
    ChatMessage(role="tool", tool_call_id="call_0", content=[TextPart(text="sunny")], message_id="w4"),
    ChatMessage(role="tool", name="clock", content=None, message_id="w5"),
    ChatMessage(
        role="assistant",
        content="Sunny. \U0001f31e",
        reasoning=[ThinkPart(text="so", signature="s")],
        response_metadata={"finish": "stop"},
        custom_data={"k": [1.5, None]},
        message_id="w6",
    ),
]
REQUEST = [
    {"role": "user", "content": "f?"},
    {"role": "assistant", "content": None, "audio": None, "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{"}, "new_key": 1},
    ]},
]  # fmt: skip
USAGE = Usage(input_tokens=12, output_tokens=3, total_tokens=15, details={"cached": 2}, cost="0.000000000000000000010")
SCOPES: tuple[Any, ...] = (("tenant",), ("user", "ada", "settings"), ("thread", "weather"))


async def fill(ledger: Ledger) -> None:
    await conversation(ledger)
    await branches(ledger)
    await changes(ledger)
    await streams(ledger)
    await scores(ledger)
    await beside(ledger)
    await erasures(ledger)
    await answers(ledger)


async def conversation(ledger: Ledger) -> None:
    new: dict[str, Any] = {"title": "Wetter in Tōkyō", "metadata": {"b": 1e2, "a": [None, "\x00"]}, "kind": "sky"}
    await ledger.user("ada").threads.create("weather", created_at=MOMENT, **new)
    await ledger.runs.start("weather", run_id="run 7", agent="forecaster", model="m-1", input={"q": 1}, metadata={})
    await ledger.messages.append("weather", MESSAGES, run_id="run 7", kv={"step": 1, "note": Put("new", expected=0)})
    await ledger.runs.finish("run 7", status="failed", usage=USAGE, error="out of \ud800 quota")
    await ledger.threads.create("empty")
    await ledger.messages.append("open", Payload(REQUEST, "openai-chat"), create=True, idempotency_key="request-1")
    await ledger.threads.create("odd", rules="lenient")
    await ledger.messages.append(
        "odd", [ChatMessage(role="tool", tool_call_id="nowhere", content="?", message_id="o1")]
    )
    await ledger.threads.update("odd", archived=True)


async def branches(ledger: Ledger) -> None:
    again = ChatMessage(role="assistant", content="Or: 21 °C.", message_id="w6-again")
    await ledger.messages.append("weather", again, alternative_to="w6")
    await ledger.branches.fork("weather", "w1", activate=False)
    await ledger.branches.activate("weather", 0)
    sent = [message("s0", "a"), message("s1", "b", "assistant")]
    await ledger.messages.sync("sent", sent, create=True)
    await ledger.messages.sync("sent", [sent[0], message("s2", "c", "assistant")], on_difference="branch")
    await ledger.threads.copy("weather", "copy", until="w1", title="Copy")


async def changes(ledger: Ledger) -> None:
    """Everything that changes a message after it was stored."""
    await ledger.threads.create("changed", rules="lenient")
    said = [message(f"c{n}", f"said {n}", role) for n, role in enumerate(["user", "assistant"] * 4)]
    await ledger.messages.append("changed", said, run_id="run 9")
    await ledger.messages.revise("changed", "c0", ChatMessage(role="user", content="Oslo?"))
    await ledger.messages.revise(
        "changed", "c1", ChatMessage(role="assistant", content=[TextPart(text="a"), TextPart(text="b")])
    )
    await ledger.messages.revise("changed", "c2", ChatMessage(role="user", content="Bergen?"))
    await ledger.messages.erase("changed", "c2")
    await ledger.messages.remove("changed", "c3")
    await ledger.messages.rewind("changed", "c5")
    await ledger.messages.pop("changed")
    await ledger.threads.update("changed", title="Changed", metadata={"n": 1}, merge=True)


async def streams(ledger: Ledger) -> None:
    await ledger.messages.append(
        "streamed", ChatMessage(role="user", content="?", message_id="q"), create=NewThread(kind="sky")
    )
    answer = ChatMessage(role="assistant", message_id="a")
    async with ledger.messages.stream("streamed", message=answer, run_id="run 10") as draft:
        await draft.feed(TextDelta(text="21 "))
        await draft.feed("°C")
    half = ChatMessage(role="assistant", content="It is", state="interrupted", message_id="half")
    await ledger.messages.append("streamed", [message("q2", "And now?"), half])
    await ledger.messages.append("abandoned", [message("q", "?")], create=True)
    await ledger.messages.append(
        "abandoned", ChatMessage(role="assistant", content="Well", state="partial", message_id="d")
    )


async def scores(ledger: Ledger) -> None:
    of_call = {"message_id": "w2", "call_index": 1, "user_id": "ada", "author": "Ada", "source": "ui"}
    await ledger.feedback.record(
        Feedback(run_id="run 7", key="stars", score=4, kwargs={"why": "fast"}, **of_call), idempotency_key="click-1"
    )
    await ledger.feedback.record(Feedback(run_id="run 7", key="thumbs", score=-1.5))
    taken_back = await ledger.feedback.record(Feedback(run_id="run 9", key="thumbs", score=1, user_id="ada"))
    await ledger.feedback.remove(taken_back.feedback_id or "")


async def beside(ledger: Ledger) -> None:
    for scope in SCOPES:
        await ledger.kv.put(scope, "state", {"z": [1.0, None], "a": "\x00"})
        await ledger.kv.put(scope, "state", {"b": True}, merge=True)
        await ledger.kv.put(scope, "gone", 1)
        await ledger.kv.delete(scope, "gone")
    await ledger.threads.create("file")
    file = await MessageFile.open(ledger, "file")
    file.add_agent_with_definition("sky", {"models": ["m-1"], "context_window": 8000, "system_prompt": "Be brief."})
    file.add_agent("sky", {"temperature": 0.5})
    file.set_default_agent("sky")
    first = file.add_message("Tōkyō?")
    call = file.add_function_call("message_1", "forecast", {"city": "Tōkyō"})
    file.add_message("Thanks.")
    await file.save()
    call.add_output(MessageOutputBuilder().with_content("21 °C\x00").with_nonce("n1").build())
    first.add_output(MessageOutputBuilder().with_content("later").with_nonce("n2").build())
    await file.save()


async def erasures(ledger: Ledger) -> None:
    await ledger.threads.create("gone")
    await ledger.runs.start("gone", run_id="run 8", agent="forecaster", model="m-1")
    await ledger.feedback.record(Feedback(run_id="run 8", key="stars", score=2))
    await ledger.erasures.erase(("thread", "gone"), keep_scores=True)
    await ledger.user("bob").threads.create("of bob")
    await ledger.erasures.erase(("user", "bob"))


async def answers(ledger: Ledger) -> None:
    """One that nobody works on, one that has ended, and one that waits for the second of two approvals."""
    await ledger.user("ada").answers.start("asked", "Oslo?", agent="nobody", idempotency_key="ask-1", create=True)
    async with ledger.answers.serve({"sky": pay_for}):
        ended = await ledger.answers.start("answered", "Bergen?", create=True)
        paused = await ledger.answers.start("paused", "And now?", create=True)
        for answer in (ended, paused):
            await answer.wait()
        await ledger.answers.resume(ended.run.run_id, refuse=["call_0", "call_1"])
        await ended.wait()
        await ledger.answers.resume(paused.run.run_id, approve=["call_0"])


async def pay_for(turn: Turn) -> None:
    async def forecast(call: Call) -> str:
        raise Pending("it costs 3 € a day")

    async def calls() -> AsyncIterator[Any]:
        for index in range(2):
            yield ToolCallDelta(index=index, id=f"call_{index}", name="forecast", arguments='{"city": "Tōkyō"}')

    async def words() -> AsyncIterator[str]:
        yield "I may not know."

    await turn.ask(lambda prompt: calls())
    await turn.call_tools(forecast)
    await turn.ask(lambda prompt: words())


def message(id_: str, text: str, role: Any = "user") -> ChatMessage:
    return ChatMessage(role=role, content=text, message_id=id_)


# --- What is read -----------------------------------------------------------------------------------------------------


async def read_all(ledger: Ledger) -> dict[str, list[Any]]:
    found = await read_threads(ledger)
    changed = [f"c{n}" for n in range(8)]
    found["revisions"] = [one for id_ in changed for one in await ledger.messages.revisions("changed", id_)]
    file = await MessageFile.open(ledger, "file")
    found["file items"], found["file agents"] = [item.to_dict() for item in file.get_items()], file.get_agents()
    found["feedback"] = list((await ledger.feedback.list(events=True)).items)
    found["feedback summary"] = list(await ledger.feedback.summary())
    found["kv"] = [value for scope in SCOPES for value in (await ledger.kv.list(scope)).items]
    found["erasures"] = list((await ledger.erasures.list()).items)
    found["erased"] = [await ledger.erasures.find(owner) for owner in (("thread", "gone"), ("user", "bob"))]
    found["hits"] = list((await ledger.messages.search("TŌKYŌ")).items)
    return found


async def read_threads(ledger: Ledger) -> dict[str, list[Any]]:
    threads = sorted((await ledger.threads.list(archived=None)).items, key=lambda thread: thread.thread_id)
    branches = [branch for thread in threads for branch in await ledger.branches.list(thread.thread_id)]
    histories = [await ledger.messages.history(branch.thread_id, branch=branch.branch) for branch in branches]
    return {
        "threads": threads,
        "branches": branches,
        "messages": [message for history in histories for message in history.messages],
        "drafts": [history.draft for history in histories if history.draft],
        "runs": sorted((await ledger.runs.list()).items, key=lambda run: run.run_id),
    }


async def main() -> None:
    _, command, url, *rest = sys.argv
    run = {"write": write, "read": read}[command]
    print(json.dumps(await run(url, *(rest or ["plain"]))))


if __name__ == "__main__":
    asyncio.run(main())
