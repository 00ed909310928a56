"""Conversations that use every table and every nullable column, and all of what can be read of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from chatledger import ChatMessage, Feedback, ImagePart, Ledger, OpaquePart, TextPart, ThinkPart, ToolCall, Usage
from chatledger.models.outputs import Output, ThreadAgent
from tests.conversations import assistant, call, result, turn, user

TENANTS = ("default", "acme")
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)

Content = dict[str, Sequence[BaseModel]]


async def fill(ledger: Ledger) -> None:
    for tenant in TENANTS:  # the same ids twice: they are each tenant's own
        await _fill_tenant(ledger.tenant(tenant))


async def _fill_tenant(ledger: Ledger) -> None:
    await ledger.threads.create(
        "weather", title="Wetter in Tōkyō", user_id="user:42/x", metadata={"b": 1e2, "a": [None, "\x00"]}
    )
    await ledger.runs.start("weather", run_id="run 7", agent="forecaster", model="m-1", input={"q": 1}, metadata={})
    await ledger.messages.append("weather", turn("w"), run_id="run 7")
    await ledger.messages.append("weather", rich_messages())
    await ledger.runs.finish("run 7", status="failed", usage=USAGE, error="out of \ud800 quota")
    await ledger.feedback.record(SCORE, idempotency_key="click-1")
    await ledger.feedback.record(Feedback(run_id="run 7", key="thumbs", score=-1.5))
    await ledger.branches.fork("weather", 6)
    await ledger.messages.append("weather", [assistant("Or: 21 °C.", state="partial", message_id="w-other")])
    await ledger.threads.create("odd", rules="lenient")
    await ledger.messages.append("odd", [result("nowhere", message_id="o1"), user("", message_id="o2")])
    await ledger.outputs.add("odd", [Output(branch=0, seq=2, call_idx=0, text="\x00", body={"lang": "sh"}, **OUTPUT)])
    await ledger.agents.replace("odd", [AGENT], stored=[])
    await ledger.threads.create("empty")
    await ledger.threads.create("open")  # its call is not answered
    await ledger.append("open", WIRE, format="openai-chat", idempotency_key="request-1")
    await ledger.threads.create("gone")
    await ledger.runs.start("gone", run_id="run 8", agent="forecaster", model="m-1")
    await ledger.feedback.record(Feedback(run_id="run 8", key="stars", score=2))
    await ledger.erasures.erase_thread("gone", keep_scores=True)


OUTPUT = {"nonce": "n1", "mime_type": "text/plain"}
AGENT = ThreadAgent(name="sky", definition={"models": ["m-1"]}, settings={"temperature": 0.5}, is_default=True)
USAGE = Usage(input_tokens=12, output_tokens=3, total_tokens=15, details={"cached": 2}, cost="0.000000000000000000010")
SCORE = Feedback(
    run_id="run 7", key="stars", score=4, kwargs={"why": "fast"}, author="ada", source="ui", message_id="w4"
)

_CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{"}, "new_key": 1}
WIRE = [{"role": "user", "content": "f?"}, {"role": "assistant", "content": None, "tool_calls": [_CALL], "audio": None}]
IMAGE = ImagePart(url="https://example.org/a.png")


def rich_messages() -> list[ChatMessage]:
    calls = [
        ToolCall(id=None, name="f", arguments={"z": -0.0}, extras={"x": 1}),
        call("c" * 4_572),
        call(None, "g", None),
    ]
    return [
        ChatMessage(role="user", content=[TextPart(text="see"), IMAGE], name="ada", message_id="r0"),
        ChatMessage(role="assistant", content=[], tool_calls=calls, reasoning="hm", message_id="r1", created_at=MOMENT),
        result("c" * 4_572, "no", is_error=True, message_id="r2"),
        result(None, name="f", message_id="r3"),
        result(None, name="g", message_id="r4"),
        ChatMessage(
            role="assistant",
            content=[OpaquePart(type="chart", value={"n": 10**30}), TextPart(text="\ue000 marked")],
            reasoning=[ThinkPart(text="so", signature="s")],
            response_metadata={"finish": "stop"},
            custom_data={"k": "v"},
            message_id="r5",
        ),
        ChatMessage(role="assistant", content=[TextPart(text="lone")], state="interrupted", message_id="r6"),
    ]


async def read(ledger: Ledger) -> dict[str, Content]:
    return {tenant: await _read_tenant(ledger.tenant(tenant)) for tenant in TENANTS}


async def _read_tenant(ledger: Ledger) -> Content:
    threads = (await ledger.threads.list()).items
    branches = [branch for thread in threads for branch in await ledger.branches.list(thread.thread_id)]
    histories = [await ledger.messages.history(branch.thread_id, branch=branch.branch) for branch in branches]
    return {
        "Thread": threads,
        "Branch": branches,
        "ChatMessage": [message for history in histories for message in history.messages],
        "Run": (await ledger.runs.list()).items,
        "Feedback": (await ledger.feedback.list()).items,
        "FeedbackSummary": await ledger.feedback.summary(),
        "Erasure": (await ledger.erasures.list()).items,
    }


def dumped(content: dict[str, Content]) -> dict[str, Any]:
    return {
        tenant: {kind: [item.model_dump() for item in items] for kind, items in kinds.items()}
        for tenant, kinds in content.items()
    }
