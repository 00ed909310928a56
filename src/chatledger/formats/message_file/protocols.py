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
    def content(self) -> str: ...

    @property
    def mime_type(self) -> str: ...

    @property
    def nonce(self) -> str | None: ...

    def to_dict(self) -> dict[str, Any]: ...


@runtime_checkable
class CodeExecutionOutput(MessageOutput, Protocol):
    """The streams that a program wrote, its exit status, and its duration in seconds."""

    @property
    def stdout_content(self) -> str: ...

    @property
    def stderr_content(self) -> str: ...

    @property
    def status(self) -> int | str: ...

    @property
    def duration(self) -> float: ...

    @property
    def lang(self) -> str: ...


@runtime_checkable
class MessageItem(Protocol):
    """The interface that messages and function calls share. `history` is a list of entries or a mode."""

    @property
    def name(self) -> str | None: ...

    @property
    def timeout(self) -> float | None: ...

    @property
    def outputs(self) -> Sequence[MessageOutput]: ...

    @property
    def type(self) -> str: ...

    @property
    def history(self) -> Sequence[Mapping[str, Any]] | str: ...

    @property
    def heading_level(self) -> int | None: ...

    def add_output(self, output: MessageOutput) -> None: ...

    def to_dict(self) -> dict[str, Any]: ...


@runtime_checkable
class FunctionCall(MessageItem, Protocol):
    """A call of a function, or of another agent by its name."""

    @property
    def function_name(self) -> str: ...

    @property
    def args(self) -> Mapping[str, Any]: ...


@runtime_checkable
class Message(MessageItem, Protocol):
    """A message, and the agent that is to answer it."""

    @property
    def content(self) -> str: ...

    @property
    def mime_type(self) -> str: ...

    @property
    def agent_name(self) -> str | None: ...

    def add_function_call(
        self,
        function_name: str,
        args: Mapping[str, Any] | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> FunctionCall: ...


@runtime_checkable
class AgentProtocol(Protocol):
    """The definition of an agent."""

    @property
    def name(self) -> str: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def context_window(self) -> int | None: ...

    @property
    def max_output_tokens(self) -> int | None: ...

    @property
    def reasoning(self) -> bool | int | str | None: ...

    @property
    def use_temperature(self) -> bool: ...

    @property
    def temperature(self) -> float | None: ...

    @property
    def system_prompt(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self: ...


@runtime_checkable
class AgentFactoryProtocol(Protocol):
    """A registry of agents by name."""

    def get_agent(self, name: str) -> AgentProtocol: ...

    def register_agent(self, agent: AgentProtocol) -> None: ...

    def list_agents(self) -> Sequence[AgentProtocol]: ...
