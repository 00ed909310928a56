"""What an agent service answers with: a message and a history of them.

A dump holds every field, None and empty ones included, in the order of the fields. Unknown keys are dropped here, and
a tool call is written in the order of its keys; the codec keeps both when it is given dicts. Which fields were given
(`model_fields_set`) is part of a message, since a service may answer with `exclude_unset`. Messages can be changed: a
service sets `run_id` on what its agent made.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict  # Pydantic needs this one for its schemas before Python 3.12

TITLE_WIDTH = 80


class ToolCall(TypedDict):
    """A call that an agent made. `id` may be None; `type`, if it is there, only says what the object is."""

    name: str
    args: dict[str, Any]
    id: str | None
    type: NotRequired[Literal["tool_call"]]


class ChatMessage(BaseModel):
    """A message as a client sees it. `custom` is the application's own data; there is no system message."""

    type: Literal["human", "ai", "tool", "custom"]
    content: str
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None
    run_id: str | None = None
    response_metadata: dict[str, Any] = Field(default_factory=dict)
    custom_data: dict[str, Any] = Field(default_factory=dict)

    def pretty_repr(self) -> str:
        """A title line of 80 characters, an empty line, the content."""
        title = f" {self.type.title()} Message ".center(TITLE_WIDTH, "=")
        return f"{title}\n\n{self.content}"

    def pretty_print(self) -> None:
        print(self.pretty_repr())  # noqa: T201 - what the method is for


class ChatHistoryInput(BaseModel):
    """The thread that a client asks for."""

    thread_id: str


class ChatHistory(BaseModel):
    """The messages of a thread in order."""

    messages: list[ChatMessage]
