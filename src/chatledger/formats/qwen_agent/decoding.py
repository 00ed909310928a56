"""Sources to messages, one for one but for those that another format carries through this one.

Strict accepts what upstream's constructors accept. Lenient keeps an unknown role as its text, a bad item as an opaque
part and everything else that is odd in the residual; it refuses only what has no role at all or is nested too deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded
from chatledger.formats.qwen_agent.carrying import carried, carried_rows
from chatledger.formats.qwen_agent.plainness import make_plain
from chatledger.formats.qwen_agent.rows import message_of
from chatledger.formats.qwen_agent.sources import source_of
from chatledger.formats.qwen_agent.validity import problems
from chatledger.formats.wire.pairing import Pairing
from chatledger.formats.wire.plain import require_json
from chatledger.models import ChatMessage, Loss

DEFAULT_ID = "1"


@dataclass(frozen=True, slots=True)
class Source:
    """A message that came in, as a dict, and whether it was an object."""

    fields: dict[str, Any]
    was_object: bool


def decode_payload(payload: object, *, lenient: bool) -> Decoded:
    if not isinstance(payload, (list, tuple)):
        raise DecodeError("", f"a list of messages, not {type(payload).__name__}")
    losses: list[Loss] = []
    sources = [_checked(message, f"[{index}]", lenient, losses) for index, message in enumerate(payload)]
    return Decoded(_messages(sources, lenient), losses)


def _checked(message: object, path: str, lenient: bool, losses: list[Loss]) -> Source:
    fields = source_of(message)
    if fields is None:
        raise DecodeError(path, f"a message is a dict or an object with its fields, not {type(message).__name__}")
    if lenient:
        fields, coerced = make_plain(fields, path)
        losses += coerced
    else:
        require_json(fields, path)
    if not isinstance(fields.get("role"), str):
        raise DecodeError(f"{path}.role", "missing or not text")
    problem = None if lenient else next(problems(fields), None)
    if problem is not None:
        raise DecodeError(f"{path}.{problem[0]}", problem[1])
    return Source(fields, not isinstance(message, dict))


def _messages(sources: list[Source], lenient: bool) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    pairing = Pairing()
    index = 0
    while index < len(sources):
        group = [source.fields for source in sources[index : index + max(1, carried_rows(sources[index].fields))]]
        message = _carried(group)
        index += len(group) if message else 1
        messages.append(message or _own(sources[index - 1], pairing, lenient))
        if messages[-1].role == "tool":
            pairing.answer(messages[-1])
        pairing.ask(messages[-1], len(messages))
    return messages


def _carried(group: list[dict[str, Any]]) -> ChatMessage | None:
    """The message that these rows carry; None if they do not, or if the last of them were left out."""
    return carried(group) if carried_rows(group[0]) == len(group) else None


def _own(source: Source, pairing: Pairing, lenient: bool) -> ChatMessage:
    message = message_of(source.fields, lenient=lenient, was_object=source.was_object)
    if _has_default_id(message, pairing):
        return message_of(source.fields, lenient=lenient, was_object=source.was_object, with_id=False)
    return message


def _has_default_id(result: ChatMessage, pairing: Pairing) -> bool:
    """Whether the result's id is upstream's default, written where the call has none, and names no call.

    Such an id is not read as one: the result then answers the first open call of its name, as every result without an
    id does.
    """
    if result.role != "tool" or result.tool_call_id != DEFAULT_ID:
        return False
    ids = {call.id for call in pairing.open_calls}
    return None in ids and DEFAULT_ID not in ids
