"""The classes of an agent service: its messages and their history, its requests, and its metadata.

A dump holds every field, also None and empty fields, in the order of the fields. The classes drop unknown keys and
write a tool call in the order of its keys; for dicts the codec keeps both. The set of given fields (`model_fields_set`)
is part of a message, since a service may answer with `exclude_unset`. Messages can be changed: a service sets `run_id`
on the messages of its agent.

Model names are text: the services' enumerations of model names change with every release, and a stored run must stay
readable after they drop its model.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

TITLE_WIDTH = 80


class ToolCall(TypedDict):
    """A call that an agent made. `id` may be None; `type`, if it is there, only says what the object is."""

    name: str
    args: dict[str, Any]
    id: str | None
    type: NotRequired[Literal["tool_call"]]


class ChatMessage(BaseModel):
    """A message as a client sees it. A `custom` message is the application's own data; there is no system message."""

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
        print(self.pretty_repr())  # noqa: T201 - printing is its purpose


class ChatHistoryInput(BaseModel):
    """The thread that a client asks for."""

    thread_id: str


class ChatHistory(BaseModel):
    """The messages of a thread in order."""

    messages: list[ChatMessage]


class UserInput(BaseModel):
    """A user's request to an agent. A service derives the owner from its own authentication, never from `user_id`."""

    message: str
    model: str | None = None
    thread_id: str | None = None
    user_id: str | None = None
    agent_config: dict[str, Any] = Field(default_factory=dict)


class StreamInput(UserInput):
    """A UserInput whose answer is streamed: token by token, or message by message."""

    stream_tokens: bool = True


class Feedback(BaseModel):  # type: ignore[no-redef]  # the plugin's __init__ has a **kwargs of its own
    """A score on a run. It is finite: JSON has no NaN, so one could be sent but never be read again."""

    run_id: str
    key: str
    score: Annotated[float, Field(allow_inf_nan=False)]
    kwargs: dict[str, Any] = Field(default_factory=dict)


class FeedbackResponse(BaseModel):
    """The answer once the feedback is stored."""

    status: Literal["success"] = "success"


class AgentInfo(BaseModel):
    """An agent that a service offers: its key in addresses, and what it does."""

    key: str
    """The name of the agent in addresses."""
    description: str
    """What it does, for people."""


class ServiceMetadata(BaseModel):
    """The agents and models that a service offers."""

    agents: list[AgentInfo]
    """The agents, each with its own key."""
    models: list[str]
    """The names of the models. A client may refuse one that it does not know."""
    default_agent: str
    """The key of the agent that a request without one is for."""
    default_model: str
    """The name of the model that a request without one is for."""
