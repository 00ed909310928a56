"""A message of a conversation, as stored: one shape for every source.

A ChatMessage to append needs a role and little else: the ledger fills in its position, thread and time.
None, `""`, `[]` and `[TextPart(text="")]` are four different contents, and come back as they went in.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json, JsonObject
from chatledger.models.parts import Part, TextPart, ThinkPart
from chatledger.models.trusted import copy_with

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "custom"})

State: TypeAlias = Literal["complete", "partial", "interrupted", "synthetic"]
"""partial: still being written. interrupted: never finished. synthetic: written by the ledger to close a call."""

LENIENT: dict[str, str] = {"rules": "lenient"}
"""Validation context that accepts any role: `ChatMessage.model_validate(data, context=LENIENT)`."""


def _known_role(role: str, info: ValidationInfo) -> str:
    if role in ROLES or (info.context is not None and info.context.get("rules") == "lenient"):
        return role
    raise ValueError(f"unknown role {role!r}; known are {', '.join(sorted(ROLES))}")


CONTINUES = "continues"
"""The first key of a residual, with the value true: the source had this message and the one before it as one.

Only its own format reads the other keys of a residual. This key is for all: no window begins inside such a group.
"""


BACK = "back"
"""A key of a residual: how many positions before this message another one stands, to which it belongs.

Only its own format looks for that message. A copy at other positions counts anew.
"""


class Violation(Model):
    """A rule that a stored message breaks, recorded when lenient rules accepted the message."""

    rule: Text
    detail: Text


class ToolCall(Model):
    """A call that the assistant requests. `arguments` stay verbatim: a text (JSON or not), an object, or None.

    `id` is the provider's, or None. It may have any length, and may occur again later in the thread.
    """

    id: Text | None = None
    name: Text
    arguments: Text | JsonObject | None = None
    extras: JsonObject | None = None


class CallPlace(Model):
    """The place of a call: the seq of its message on the branch, and its index in the message."""

    seq: int
    index: int


class ChatMessage(Model):
    """`answers` is the call that a tool result answers. The ledger fills it in if the page that it read holds that call
    and leaves no doubt; else it is None. So comparisons leave it out, and an append ignores it.
    """

    role: Annotated[Text, AfterValidator(_known_role)]
    content: Text | list[Part] | None = None
    reasoning: Text | list[Part] | None = None
    name: Text | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: Text | None = None
    is_error: bool | None = None
    message_id: Text | None = None
    thread_id: Text | None = None
    branch: int | None = None
    seq: int | None = None
    created_at: UtcDatetime | None = None
    run_id: Text | None = None
    state: State = "complete"
    response_metadata: JsonObject | None = None
    custom_data: JsonObject | None = None
    format: Text | None = None
    residual: Json | None = None
    violations: list[Violation] = Field(default_factory=list)
    answers: CallPlace | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ChatMessage) and self.answers != other.answers:
            other = copy_with(other, {"answers": self.answers})
        return super().__eq__(other)

    @property
    def text(self) -> str:
        """All text of the content, joined without separators and without reasoning."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def reasoning_text(self) -> str:
        """All reasoning: that of its own field first, then the think parts of the content."""
        own = self.reasoning if isinstance(self.reasoning, str) else _reasoning(self.reasoning, TextPart, ThinkPart)
        return own + (_reasoning(self.content, ThinkPart) if isinstance(self.content, list) else "")


def continues(message: ChatMessage) -> bool:
    """Whether this message and the one before it were a single message of the source."""
    residual = message.residual
    return isinstance(residual, dict) and residual.get(CONTINUES) is True and next(iter(residual)) == CONTINUES


def is_redacted(message: ChatMessage) -> bool:
    """Whether a redaction took the words of the message. It recorded itself as R11."""
    return any(violation.rule == "R11" for violation in message.violations)


def _reasoning(parts: list[Part] | None, *kinds: type[TextPart | ThinkPart]) -> str:
    return "".join(part.text for part in parts or () if isinstance(part, (TextPart, ThinkPart)) and type(part) in kinds)
