"""Losses that are found when somebody asks for them, from the messages as they were when the payload was written.

A payload may share JSON values with its messages: arguments, metadata, values of a residual. Its caller may change
it, so a copy of these values is kept. Copying is cheap, since most messages have none.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.codec import Codec
from chatledger.formats.losses.measure import losses_of
from chatledger.models import ChatMessage, Loss, OpaquePart, Part
from chatledger.models.json import JsonValue
from chatledger.models.trusted import copy_with


@dataclass(frozen=True, slots=True)
class LossesLater:
    """Call it to find the losses of the messages that were given to `of`."""

    codec: Codec
    messages: tuple[ChatMessage, ...]
    values: bytes
    carry: bool

    @classmethod
    def of(cls, codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> LossesLater:
        return cls(codec, tuple(messages), marshal.dumps([_values(message) for message in messages]), carry)

    def __call__(self) -> tuple[Loss, ...]:
        pairs = zip(self.messages, marshal.loads(self.values), strict=True)  # noqa: S302 - bytes of our own
        return tuple(losses_of(self.codec, [_with(*pair) for pair in pairs], carry=self.carry))


def _values(message: ChatMessage) -> list[JsonValue]:
    """The JSON values of a message, in the order in which `_with` takes them."""
    values = [message.residual, message.response_metadata, message.custom_data]
    for call in message.tool_calls or ():
        values += (call.arguments, call.extras)
    for content in (message.content, message.reasoning):
        if isinstance(content, list):
            values += [getattr(part, _field(part)) for part in content]
    return values


def _field(part: Part) -> str:
    return "value" if isinstance(part, OpaquePart) else "extras"


def _with(message: ChatMessage, values: list[JsonValue]) -> ChatMessage:
    """The message with these values in place of its own."""
    if not any(isinstance(value, (dict, list)) for value in values):
        return message
    left = iter(values)
    changes: dict[str, Any] = {name: next(left) for name in ("residual", "response_metadata", "custom_data")}
    if message.tool_calls is not None:
        changes["tool_calls"] = [
            copy_with(call, {"arguments": next(left), "extras": next(left)}) for call in message.tool_calls
        ]
    for name in ("content", "reasoning"):
        content = getattr(message, name)
        if isinstance(content, list):
            changes[name] = [copy_with(part, {_field(part): next(left)}) for part in content]
    return copy_with(message, changes)
