"""Messages as a payload: those of the format itself as they came, those of other origin as they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatledger.formats.losses.measure import Written
from chatledger.formats.openai_responses.fit import fit
from chatledger.formats.openai_responses.grouping import Mark, Spoken, grouped
from chatledger.formats.openai_responses.items import CALL, MESSAGE, OPAQUE, OUTPUT, ROLES, Source, read_item
from chatledger.formats.openai_responses.message import ITEMS, NAME, read_message, write_message
from chatledger.formats.openai_responses.payload import PAYLOAD, shaped
from chatledger.formats.wire.pairing import Pairing
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, MediaPart, Part
from chatledger.models.json import same_json


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """What the API takes as its input."""
    pairing = Pairing()
    items: list[Source] = []
    owners: list[int] = []
    kept: list[int] = []
    as_read = True
    for index, message in enumerate(messages):
        answered = pairing.follow(message, index + 1)
        own = write_message(message)
        written = fit(message, index + 1, answered) if own is None else own
        if own is not None or _needs_no_items(message):
            kept.append(index)
        as_read = as_read and kept[-1:] == [index] and _is_as_read(message, written)
        items += written
        owners += [index] * len(written)
    payload = shaped(messages[0], items) if messages else items
    if as_read:
        spoken: Iterable[Spoken] = (mark for message in messages for mark in _marks(message))
    else:
        spoken = (read_item(item, "", lenient=True) for item in items)
    return Written(payload, _origins(spoken, owners), kept, as_read)


def _origins(spoken: Iterable[Spoken], owners: list[int]) -> list[tuple[int, ...]]:
    """Decode joins what the assistant says in one breath, whoever wrote it."""
    owner = iter(owners)
    return [tuple(sorted({next(owner) for _ in group})) for group in grouped(spoken)]


def _marks(message: ChatMessage) -> Iterator[Mark]:
    """The items of a message that is as it was read, without reading them again."""
    entries = nested(message.residual, ITEMS)
    if entries is None:
        if message.content is not None:
            yield Mark(message.role, OUTPUT if message.role == "tool" else MESSAGE)
        entries = [{"kind": CALL}] * len(message.tool_calls or ())
    calls = iter(message.tool_calls or ())
    for entry in entries:
        kind = entry["kind"]
        yield Mark(message.role, kind if kind != CALL or next(calls).name else OPAQUE)  # as lenient reads it


def _needs_no_items(message: ChatMessage) -> bool:
    """Whether it is a message of the format whose residual, if it has one, is about its payload and not its items."""
    if message.format != NAME:
        return False
    return message.residual is None or (isinstance(message.residual, dict) and message.residual.keys() == {PAYLOAD})


def _is_as_read(message: ChatMessage, items: list[Source]) -> bool:
    """Whether nothing is in it that a program put there and that nobody reads back.

    Reading again costs: it is for what a program is likely to have made.
    """
    if message.reasoning is not None or message.name is not None:
        return False
    if any(call.extras for call in message.tool_calls or ()):
        return False
    parts = message.content if isinstance(message.content, list) else []
    if ITEMS in (message.residual or ()) and not any(_may_hold_more(part) for part in parts):
        return True
    if _is_plain(message):
        return True
    groups = list(grouped(read_item(item, "", lenient=True) for item in items))
    return len(groups) == 1 and _says_the_same(read_message(groups[0]), message)


def _is_plain(message: ChatMessage) -> bool:
    """Whether it is a text in a role that has no more to say than that, or a result that names its call."""
    if not isinstance(message.content, str) or message.tool_calls is not None:
        return False
    return message.role in ROLES if message.tool_call_id is None else message.role == "tool"


def _may_hold_more(part: Part) -> bool:
    return isinstance(part, MediaPart) or getattr(part, "extras", None) is not None


def _says_the_same(left: ChatMessage, right: ChatMessage) -> bool:
    said = {"role", "content", "tool_calls", "tool_call_id"}
    return same_json(left.model_dump(include=said), right.model_dump(include=said))
