"""The codec of `format="agent-framework"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.agent_framework.detect import is_agent_framework
from chatledger.formats.agent_framework.foreign import fit
from chatledger.formats.agent_framework.names import NAME, TYPE
from chatledger.formats.agent_framework.objects import build
from chatledger.formats.agent_framework.read import read_message, read_payload
from chatledger.formats.agent_framework.write import Writer
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.wire.signatures import PROVIDER
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue, same_json

_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "is_error"}
"""The fields that reading can set."""


@dataclass(frozen=True, slots=True)
class AgentFramework:
    """A list of messages, as `Message.to_dict` of the framework writes them, or its objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_agent_framework(payload)

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: only `as_="models"` needs the framework."""
        return "dicts"

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each message, and one for each content of a message of results.

        Lenient rules keep a malformed content whole.
        """
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of dicts for `Message.from_dict`. `carry` has no effect."""
        return measured(self, messages, write_payload, unsaid=("run_id", "response_metadata", "custom_data"))

    def as_models(self, payload: Any) -> Any:
        return build(payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = Writer()
    contents = list(_each_written(writer, messages))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    as_read = len(own) == len(messages) and all(
        written is not None and _is_as_read(message, written)
        for message, written in zip(messages, contents, strict=True)
    )
    origins = [(index,) for index, written in enumerate(contents) if written is not None]
    return Written(writer.messages, origins, own, as_read=as_read)


def write_messages(messages: Sequence[ChatMessage]) -> list[JsonValue]:
    """The payload alone, for a reader that needs no losses: half of the work."""
    writer = Writer()
    for _ in _each_written(writer, messages):
        pass
    return writer.messages


def _each_written(writer: Writer, messages: Sequence[ChatMessage]) -> Iterator[list[JsonValue] | None]:
    """Writes the messages, and yields the contents of each; None for a message that the format cannot hold."""
    for position, message in enumerate(messages, 1):
        fitted = fit(message)
        is_own = message.format == NAME
        yield None if fitted is None else writer.write(fitted, position, is_own=is_own)


def _is_as_read(message: ChatMessage, contents: list[JsonValue]) -> bool:
    """Whether reading the contents gives the message back, so that its losses need not be measured.

    They are read again only if this is not obvious.
    """
    if message.reasoning is not None or message.tool_calls == []:
        return False
    if _is_plain(message):
        return True
    try:
        [back] = read_message({TYPE: "", "role": message.role, "contents": contents}, "", lenient=True)
    except (DecodeError, ValueError):
        return False
    back = back.model_copy(update={"name": message.name if message.role != "tool" else None})
    return same_json(_comparable(back), _comparable(message))


def _is_plain(message: ChatMessage) -> bool:
    """Whether it is a text or no content, with calls that have all fields that reading sets."""
    if message.is_error is not None or message.tool_call_id is not None or message.role in ("tool", "custom"):
        return False
    if message.tool_calls is not None and message.role != "assistant":
        return False
    if any(call.id is None or not call.name or call.extras is not None for call in message.tool_calls or ()):
        return False
    return message.content is None or isinstance(message.content, str)


def _comparable(message: ChatMessage) -> JsonValue:
    """The fields that reading sets, without the provider of a thought, which is known only from an object."""
    fields = message.model_dump(include=_FIELDS)
    for part in fields["content"] if isinstance(fields["content"], list) else ():
        if part["kind"] == "think" and part["extras"] is not None:
            part["extras"] = {key: value for key, value in part["extras"].items() if key != PROVIDER} or None
    return fields


CODEC = AgentFramework()
