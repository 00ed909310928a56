"""The codec of `format="pydantic-ai"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.pydantic_ai.detect import is_pydantic_ai
from chatledger.formats.pydantic_ai.foreign import fit
from chatledger.formats.pydantic_ai.names import AS_JSON, NAME, PART, PART_KIND, RETURN, is_metadata
from chatledger.formats.pydantic_ai.objects import build, plain
from chatledger.formats.pydantic_ai.read import read_message, read_payload, read_row
from chatledger.formats.pydantic_ai.write import SUCCESS, Writer
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, Part, RulesLevel, TextPart, ThinkPart
from chatledger.models.json import JsonValue, same_json

_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "is_error", "response_metadata"}
"""The fields that reading can set."""


@dataclass(frozen=True, slots=True)
class PydanticAI:
    """A list of requests and responses, in the JSON of the framework's `ModelMessagesTypeAdapter` or as its objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_pydantic_ai(payload)

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: only `as_="models"` needs the framework."""
        return "dicts"

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each part of a request, and one for each response.

        Lenient rules keep a malformed message or part whole.
        """
        return Decoded(read_payload(plain(payload), lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of dicts for `ModelMessagesTypeAdapter.validate_json`. `carry` has no effect."""
        return measured(self, messages, write_payload, unsaid=("run_id", "custom_data"))

    def as_models(self, payload: Any) -> Any:
        return build(payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = Writer()
    origins: list[tuple[int, ...]] = []
    as_read = True
    for index, message in enumerate(messages):
        fitted = fit(message)
        is_own = message.format == NAME
        written = None if fitted is None else writer.write(fitted, index + 1, is_own=is_own)
        if written is not None:
            origins.append((index,))
        as_read = as_read and is_own and written is not None and _is_as_read(message, written)
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(writer.messages, origins, own, as_read=as_read)


def _is_as_read(message: ChatMessage, written: JsonValue) -> bool:
    """Whether reading `written` gives the message back, so that its losses need not be measured.

    It is read again only if this is not obvious.
    """
    if message.reasoning is not None:
        return False
    if _is_plain_response(message) or _is_plain_row(message, written):
        return True
    if nested(written, PART_KIND) is None:
        back = read_message(written, "", lenient=True) if isinstance(written, dict) else []
    else:
        back = [read_row(written, {}, "", lenient=True)]
    return len(back) == 1 and same_json(back[0].model_dump(include=_FIELDS), message.model_dump(include=_FIELDS))


def _is_plain_row(message: ChatMessage, written: JsonValue) -> bool:
    if not isinstance(message.content, str) or message.tool_calls is not None or message.response_metadata is not None:
        return False
    if nested(message.residual, PART, AS_JSON) is True:
        return False
    if message.role in ("system", "user"):
        return message.name is None and message.tool_call_id is None and message.is_error is None
    if message.role != "tool" or nested(written, PART_KIND) != RETURN:
        return False
    is_error = None if nested(written, "outcome") == SUCCESS else True
    given = (message.name, message.tool_call_id, message.is_error)
    return given == (nested(written, "tool_name"), nested(written, "tool_call_id"), is_error)


def _is_plain_response(message: ChatMessage) -> bool:
    """Whether it is a response of texts, unsigned thoughts and calls, with all fields that reading sets."""
    if message.role != "assistant" or message.name is not None or message.is_error is not None:
        return False
    if message.tool_call_id is not None or message.tool_calls == []:
        return False
    if any(call.id is None or not call.name or call.extras is not None for call in message.tool_calls or ()):
        return False
    if any(not is_metadata(key, value) for key, value in (message.response_metadata or {}).items()):
        return False
    if message.response_metadata == {}:
        return False
    return message.content is None or isinstance(message.content, str) or _are_plain(message.content)


def _are_plain(parts: list[Part]) -> bool:
    if not parts or (len(parts) == 1 and isinstance(parts[0], TextPart)):
        return False
    return all(isinstance(part, (TextPart, ThinkPart)) and part.extras is None for part in parts)


CODEC = PydanticAI()
