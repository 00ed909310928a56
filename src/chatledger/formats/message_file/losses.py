"""What a message says that the items of a file cannot: the codes of a conversion's report.

role            a message for the screen, or of an unknown role: left out
system          instructions: in a file they are the prompt of an agent, so the message is left out
think, opaque   parts of these kinds, and `reasoning`: left out
media           a medium beside other parts: an output with its mime type
extras          what its source kept beside a part or a call
message         something that no message stands before: an empty one is put there
window          an output or a call whose item is not in what was read
orphan          a result that answers no call: an output of the message
id, arguments   the id of a call that another call of the message has; arguments that are not an object
name, is_error, state, response_metadata, custom_data, residual    fields that items do not have
"""

from __future__ import annotations

from collections.abc import Iterator

from chatledger.models import ChatMessage, Loss

_FIELDS = ("name", "is_error", "response_metadata", "custom_data", "residual")


class LossLog:
    """The losses of one payload, in the order of its messages."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def add(self, message: ChatMessage, code: str, path: str = "") -> None:
        self.losses.append(Loss(code, message.seq, path or code))

    def add_fields(self, message: ChatMessage) -> None:
        """The fields of a message of another format for which an item has no place."""
        for name in _said(message):
            self.add(message, name)


def _said(message: ChatMessage) -> Iterator[str]:
    yield from (name for name in _FIELDS if getattr(message, name) is not None)
    if message.reasoning is not None:
        yield "reasoning"
    if message.state != "complete":
        yield "state"
