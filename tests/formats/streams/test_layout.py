"""A message that streams in only grows: what a reader saw of it stays where it was, to the end.

A place is a part of the content or of the reasoning, or a call. At each split of a response, each write on the way and
the end extend the text of every place that was there, or leave it. So a follower with deltas gets pieces alone, and
puts the message together from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from json import loads
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Pace
from chatledger.formats.streams import ResponseEvents
from chatledger.models import Part
from chatledger.models.json import dumps
from chatledger.repositories.history import with_draft
from chatledger.storage.follow.words import pieces_after, without_words, words_of
from tests.following import grown
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
        seen = await streamed(ledger, provider, events)
    changes = [one for before, after in pairwise(map(places, seen)) for one in changed(before, after)]
    if len(messages_of(provider, events)) > 1:  # the end puts what follows the first into messages of its own
        changes = [one for one in changes if not one.endswith("-> None")]
    assert changes == []
    assert len(seen) > 1 or name == "anthropic, nothing"


@pytest.mark.parametrize("name", RESPONSES)
async def test_pieces_put_the_message_together(tmp_path: Path, name: str) -> None:
    """Each state grows by pieces out of the one before, and the last one out of the first."""
    provider, events = RESPONSES[name]
    async with Ledger.open(tmp_path / "ledger.db", migrate=True) as ledger:
        seen = await streamed(ledger, provider, events)
    if len(seen) > 1 and not is_begun_by(seen[-2], seen[-1]):
        assert pieces_after(seen.pop(), words_of(seen[-1])) is None
    for before, after in [*pairwise(seen), (seen[0], seen[-1])] if seen else []:
        pieces = pieces_after(after, words_of(before))
        assert pieces is not None
        assert after == grown(before, without_words(after), pieces)


def is_begun_by(before: ChatMessage, end: ChatMessage) -> bool:
    """Else the end comes whole: its arguments are an object, a part or a call has other fields of its own, or it is the
    first of several messages.
    """
    objects = any(isinstance(call.arguments, dict) for call in end.tool_calls or ())
    return not objects and changed(places(before), places(end)) == [] and extras_of(before) == extras_of(end)


def extras_of(message: ChatMessage) -> list[object]:
    parts = [value for value in (message.content, message.reasoning) if isinstance(value, list)]
    of_calls = [call.model_dump(exclude={"arguments"}) for call in message.tool_calls or ()]
    return [getattr(part, "extras", None) for value in parts for part in value] + of_calls


def messages_of(provider: str, events: list[Object]) -> Sequence[ChatMessage]:
    stream = ResponseEvents(provider, limit=1_000_000)
    for event in events:
        stream.feed(event)
    return stream.response()[0]


async def streamed(ledger: Ledger, provider: Any, events: list[Object]) -> list[ChatMessage]:
    """What a reader sees who looks after each event and at the end."""
    await ledger.threads.create("t", rules="lenient")
    seen: list[ChatMessage] = []
    async with ledger.messages.stream("t", format=provider, pace=Pace(interval=3_600, lease=7_200)) as draft:
        for event in events:
            await draft.feed(event)
            await draft.flush()
            seen += await _look(ledger)
    return seen + await _look(ledger)


async def _look(ledger: Ledger) -> list[ChatMessage]:
    return with_draft(await ledger.messages.history("t"))[:1]
