"""A message that streams in only grows: what a reader saw of it stays where it was, to the end.

A place is a part of the content or of the reasoning, or a call. At each split of a response, each write on the way and
the end extend the text of every place that was there, or leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from json import loads
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Pace
from chatledger.formats.streams import ResponseEvents
from chatledger.models import Part
from chatledger.models.json import dumps
from chatledger.repositories.history import with_draft
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.reading import Cut, Object
from tests.formats.streams.test_coverage import ITEMS, item_of
from tests.formats.streams.test_openai_chat import LEGACY, MESSAGE, THINKING

Places = dict[str, tuple[str, str]]


def places(message: ChatMessage) -> Places:
    """What stands where: the kind of each place, with its text."""
    found: Places = {}
    for name, value in (("content", message.content), ("reasoning", message.reasoning)):
        if isinstance(value, str):
            found[f"{name} 0"] = ("TextPart" if name == "content" else "ThinkPart", value)
        else:
            found |= {f"{name} {index}": (type(part).__name__, _text(part)) for index, part in enumerate(value or ())}
    for index, call in enumerate(message.tool_calls or ()):
        arguments = "" if call.arguments is None else call.arguments
        found[f"call {index}"] = (call.name, arguments if isinstance(arguments, str) else dumps(arguments))
    return found


def _text(part: Part) -> str:
    """A part without a text came whole."""
    text = getattr(part, "text", None)
    return text if isinstance(text, str) else dumps(part.model_dump(mode="json"))


def changed(before: Places, after: Places) -> list[str]:
    """What does not extend what was there."""
    return [
        f"{place}: {seen} -> {after.get(place)}"
        for place, seen in before.items()
        if place not in after or after[place][0] != seen[0] or not _extends(after[place][1], seen[1])
    ]


def _extends(text: str, seen: str) -> bool:
    """Arguments stream in as a text, and end as the object that it is the JSON of."""
    return text.startswith(seen) or (text.startswith("{") and seen.endswith("}") and loads(seen) == loads(text))


def in_thirds(text: str) -> list[str]:
    step = max(1, len(text) // 3)
    return [text[at : at + step] for at in range(0, len(text), step)]


# --- Responses --------------------------------------------------------------------------------------------------------

_WORDS = {"first": "One moment. ", "second": "It is sunny in Tōkyō."}
_ARGUMENTS = {"a": '{"city": "Tōkyō", "days": 2}', "b": "{}"}
ORDERS = sorted(set(permutations(("first", "second", "thought", "a", "b"))))
"""Two texts, a reasoning and two calls."""


def anthropic(blocks: list[Object], cut: Cut = in_thirds) -> list[Object]:
    return split_anthropic.split({**_ANTHROPIC, "content": blocks}, cut)


_ANTHROPIC = {"id": "m", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn", "usage": {}}


def _block(name: str) -> Object:
    if name in _WORDS:
        return {"type": "text", "text": _WORDS[name]}
    if name in _ARGUMENTS:
        return {"type": "tool_use", "id": name, "name": "weather", "input": {"city": name} if name == "a" else {}}
    return {"type": "thinking", "thinking": "The user asks for the weather.", "signature": "c2ln"}


def _item(name: str) -> Object:
    if name in _WORDS:
        part = {"type": "output_text", "text": _WORDS[name], "annotations": []}
        return {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": [part]}
    if name in _ARGUMENTS:
        call = {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "weather", "status": "completed"}
        return {**call, "arguments": _ARGUMENTS[name]}
    summary = [{"type": "summary_text", "text": text} for text in ("The user asks.", "For the weather.")]
    return {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "QQ=="}


def _chat(order: tuple[str, ...]) -> Object:
    """A chat completion has one text, one reasoning and its calls, in whatever order its pieces come."""
    function = {name: {"name": "weather", "arguments": arguments} for name, arguments in _ARGUMENTS.items()}
    calls = [{"id": name, "type": "function", "function": function[name]} for name in order if name in function]
    fields: dict[str, Object] = {
        "first": {"content": "".join(_WORDS.values())},
        "thought": {"reasoning_content": "The user asks."},
    }
    fields["a"] = {"tool_calls": calls}
    return {"role": "assistant", **{key: value for name in order for key, value in fields.get(name, {}).items()}}


CITED = {"type": "text", "text": "It is sunny.", "citations": [{"type": "char_location", "cited_text": "sunny"}]}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "weather"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]}
BLOCKS: dict[str, list[Object]] = {
    "citations": [_block("first"), CITED, _block("second")],
    "a hidden thought": [{"type": "redacted_thinking", "data": "QQ=="}, _block("first")],
    "two thoughts": [_block("thought"), _block("thought"), _block("first")],
    "a search": [_block("first"), SEARCH, FOUND, CITED],
    "a compaction": [{"type": "compaction", "content": "They spoke of Tokyo."}, _block("first")],
    "nothing": [],
}
MESSAGES: dict[str, Object] = {"everything": MESSAGE, "a list of parts": THINKING, "a function": LEGACY}

RESPONSES: dict[str, tuple[str, list[Object]]] = {
    **{f"anthropic, {name}": ("anthropic", anthropic(blocks)) for name, blocks in BLOCKS.items()},
    **{f"openai-chat, {name}": ("openai-chat", split_chat.split(one, in_thirds)) for name, one in MESSAGES.items()},
    **{
        f"openai-responses, {kind}": (
            "openai-responses",
            split_responses.split([_item("first"), item_of(kind), _item("second")], in_thirds),
        )
        for kind in ITEMS
    },
}
for order in ORDERS:
    named = " ".join(order)
    RESPONSES[f"anthropic, {named}"] = ("anthropic", anthropic([_block(name) for name in order]))
    items = [_item(name) for name in order]
    RESPONSES[f"openai-responses, {named}"] = ("openai-responses", split_responses.split(items, in_thirds))
    RESPONSES[f"openai-chat, {named}"] = ("openai-chat", split_chat.split(_chat(order), in_thirds))


@pytest.mark.parametrize("name", RESPONSES)
async def test_a_message_that_streams_in_only_grows(tmp_path: Path, name: str) -> None:
    provider, events = RESPONSES[name]
    async with Ledger.open(tmp_path / "ledger.db", migrate=True) as ledger:
        changes, seen = await streamed(ledger, provider, events)
    if len(messages_of(provider, events)) > 1:  # the end puts what follows the first into messages of its own
        changes = [one for one in changes if not one.endswith("-> None")]
    assert changes == []
    assert seen or name == "anthropic, nothing"


def messages_of(provider: str, events: list[Object]) -> Sequence[ChatMessage]:
    stream = ResponseEvents(provider, limit=1_000_000)
    for event in events:
        stream.feed(event)
    return stream.response()[0]


async def streamed(ledger: Ledger, provider: Any, events: list[Object]) -> tuple[list[str], Places]:
    """What changed for a reader who looks after each event and at the end, and what he sees at last."""
    await ledger.threads.create("t", rules="lenient")
    seen: Places = {}
    changes: list[str] = []
    async with ledger.messages.stream("t", format=provider, pace=Pace(interval=3_600, lease=7_200)) as draft:
        for event in events:
            await draft.feed(event)
            await draft.flush()
            changes, seen = await _look(ledger, changes, seen)
    return await _look(ledger, changes, seen)


async def _look(ledger: Ledger, changes: list[str], seen: Places) -> tuple[list[str], Places]:
    history = with_draft(await ledger.messages.history("t"))
    now = places(history[0]) if history and history[0].role == "assistant" else {}
    return changes + changed(seen, now), now
