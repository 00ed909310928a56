"""Words in every place that a ledger has for words, each of its own, and all that can be read of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from chatledger import (
    ChatMessage,
    Feedback,
    ImagePart,
    KeyRing,
    Ledger,
    OpaquePart,
    TextPart,
    ThinkPart,
    Thread,
    ToolCall,
    Turns,
)
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from chatledger.storage.repositories.outputs import add_outputs, list_agents, list_outputs, replace_agents
from chatledger.types import Page
from tests.conversations import assistant, call, result, user
from tests.storage.durable import make_durable, read_decisions

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RING = KeyRing({"k1": bytes(range(32))})


class Said:
    """Makes words that nothing else holds, and keeps them."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, label: str) -> str:
        word = f"{label}{uuid.uuid4().hex}"
        self.words.append(word)
        return word


Say = Callable[[str], str]


async def say_everything(ledger: Ledger, say: Say) -> None:
    """Two threads with the same shape, so that there is a counterpart to each cell; streams, forks, loads."""
    for name in ("t", "u"):
        await _say_in(ledger, name, say)
    await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), _loaded(say), _conversation("l", say))])


def _loaded(say: Say) -> Thread:
    return Thread(
        thread_id="loaded", title=say("loaded"), metadata={"m": say("loadedmeta")}, created_at=NOW, active_at=NOW
    )


async def _say_in(ledger: Ledger, name: str, say: Say) -> None:
    await ledger.threads.create(name, title=say("first"), metadata={"m": say("meta")}, created_at=NOW)
    await ledger.threads.update(name, title=say("title"))
    run = f"run {name}"
    await ledger.runs.start(name, run_id=run, agent="a", input={"q": say("input")})
    await ledger.runs.start(name, run_id=run, metadata={"m": say("runmeta")})
    await ledger.messages.append(name, _conversation(name, say), run_id=run)
    await ledger.runs.finish(run, status="failed", error=say("error"))
    await make_durable(ledger, name, run, say, seq=3)
    await _stream(ledger, name, say)
    await ledger.messages.append(name, [assistant(say("open"), calls=[_call("w", say)])])
    await ledger.messages.close_open_calls(name, reason=say("reason"))
    await fork_at(scope_of(ledger), name, 1)
    await ledger.messages.append(name, [user(say("forked"), message_id=f"{name} forked")])
    revised = user(say("revised"), custom_data={"c": say("revisedcustom")}, format="x", residual={"r": say("rest")})
    await ledger.messages.revise(name, f"{name}0", revised)
    await _redact(ledger, name)
    score = Feedback(run_id=run, key="k", score=1, kwargs={"c": say("kwargs")}, author=say("author"))
    await ledger.feedback.record(score.model_copy(update={"feedback_id": f"f {name}"}))
    agent = ThreadAgent(name="a", definition={"d": say("definition")}, settings={"s": say("settings")})
    await replace_agents(scope_of(ledger), name, [agent], stored=[])
    said = Output(branch=0, seq=1, nonce="n", mime_type="text/plain", text=say("output"), body={"b": say("body")})
    await add_outputs(scope_of(ledger), name, [said])
    for scope in (("thread", name), ("thread", name, "n"), ("user", name)):
        await ledger.kv.put(scope, "k", {"v": say("value")})


async def _redact(ledger: Ledger, name: str) -> None:
    """Redacts the words of a message and of its earlier forms."""
    await ledger.messages.append(name, [assistant("gone", message_id=f"{name} gone")])
    await ledger.messages.revise(name, f"{name} gone", assistant("gone as well"))
    gone = await ledger.messages.get(name, f"{name} gone")
    await erase_at(scope_of(ledger), name, gone.seq or 0)


def _conversation(ids: str, say: Say) -> list[ChatMessage]:
    """Every kind of content that a message can have."""
    parts = [TextPart(text=say("part")), ImagePart(url=say("url")), OpaquePart(type="x", value={"v": say("opaque")})]
    said = [
        user(say("text"), custom_data={"c": say("custom")}, format="x", residual={"r": say("residual")}),
        ChatMessage(role="user", content=parts, response_metadata={"m": say("usermeta")}),
        assistant(
            say("answer"),
            reasoning=[ThinkPart(text=say("thought"), signature=say("signature"))],
            response_metadata={"m": say("response")},
            calls=[_call("c0", say), ToolCall(id="c1", name="f", arguments={"o": say("object")})],
        ),
        result("c0", say("result")),
        ChatMessage(role="tool", tool_call_id="c1", content=[TextPart(text=say("listed"))]),
    ]
    return [message.model_copy(update={"message_id": f"{ids}{at}"}) for at, message in enumerate(said)]


def _call(id_: str, say: Say) -> ToolCall:
    return call(id_, arguments=f'{{"a": "{say("argument")}"}}').model_copy(update={"extras": {"e": say("extra")}})


async def _stream(ledger: Ledger, name: str, say: Say) -> None:
    async with ledger.messages.stream(
        name, run_id=f"run {name}", message=ChatMessage.assistant(message_id=f"{name} streamed")
    ) as draft:
        await draft.feed(say("fed"))
        await draft.flush()
        await draft.feed(say("more"))
        await draft.complete(response_metadata={"m": say("drafted")}, custom_data={"c": say("draftcustom")})


Reader = Callable[[Ledger], Any]


async def _histories(ledger: Ledger) -> Any:
    return [
        (await ledger.messages.history(name, branch=branch.branch)).messages
        for name in ("t", "u", "loaded")
        for branch in await ledger.branches.list(name)
    ]


async def _windows(ledger: Ledger) -> Any:
    """By another way through the storage than a whole small branch."""
    return [(await ledger.messages.history(name, Turns(9), branch=0)).messages for name in ("t", "u", "loaded")]


def _items(page: Page[Any]) -> list[Any]:
    """Raises the error of the first item that cannot be read."""
    if page.damaged:
        raise page.damaged[0]
    return page.items


async def _threads(ledger: Ledger) -> Any:
    return _items(await ledger.threads.list())


async def _runs(ledger: Ledger) -> Any:
    return _items(await ledger.runs.list())


async def _feedback(ledger: Ledger) -> Any:
    return _items(await ledger.feedback.list(events=True))


async def _erasures(ledger: Ledger) -> Any:
    return _items(await ledger.erasures.list())


async def _agents(ledger: Ledger) -> Any:
    return [await list_agents(scope_of(ledger), name) for name in ("t", "u")]


async def _outputs(ledger: Ledger) -> Any:
    return [await list_outputs(scope_of(ledger), name) for name in ("t", "u")]


async def _revisions(ledger: Ledger) -> Any:
    return [await ledger.messages.revisions(name, f"{name}{of}") for name in ("t", "u") for of in ("0", " gone")]


async def _kv(ledger: Ledger) -> Any:
    scopes = [(kind, name, *rest) for name in ("t", "u") for kind, *rest in (("thread",), ("thread", "n"), ("user",))]
    return [_items(await ledger.kv.list(scope)) for scope in scopes]


READERS: dict[str, Reader] = {
    "histories": _histories,
    "windows": _windows,
    "threads": _threads,
    "runs": _runs,
    "run_decisions": read_decisions,
    "feedback": _feedback,
    "agents": _agents,
    "outputs": _outputs,
    "revisions": _revisions,
    "kv": _kv,
}
"""The readers of encrypted words, by name."""
ALL_READERS = {**READERS, "erasures": _erasures}


async def read_everything(ledger: Ledger) -> dict[str, Any]:
    return {name: await read(ledger) for name, read in READERS.items()}
