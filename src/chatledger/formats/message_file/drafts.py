"""Putting the items of a file together from the messages of a branch, in their order.

Each item is a draft until the last message was read, since outputs and calls may stand far behind their item. A place
is a seq, or the position in a payload that was not stored yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatledger.formats.message_file.adopting import Adopter
from chatledger.formats.message_file.draft import Draft, Drafts
from chatledger.formats.message_file.losses import LossLog
from chatledger.formats.message_file.writing import BACK, CALL, NAME, note, read_item, read_outputs
from chatledger.models import ChatMessage, Loss


@dataclass(frozen=True, slots=True)
class Assembled:
    """All items in file order, calls among them; and what the messages said that no item can."""

    drafts: list[Draft]
    losses: list[Loss] = field(default_factory=list)


def assemble(messages: Sequence[ChatMessage]) -> Assembled:
    drafts, log = Drafts(), LossLog()
    adopter = Adopter(drafts, log)
    for index, message in enumerate(messages):
        place = message.seq or index + 1
        if not _take(drafts, message, place, log):
            adopter.adopt(message, place)
    return Assembled(drafts.all, log.losses)


def _take(drafts: Drafts, message: ChatMessage, place: int, log: LossLog) -> bool:
    """Whether the message is one that this format wrote, and found its place."""
    if message.format != NAME:
        return False
    if message.state != "complete":
        log.add(message, "state")
    outputs = read_outputs(message)
    back = note(message, BACK)
    owner = place - back if isinstance(back, int) else None
    if outputs is not None:
        draft = drafts.at(owner, note(message, CALL))
        if draft is None:
            log.add(message, "window", "residual")
            return False
        drafts.answer(draft, outputs)
        return True
    if message.role == "user":
        drafts.add(Draft(message, place, read_item(message)))
        return True
    if message.role == "assistant" and message.tool_calls and len(message.tool_calls) == 1:
        if owner is not None and drafts.at(owner, None) is None:
            log.add(message, "window", "residual")
        drafts.add(Draft(message, place, read_item(message), call=0, owner=drafts.at(owner, None)))
        return True
    return False
