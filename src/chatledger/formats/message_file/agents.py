"""Agents: their definitions, what a file may override of them, and a registry by name.

A definition has eight fields and no other, so no key of a provider can slip into a stored file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from chatledger.errors import AlreadyExists, NotFound
from chatledger.formats.message_file.protocols import AgentProtocol
from chatledger.formats.message_file.values import Count, Flag, Name, Number, Whole
from chatledger.models.base import Model


class UnknownAgent(NotFound, ValueError):
    """No agent of this name is registered."""

    def __init__(self, agent_name: str) -> None:
        super().__init__(f"there is no agent {agent_name!r}")
        self.agent_name = agent_name


class NoDefaultAgent(NotFound, ValueError):
    """No agent was named, and the file has no default one."""

    def __init__(self) -> None:
        super().__init__("there is no default agent; set one with set_default_agent, or name an agent")


class AgentSettings(Model):
    """What a file may override of an agent: how it is run, not what it is."""

    context_window: Count | None = None
    max_output_tokens: Count | None = None
    reasoning: Flag | Whole | str | None = None
    use_temperature: Flag = True
    temperature: Number | None = None


class Agent(Model):
    """The definition of an agent; its fields are the keys of `to_dict`, in their order."""

    name: Name
    models: tuple[Name, ...] = ()
    context_window: Count | None = None
    max_output_tokens: Count | None = None
    reasoning: Flag | Whole | str | None = None
    use_temperature: Flag = True
    temperature: Number | None = None
    system_prompt: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**dict(self), "models": list(self.models)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls.model_validate(dict(data))

    def overridden(self, settings: Mapping[str, Any]) -> Self:
        """This agent with other settings. Raises ValidationError for `models`, `system_prompt` and unknown keys."""
        given = AgentSettings.model_validate(dict(settings))
        return self.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})


class AgentFactory:
    """A registry of agents, in the order in which they were registered."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}

    def get_agent(self, name: str) -> Agent:
        """The agent of this name. Raises UnknownAgent."""
        try:
            return self._agents[name]
        except KeyError:
            raise UnknownAgent(name) from None

    def register_agent(self, agent: AgentProtocol) -> None:
        """Register an agent. The same once more is nothing new; another of its name is AlreadyExists."""
        own = agent if isinstance(agent, Agent) else Agent.from_dict(agent.to_dict())
        if self._agents.setdefault(own.name, own) != own:
            raise AlreadyExists(own.name, f"another agent {own.name!r} is registered")

    def list_agents(self) -> list[Agent]:
        return list(self._agents.values())
