"""A message of a conversation, as stored: one shape for every source.

A ChatMessage to append needs a role and little else: the ledger fills in its position, thread and time.
None, `""`, `[]` and `[TextPart(text="")]` are four different contents, and come back as they went in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo

from chatledger.arguments import STR_OR_NONE, require
from chatledger.models.base import Model, Text, UtcDatetime, copy_with
from chatledger.models.json import Json, JsonObject
from chatledger.models.parts import Part, TextPart, ThinkPart

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "custom"})

State: TypeAlias = Literal["complete", "partial", "interrupted", "synthetic"]
"""The state of a message. partial: still being written. interrupted: never finished. synthetic: a result that the
ledger wrote to close a call.
"""

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
    """The name of the rule, R1 to R13."""
    detail: Text
    """A sentence that says how the message breaks it."""


class ToolCall(Model):
    """A call of a tool that an assistant message requests."""

    id: Text | None = None
    """The provider's id of the call, or None. It may have any length, and may occur again later in the thread."""
    name: Text
    """The name of the tool. The ledger refuses an empty name."""
    arguments: Text | JsonObject | None = None
    """The arguments as they came: a text (JSON or not), an object, or None."""
    extras: JsonObject | None = None
    """Further fields of the call in its own format."""


class CallPlace(Model):
    """The place of a call on a branch."""

    seq: int
    """The position of the message that requests the call."""
    index: int
    """The index of the call in that message, counted from 0."""


class ChatMessage(Model):
    """One message of a conversation: an instruction, a question, an answer with its calls, or the result of a call.

    A message to append needs a `role` and usually a `content`. The ledger fills in its id, place and time. Messages are
    frozen; `message.model_copy(update={…})` makes a changed copy.

        call = ToolCall(id="c1", name="weather", arguments={"city": "Tokyo"})
        ChatMessage.user("What is the weather in Tokyo?")
        ChatMessage.assistant(tool_calls=[call])
        ChatMessage.tool(call, "21 °C")
    """

    role: Annotated[Text, AfterValidator(_known_role)]
    """The author: system, developer, user, assistant, tool or custom. No model is sent a custom message. Lenient rules
    also keep other roles, as their text.
    """
    content: Text | Annotated[list[Part], Field(fail_fast=True)] | None = None
    """The content: a text, a list of parts, or None."""
    reasoning: Text | Annotated[list[Part], Field(fail_fast=True)] | None = None
    """The reasoning of the model, if its format keeps it beside the content: a text, a list of parts, or None."""
    name: Text | None = None
    """The name of the author; of a result, the name of the tool."""
    tool_calls: list[ToolCall] | None = Field(None, fail_fast=True)
    """The calls that an assistant message requests, in order."""
    tool_call_id: Text | None = None
    """The id of the call that a tool message answers."""
    is_error: bool | None = None
    """Whether a result reports a failure; None if its source does not say."""
    message_id: Text | None = None
    """The id of the message, unique in its thread, of 1 to 512 bytes. An append makes one if there is none. A second
    append with the same id is a repeat and stores nothing.
    """
    thread_id: Text | None = None
    """The thread that holds the message. The ledger fills it in, and an append ignores it."""
    branch: int | None = None
    """The branch that stores the message. Branches forked from it share the message, and show the same number here. The
    ledger fills it in, and an append ignores it.
    """
    seq: int | None = None
    """The position on the branch, from 1. Some positions hold no message. The ledger fills it in, and an append ignores
    it.
    """
    created_at: UtcDatetime | None = None
    """The time of the message in UTC. An append sets the present time if there is none."""
    run_id: Text | None = None
    """The run of an agent that the message belongs to. An append creates a run that does not exist."""
    state: State = "complete"
    """Whether the message is complete, is still being written, was interrupted, or was made by the ledger."""
    response_metadata: JsonObject | None = None
    """Data of the provider about its response, such as the model, the finish reason and the usage."""
    custom_data: JsonObject | None = None
    """Data of the application about the message. The ledger does not read it."""
    format: Text | None = None
    """The format that the message came in, such as `openai-chat`. None for a message that the application built."""
    residual: Json | None = None
    """The rest of the source that the other fields cannot express. Only the message's own format reads it."""
    violations: list[Violation] = Field(default_factory=list, fail_fast=True)
    """The rules that the stored message breaks. The ledger fills it in, and an append ignores it."""
    answers: CallPlace | None = None
    """The call that a result answers. The ledger fills it in if the page that it read holds that call beyond doubt. So
    comparisons of messages leave it out, and an append ignores it.
    """

    @classmethod
    def user(cls, content: str | list[Part], **fields: Any) -> Self:
        """A message of the user. `fields` are further fields of a ChatMessage, here and in the calls below."""
        return cls(role="user", content=content, **fields)

    @classmethod
    def assistant(cls, content: str | list[Part] | None = None, **fields: Any) -> Self:
        """An answer. Its calls go into `tool_calls=`."""
        return cls(role="assistant", content=content, **fields)

    @classmethod
    def system(cls, content: str | list[Part], **fields: Any) -> Self:
        """An instruction for the model."""
        return cls(role="system", content=content, **fields)

    @classmethod
    def tool(cls, call: ToolCall | str, content: str | list[Part], **fields: Any) -> Self:
        """The result of a call: of the ToolCall, or of the call with that id."""
        return cls(role="tool", content=content, tool_call_id=call.id if isinstance(call, ToolCall) else call, **fields)

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


@dataclass(frozen=True, slots=True)
class Payload:
    """Messages in a provider's or framework's format, to append or to sync.

    await ledger.messages.append(thread_id, Payload([{"role": "user", "content": "Hi"}], "openai-chat"))
    """

    value: object
    """The list of the format's messages, as dicts or as the framework's objects."""
    format: str | None = None
    """The name of the format. None: the ledger detects it, or raises UnknownFormat."""

    def __post_init__(self) -> None:
        require(STR_OR_NONE, format=self.format)


Messages: TypeAlias = ChatMessage | Sequence[ChatMessage] | Payload
"""What an append takes. A bare text is refused: nobody could say whose it is."""
