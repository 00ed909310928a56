"""Conversations that use every table and every nullable column, and all of what can be read of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from chatledger import (
    ChatMessage,
    Feedback,
    ImagePart,
    KeyRing,
    Ledger,
    OpaquePart,
    Payload,
    TextPart,
    ThinkPart,
    ToolCall,
    Usage,
)
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.outputs import add_outputs, replace_agents
from tests.conversations import assistant, call, result, turn, user
from tests.storage.durable import make_durable

TENANTS = ("default", "acme")
SEALED = "sealed"
"""The tenant whose cells are encrypted, from revision 0006 on. Older files have the tenant `acme` in its place."""
KEYS = KeyRing({"1": b"k" * 32}, current="1")
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)

Content = dict[str, Sequence[BaseModel]]
Reads = dict[str, dict[str, list[dict[str, Any]]]]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[dict[str, Ledger]]:
    """A ledger for each tenant, with keys for the one that is encrypted."""
    async with Ledger.open(url) as plain, Ledger.open(url, tenant=SEALED, encryption=KEYS) as sealed:
        yield {**{tenant: plain.tenant(tenant) for tenant in TENANTS}, SEALED: sealed}


async def fill(ledgers: dict[str, Ledger]) -> None:
    for tenant in ("default", SEALED):  # the same ids twice: they are each tenant's own
        await _fill_tenant(ledgers[tenant])


async def _fill_tenant(ledger: Ledger) -> None:
    await ledger.user("user:42/x").threads.create(
        "weather", title="Wetter in Tōkyō", metadata={"b": 1e2, "a": [None, "\x00"]}
    )
    await ledger.runs.start("weather", run_id="run 7", agent="forecaster", model="m-1", input={"q": 1}, metadata={})
    await ledger.messages.append("weather", turn("w"), run_id="run 7")
    await ledger.messages.append("weather", rich_messages())
    await ledger.runs.finish("run 7", status="failed", usage=USAGE, error="out of \ud800 quota")
    await ledger.feedback.record(SCORE, idempotency_key="click-1")
    await ledger.feedback.record(Feedback(run_id="run 7", key="thumbs", score=-1.5))
    await fork_at(scope_of(ledger), "weather", 6)
    await ledger.messages.append("weather", [assistant("Or: 21 °C.", state="partial", message_id="w-other")])
    await ledger.threads.create("odd", rules="lenient")
    await ledger.messages.append("odd", [result("nowhere", message_id="o1"), user("", message_id="o2")])
    await add_outputs(
        scope_of(ledger), "odd", [Output(branch=0, seq=2, call_idx=0, text="\x00", body={"lang": "sh"}, **OUTPUT)]
    )
    await replace_agents(scope_of(ledger), "odd", [AGENT], stored=[])
    await ledger.threads.create("empty")
    await ledger.threads.create("open")  # its call is not answered
    await ledger.messages.append("open", Payload(WIRE, "openai-chat"), idempotency_key="request-1")
    await _change(ledger)
    await ledger.threads.create("gone")
    await ledger.runs.start("gone", run_id="run 8", agent="forecaster", model="m-1")
    await ledger.feedback.record(Feedback(run_id="run 8", key="stars", score=2))
    await ledger.erasures.erase(("thread", "gone"), keep_scores=True)


async def _change(ledger: Ledger) -> None:
    """Everything that changes what is stored, and the state beside it."""
    await ledger.user("user:42/x").threads.create("changed", kind="sky", rules="lenient")
    await ledger.threads.update("changed", title="Changed")
    await ledger.messages.append("changed", turn("c"), run_id="run 9", kv={"step": 1})
    await ledger.messages.revise("changed", "c0", user("Oslo?"))
    await ledger.messages.revise("changed", "c1", assistant(calls=CALLS))
    await erase_at(scope_of(ledger), "changed", 1)
    await ledger.messages.append("changed", [user("No.", message_id="c5"), assistant("Yes.", message_id="c6")])
    await ledger.messages.pop("changed")
    await ledger.messages.remove("changed", "c5")
    await ledger.feedback.record(SCORE.model_copy(update={"run_id": "run 9", "message_id": "c1", **BY_USER}))
    taken_back = await ledger.feedback.record(Feedback(run_id="run 9", key="thumbs", score=1, user_id="ada"))
    await ledger.feedback.remove(taken_back.feedback_id or "")
    await make_durable(ledger, "changed", "run 9", seq=2)
    await ledger.threads.update("changed", archived=True)
    await ledger.kv.put(("tenant",), "deleted", 1)
    await ledger.kv.delete(("tenant",), "deleted")
    for scope in SCOPES:
        await ledger.kv.put(scope, "state", {"z": [1.0, None], "a": "\x00"})


BY_USER = {"user_id": "ada", "call_index": 0}
SCOPES = (("tenant",), ("user", "ada", "settings"), ("thread", "changed"))
CALLS = [call("call_0", arguments='{"city":"Oslo"}'), call("call_1", arguments='{"city":"Bergen"}')]
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


async def read(ledgers: dict[str, Ledger]) -> dict[str, Content]:
    return {tenant: await _read_tenant(ledger) for tenant, ledger in ledgers.items()}


async def _read_tenant(ledger: Ledger) -> Content:
    threads = (await ledger.threads.list(archived=None)).items
    branches = [branch for thread in threads for branch in await ledger.branches.list(thread.thread_id)]
    histories = [await ledger.messages.history(branch.thread_id, branch=branch.branch) for branch in branches]
    beside: Content = {"KvValue": [], "Revision": []}
    if "changed" in [thread.thread_id for thread in threads]:  # older dumps have neither
        beside["KvValue"] = [value for scope in SCOPES for value in await ledger.kv.list(scope)]
        changed = ("c0", "c1", "c5", "c6")
        beside["Revision"] = [one for id_ in changed for one in await ledger.messages.revisions("changed", id_)]
    return {
        "Thread": threads,
        "Branch": branches,
        "ChatMessage": [message for history in histories for message in with_draft(history)],
        "Run": (await ledger.runs.list()).items,
        "Feedback": (await ledger.feedback.list(events=True)).items,
        "FeedbackSummary": await ledger.feedback.summary(),
        "Erasure": (await ledger.erasures.list()).items,
        **beside,
    }


def dumped(content: dict[str, Content]) -> Reads:
    return {
        tenant: {kind: [item.model_dump() for item in items] for kind, items in kinds.items()}
        for tenant, kinds in content.items()
    }
