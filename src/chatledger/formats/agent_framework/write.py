"""Stored messages as messages of the framework. Results are rows of their own, and those of one message are a group.

A group is a message of role tool: its first row holds the head of the message, and the others continue it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chatledger.formats.agent_framework.parts import (
    ANSWER,
    AS_JSON,
    AUTHOR,
    CALL,
    CALLS,
    CALLS_AT,
    CONTENTS,
    HEAD,
    NAME,
    PROPERTIES,
    RESULT,
    TYPE,
    Source,
    head_of,
    write_parts,
)
from chatledger.formats.wire.arguments import value_of
from chatledger.formats.wire.call_pairs import Answered, Pairing, made_id
from chatledger.formats.wire.residual import interleave, nested, own_residual, restore
from chatledger.models import ChatMessage, ToolCall, continues
from chatledger.models.json import JsonValue

FAILED = "FunctionInvocationError"
"""The text that the framework writes instead of the exception of a failed call."""


@dataclass(slots=True)
class FrameworkWriter:
    """Writes messages one after the other into `messages`. Calls without an id, and their results, get a
    generated id.
    """

    messages: list[JsonValue] = field(default_factory=list)
    _pairing: Pairing = field(default_factory=Pairing)
    _results: list[JsonValue] | None = None
    """The contents of the message that the next row may continue."""
    _is_own: bool = False
    """Whether that message is of this format."""

    def write(self, message: ChatMessage, position: int, *, is_own: bool) -> None:
        """Write a message that fits the format."""
        answered = self._pairing.follow(message, position)
        if message.role == "tool":
            contents: list[JsonValue] = [write_result(message, position, answered)]
        else:
            contents = write_contents(message, position)
        in_group = is_own == self._is_own and (continues(message) if is_own else message.role == "tool")
        if self._results is not None and in_group:
            self._results += contents
        else:
            group = list(contents)
            self.messages.append(write_head(message, group))
            self._results = group if is_own or message.role == "tool" else None
            self._is_own = is_own


def write_head(message: ChatMessage, contents: list[JsonValue]) -> Source:
    author = None if message.role == "tool" else message.name
    encoded = head_of(message.role, contents, author)
    restored = restore(encoded, nested(own_residual(message, NAME), HEAD))
    if not isinstance(restored.get("role"), str):  # a residual that no reader wrote
        restored = encoded
    # A program may have named the author later.
    return {**restored, CONTENTS: contents, **({} if author is None else {AUTHOR: author})}


def write_contents(message: ChatMessage, position: int) -> list[JsonValue]:
    """The contents of a message that is not a result."""
    residual = own_residual(message, NAME)
    calls: list[JsonValue] = [
        restore(encoded_call(call, made_id(message, position, index)), nested(residual, CALLS, str(index)))
        for index, call in enumerate(message.tool_calls or ())
    ]
    return interleave(write_parts(message.content, residual), calls, nested(residual, CALLS_AT))


def encoded_call(call: ToolCall, made_id: str) -> Source:
    """The content of a call; `made_id` is its id if the call has none."""
    return {
        TYPE: CALL,
        "call_id": made_id if call.id is None else call.id,
        "name": call.name,
        **({} if call.arguments is None else {"arguments": call.arguments}),
        "hosted": False,
        PROPERTIES: {},
    }


def write_result(message: ChatMessage, position: int, answered: Answered | None) -> JsonValue:
    section = nested(own_residual(message, NAME), ANSWER)
    call_id = message.tool_call_id
    if call_id is None:
        call_id = made_id(message, position) if answered is None else answered.id
    return restore(encoded_result(message, section, call_id), section)


def encoded_result(message: ChatMessage, section: JsonValue, call_id: str | None) -> Source:
    """The content of a result before its residual is put back; `section` is that residual."""
    items = write_parts("" if message.content is None else message.content, own_residual(message, NAME))
    texts = [item if isinstance(item, str) else nested(item, "text") for item in items]
    result: JsonValue = "\n".join(text for text in texts if isinstance(text, str) and text)
    if isinstance(message.content, str):
        result = value_of(message.content) if nested(section, AS_JSON) is True else message.content
    return {
        TYPE: RESULT,
        "call_id": call_id,
        **({"exception": FAILED} if message.is_error else {}),
        "result": result,
        "items": items,
        PROPERTIES: {},
    }
