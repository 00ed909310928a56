"""What a client sends to an agent service, and what the service says of itself.

Model names are text: the enumerations that services use for them change with every release, and a stored run must
stay readable after its model's name is gone from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field


class UserInput(BaseModel):
    """What a user says to an agent. A service derives the owner from its own authentication, never from `user_id`."""

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
    description: str


class ServiceMetadata(BaseModel):
    """What a service offers."""

    agents: list[AgentInfo]
    models: list[str]
    default_agent: str
    default_model: str
