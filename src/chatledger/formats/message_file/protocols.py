"""The interface of a message file's contents, as protocols.

The builders make objects that satisfy these protocols. Wherever a function asks for such an object, it takes an object
of any class that satisfies the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable


@runtime_checkable
class MessageOutput(Protocol):
    """Something that an item produced. The nonce is its key among the item's outputs."""

    @property
    def content(self) -> str:
        """The content; in base64 if the type is not text."""
        ...

    @property
    def mime_type(self) -> str:
        """The type of the content, such as `text/plain`."""
        ...

    @property
    def nonce(self) -> str | None:
        """The key of the output among those of its item; None before it is added."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The output as JSON."""
        ...


@runtime_checkable
class CodeExecutionOutput(MessageOutput, Protocol):
    """The streams that a program wrote, its exit status, and its duration in seconds."""

    @property
    def stdout_content(self) -> str:
        """What the program wrote to its standard output."""
        ...

    @property
    def stderr_content(self) -> str:
        """What the program wrote to its standard error."""
        ...

    @property
    def status(self) -> int | str:
        """The exit status."""
        ...

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        ...

    @property
    def lang(self) -> str:
        """The programming language."""
        ...


@runtime_checkable
class MessageItem(Protocol):
    """The interface that messages and function calls share. `history` is a list of entries or a mode."""

    @property
    def name(self) -> str | None:
        """The name of the item, unique in its file."""
        ...

    @property
    def timeout(self) -> float | None:
        """A time limit in seconds; None for no limit."""
        ...

    @property
    def outputs(self) -> Sequence[MessageOutput]:
        """The outputs of the item, in order."""
        ...

    @property
    def type(self) -> str:
        """The type of the item."""
        ...

    @property
    def history(self) -> Sequence[Mapping[str, Any]] | str:
        """The history for the answer: a list of entries, or a mode."""
        ...

    @property
    def heading_level(self) -> int | None:
        """The level of the heading in the file, 1 to 5."""
        ...

    def add_output(self, output: MessageOutput) -> None:
        """Add an output behind the others."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON."""
        ...


@runtime_checkable
class FunctionCall(MessageItem, Protocol):
    """A call of a function, or of another agent by its name."""

    @property
    def function_name(self) -> str:
        """The name of the function, or of an agent."""
        ...

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments by name."""
        ...


@runtime_checkable
class Message(MessageItem, Protocol):
    """A message, and the agent that is asked to answer it."""

    @property
    def content(self) -> str:
        """The words of the message."""
        ...

    @property
    def mime_type(self) -> str:
        """The type of the content, such as `text/plain`."""
        ...

    @property
    def agent_name(self) -> str | None:
        """The agent that is asked to answer."""
        ...

    def add_function_call(
        self,
        function_name: str,
        args: Mapping[str, Any] | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> FunctionCall:
        """Add a call to the message, and return it."""
        ...


@runtime_checkable
class AgentProtocol(Protocol):
    """The definition of an agent."""

    @property
    def name(self) -> str:
        """The name of the agent."""
        ...

    @property
    def models(self) -> Sequence[str]:
        """The names of its models."""
        ...

    @property
    def context_window(self) -> int | None:
        """The size of the context window in tokens."""
        ...

    @property
    def max_output_tokens(self) -> int | None:
        """The maximum number of tokens of an answer."""
        ...

    @property
    def reasoning(self) -> bool | int | str | None:
        """Whether, or how much, the model reasons."""
        ...

    @property
    def use_temperature(self) -> bool:
        """Whether the temperature is sent to the model."""
        ...

    @property
    def temperature(self) -> float | None:
        """The temperature."""
        ...

    @property
    def system_prompt(self) -> str:
        """The system prompt."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The definition as JSON."""
        ...

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The agent of a definition as JSON."""
        ...


@runtime_checkable
class AgentFactoryProtocol(Protocol):
    """A registry of agents by name."""

    def get_agent(self, name: str) -> AgentProtocol:
        """The agent of that name."""
        ...

    def register_agent(self, agent: AgentProtocol) -> None:
        """Add an agent."""
        ...

    def list_agents(self) -> Sequence[AgentProtocol]:
        """All agents, in the order in which they were registered."""
        ...
