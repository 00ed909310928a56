"""Agents: their definitions, a registry of them by name, and the agents of a file.

A definition has only eight fields, so no API key of a provider gets into a stored file. A file keeps the definitions of
its agents, the settings that it overrides, and which agent is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from chatledger.errors import IdConflict, NotFound
from chatledger.formats.message_file.models import Count, Flag, Name, Number, Whole
from chatledger.formats.message_file.protocols import AgentFactoryProtocol, AgentProtocol
from chatledger.models.base import Model
from chatledger.models.outputs import ThreadAgent


class UnknownAgent(NotFound, ValueError):
    """No agent of this name is registered."""

    def __init__(self, agent_name: str) -> None:
        super().__init__(f"there is no agent {agent_name!r}")
        self.agent_name = agent_name


class NoDefaultAgent(NotFound, ValueError):
    """No agent was named, and the file has no default one."""

    def __init__(self) -> None:
        super().__init__("the file has no default agent; call set_default_agent, or name an agent")


class AgentSettings(Model):
    """The fields of an agent that a file may override: how the agent is run, not what it is."""

    context_window: Count | None = None
    max_output_tokens: Count | None = None
    reasoning: Flag | Whole | str | None = None
    use_temperature: Flag = True
    temperature: Number | None = None


class Agent(Model):
    """The definition of an agent. Its fields are the keys of `to_dict`, in their order."""

    name: Name
    """The name of the agent. Not empty."""
    models: tuple[Name, ...] = ()
    """The names of its models."""
    context_window: Count | None = None
    """The size of the context window in tokens."""
    max_output_tokens: Count | None = None
    """The maximum number of tokens of an answer."""
    reasoning: Flag | Whole | str | None = None
    """Whether, or how much, the model reasons."""
    use_temperature: Flag = True
    """Whether the temperature is sent to the model."""
    temperature: Number | None = None
    """The temperature."""
    system_prompt: str = ""
    """The system prompt."""

    def to_dict(self) -> dict[str, Any]:
        """The definition as JSON."""
        return {**dict(self), "models": list(self.models)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The agent of a definition as JSON. Raises ValidationError."""
        return cls.model_validate(dict(data))

    def overridden(self, settings: Mapping[str, Any]) -> Self:
        """This agent with other settings. Raises ValidationError for `models`, `system_prompt` and unknown keys."""
        changed = AgentSettings.model_validate(dict(settings))
        return self.model_copy(update={name: getattr(changed, name) for name in changed.model_fields_set})


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
        """Register an agent. An equal one again changes nothing. Raises IdConflict for another of its name."""
        own = agent if isinstance(agent, Agent) else Agent.from_dict(agent.to_dict())
        if self._agents.setdefault(own.name, own) != own:
            raise IdConflict("agent", own.name, f"an agent {own.name!r} with another definition is registered already")

    def list_agents(self) -> list[Agent]:
        return list(self._agents.values())


class Roster:
    """The agents of a file. Agents that the file does not define itself are taken from the `registry`."""

    def __init__(self, stored: Iterable[ThreadAgent] = (), registry: AgentFactoryProtocol | None = None) -> None:
        agents = list(stored)
        self._registry = registry
        self._definitions = {agent.name: Agent.from_dict(agent.definition) for agent in agents}
        self._settings = {agent.name: dict(agent.settings or {}) for agent in agents}
        self._default = next((agent.name for agent in agents if agent.is_default), None)

    def to_stored(self) -> list[ThreadAgent]:
        return [
            ThreadAgent(
                name=name,
                definition=definition.to_dict(),
                settings=self._settings[name] or None,
                is_default=name == self._default,
            )
            for name, definition in self._definitions.items()
        ]

    def all(self) -> list[Agent]:
        return [self.get(name) for name in self._definitions]

    def get(self, name: str) -> Agent:
        """The agent as it runs in this file. Raises UnknownAgent."""
        if name not in self._definitions:
            raise UnknownAgent(name)
        return self._definitions[name].overridden(self._settings[name])

    def add(self, name: str, settings: Mapping[str, Any]) -> Agent:
        """Add an agent of the registry, or override more settings of one that the file has."""
        definition = self._definitions.get(name) or self._find(name)
        merged = {**self._settings.get(name, {}), **settings}
        agent = definition.overridden(merged)  # raises before anything changes
        self._definitions[name], self._settings[name] = definition, merged
        return agent

    def define(self, name: str, definition: AgentProtocol | Mapping[str, Any]) -> Agent:
        """Add an agent by its definition. An equal one again changes nothing. Raises IdConflict for another of its
        name.
        """
        fields = definition if isinstance(definition, Mapping) else definition.to_dict()
        agent = Agent.from_dict({**fields, "name": name})
        if self._definitions.get(name, agent) != agent:
            raise IdConflict("agent", name, f"the file already has an agent {name!r} with another definition")
        self._definitions[name] = agent
        self._settings.setdefault(name, {})
        return self.get(name)

    @property
    def default(self) -> Agent | None:
        return None if self._default is None else self.get(self._default)

    def set_default(self, name: str) -> None:
        self.get(name)
        self._default = name

    def choose(self, name: str | None) -> str:
        """The name of the agent that answers: the given agent, or the default."""
        if name is None and self._default is None:
            raise NoDefaultAgent
        return self.get(name or self._default or "").name

    def _find(self, name: str) -> Agent:
        if self._registry is None:
            raise UnknownAgent(name)
        registered = self._registry.get_agent(name)
        return registered if isinstance(registered, Agent) else Agent.from_dict(registered.to_dict())
