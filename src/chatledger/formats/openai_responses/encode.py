"""Messages as a payload: those of the format itself as they came, those of other origin as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chatledger.formats.openai_responses.fit import fit
from chatledger.formats.openai_responses.grouping import grouped
from chatledger.formats.openai_responses.items import Source, read_item
from chatledger.formats.openai_responses.message import NAME, read_message, write_message
from chatledger.formats.openai_responses.pairing import Pairing
from chatledger.formats.openai_responses.payload import shaped
from chatledger.models import ChatMessage, MediaPart
from chatledger.models.json import same_json


class Written(NamedTuple):
    """`origins`: for each message that decode gives back, the indexes of those that it was written from."""

    payload: Any
    origins: list[tuple[int, ...]]
    whole: list[int]


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """What the API takes as its input."""
    pairing = Pairing()
    items: list[Source] = []
    owners: list[int] = []
    whole: list[int] = []
    for index, message in enumerate(messages):
        answered = pairing.follow(message, index + 1)
        own = write_message(message)
        written = fit(message, index + 1, answered) if own is None else own
        if message.format == NAME and _is_whole(message, written, as_read=own is not None):
            whole.append(index)
        items += written
        owners += [index] * len(written)
    payload = shaped(messages[0], items) if messages else items
    return Written(payload, [] if len(whole) == len(messages) else _origins(items, owners), whole)


def _origins(items: list[Source], owners: list[int]) -> list[tuple[int, ...]]:
    """Decode joins what the assistant says in one breath, whoever wrote it."""
    owner = iter(owners)
    groups = grouped(read_item(item, "", lenient=True) for item in items)
    return [tuple(sorted({next(owner) for _ in group})) for group in groups]


def _is_whole(message: ChatMessage, items: list[Source], *, as_read: bool) -> bool:
    """Whether it is one that was read, with nothing in it that a program put there and that nobody reads back."""
    if (
        message.reasoning is not None
        or message.name is not None
        or any(call.extras for call in message.tool_calls or ())
    ):
        return False
    parts = message.content if isinstance(message.content, list) else []
    if as_read and not any(isinstance(part, MediaPart) or getattr(part, "extras", None) for part in parts):
        return True
    groups = list(grouped(read_item(item, "", lenient=True) for item in items))
    return len(groups) == 1 and _says_the_same(read_message(groups[0]), message)


def _says_the_same(left: ChatMessage, right: ChatMessage) -> bool:
    said = {"role", "content", "tool_calls", "tool_call_id"}
    return same_json(left.model_dump(include=said), right.model_dump(include=said))
