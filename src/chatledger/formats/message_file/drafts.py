"""Putting the items of a file together from the messages of a branch, in their order.

Each item is a draft until the last message was read, since outputs and calls may stand far behind their item. A place
is a seq, or the position in a payload that was not stored yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.message_file.adopting import Adopter
from chatledger.formats.message_file.draft import Draft, Drafts
from chatledger.formats.message_file.writing import BACK, CALL, NAME, note, read_item, read_outputs
from chatledger.models import ChatMessage


@dataclass(frozen=True, slots=True)
class Assembled:
    """All items in file order, calls among them; and which messages were written as this format had them."""

    drafts: list[Draft]
    kept: list[int]


def assemble(messages: Sequence[ChatMessage]) -> Assembled:
    drafts, kept = Drafts(), list[int]()
    adopter = Adopter(drafts)
    for index, message in enumerate(messages):
        if _take(drafts, message, message.seq or index + 1, index):
            kept.append(index)
        else:
            adopter.adopt(message, message.seq or index + 1, index)
    return Assembled(drafts.all, kept)


def _take(drafts: Drafts, message: ChatMessage, place: int, index: int) -> bool:
    """Whether the message is one that this format wrote, and found its place."""
    if message.format != NAME:
        return False
    outputs = read_outputs(message)
    back = note(message, BACK)
    owner = place - back if isinstance(back, int) else None
    if outputs is not None:
        draft = drafts.at(owner, note(message, CALL))
        if draft is None:
            return False
        drafts.answer(draft, outputs, index)
        return True
    if message.role == "user":
        drafts.add(Draft(message, place, index, read_item(message)))
        return True
    if message.role == "assistant" and message.tool_calls and len(message.tool_calls) == 1:
        drafts.add(Draft(message, place, index, read_item(message), call=0, owner=drafts.at(owner, None)))
        return True
    return False
