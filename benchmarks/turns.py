"""The turn that everything is measured with: a question, two calls, their results, the answer.

Five messages, about 2.7 kB of text, made from a seed: every run and every contender stores the same words. The bare
contenders take it as slotted objects, chatledger as its models; both are built before a clock starts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from chatledger import ChatMessage, ToolCall
from chatledger.ids import new_id

MESSAGES = 5
CALLS = 2
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_WEIGHTS = range(26, 0, -1)


@dataclass(slots=True)
class BareCall:
    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class BareMessage:
    role: str
    text: str | None = None
    calls: list[BareCall] = field(default_factory=list)
    tool_call_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    bare: tuple[BareMessage, ...]
    models: tuple[ChatMessage, ...]


@cache
def turns(count: int = 64) -> Sequence[Turn]:
    """Different turns, so that nothing is compressed or cached for being the same again."""
    source = random.Random(20)
    return tuple(_turn(source) for _ in range(count))


def with_own_ids(turn: Turn) -> Turn:
    """The turn, each message with a new id of the caller's own. Call it before a clock starts: it copies all."""
    ids = [new_id() for _ in turn.bare]
    bare = [replace(one, message_id=own) for one, own in zip(turn.bare, ids, strict=True)]
    models = [one.model_copy(update={"message_id": own}) for one, own in zip(turn.models, ids, strict=True)]
    return Turn(tuple(bare), tuple(models))


def text_size(turn: Turn) -> int:
    """Bytes of what people and models said: contents, and the arguments of calls."""
    texts = [message.text or "" for message in turn.bare]
    texts += [call.arguments for message in turn.bare for call in message.calls]
    return sum(map(len, texts))


def _turn(source: random.Random) -> Turn:
    first, second = (_call(source) for _ in range(CALLS))
    bare = (
        BareMessage("user", _words(source, 320)),
        BareMessage("assistant", calls=[first, second]),
        BareMessage("tool", _words(source, 520), tool_call_id=first.id),
        BareMessage("tool", _words(source, 520), tool_call_id=second.id),
        BareMessage("assistant", _words(source, 1120)),
    )
    return Turn(bare, tuple(map(_model, bare)))


def _call(source: random.Random) -> BareCall:
    arguments = json.dumps({"query": _words(source, 80), "limit": source.randrange(100)})
    return BareCall(f"call_{source.getrandbits(96):024x}", "search_documents", arguments)


def _model(message: BareMessage) -> ChatMessage:
    calls = [ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.calls]
    return ChatMessage(
        role=message.role, content=message.text, tool_calls=calls or None, tool_call_id=message.tool_call_id
    )


def _words(source: random.Random, size: int) -> str:
    """That many characters in words of some letters more than others: text packs about as prose does."""
    letters = source.choices(_LETTERS, _WEIGHTS, k=size)
    at = source.randrange(2, 8)
    while at < size:
        letters[at] = " "
        at += source.randrange(3, 10)
    return "".join(letters)
