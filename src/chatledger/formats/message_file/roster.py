"""The agents of a file: their definitions, what the file overrides of each, and which of them is the default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatledger.errors import AlreadyExists
from chatledger.formats.message_file.agents import Agent, NoDefaultAgent, UnknownAgent
from chatledger.formats.message_file.protocols import AgentFactoryProtocol, AgentProtocol
from chatledger.models.outputs import ThreadAgent


class Roster:
    """`registry` is where agents are found that the file does not define itself."""

    def __init__(self, rows: Iterable[ThreadAgent] = (), registry: AgentFactoryProtocol | None = None) -> None:
        listed = list(rows)
        self._registry = registry
        self._definitions = {row.name: Agent.from_dict(row.definition) for row in listed}
        self._settings = {row.name: dict(row.settings or {}) for row in listed}
        self._default = next((row.name for row in listed if row.is_default), None)

    def rows(self) -> list[ThreadAgent]:
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
        """Take an agent of the registry in, or override more of one that is here."""
        definition = self._definitions.get(name) or self._find(name)
        merged = {**self._settings.get(name, {}), **settings}
        agent = definition.overridden(merged)  # refuses before anything changes
        self._definitions[name], self._settings[name] = definition, merged
        return agent

    def define(self, name: str, definition: AgentProtocol | Mapping[str, Any]) -> Agent:
        """Take an agent in by its definition. The same once more is nothing new, another one AlreadyExists."""
        fields = definition if isinstance(definition, Mapping) else definition.to_dict()
        agent = Agent.from_dict({**fields, "name": name})
        if self._definitions.get(name, agent) != agent:
            raise AlreadyExists(name, f"another agent {name!r} is in the file")
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
        """The name of the agent that is to answer: the one that is named, or the default."""
        if name is None and self._default is None:
            raise NoDefaultAgent
        return self.get(name or self._default or "").name

    def _find(self, name: str) -> Agent:
        if self._registry is None:
            raise UnknownAgent(name)
        found = self._registry.get_agent(name)
        return found if isinstance(found, Agent) else Agent.from_dict(found.to_dict())
