from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pytest
from pydantic import ValidationError

from chatledger.errors import IdConflict, NotFound
from chatledger.formats.message_file import Agent, AgentFactory, AgentFactoryProtocol, AgentProtocol, UnknownAgent

DEFINITION: dict[str, Any] = {
    "name": "weather",
    "models": ["gpt-5-nano", "qwen3"],
    "context_window": 32768,
    "max_output_tokens": 4096,
    "reasoning": True,
    "use_temperature": True,
    "temperature": 0.7,
    "system_prompt": "You know the weather.",
}


def test_a_definition_comes_back_in_the_order_of_its_fields() -> None:
    agent: AgentProtocol = Agent.from_dict(DEFINITION)
    assert list(agent.to_dict().items()) == list(DEFINITION.items())
    assert isinstance(agent, AgentProtocol)


def test_an_agent_uses_a_temperature_unless_told_otherwise() -> None:
    assert Agent.from_dict({"name": "weather"}).to_dict() == {
        "name": "weather",
        "models": [],
        "context_window": None,
        "max_output_tokens": None,
        "reasoning": None,
        "use_temperature": True,
        "temperature": None,
        "system_prompt": "",
    }


@pytest.mark.parametrize(
    ("field", "value"), [("reasoning", 1), ("reasoning", "high"), ("temperature", 1), ("temperature", 1.0)]
)
def test_a_value_keeps_its_kind(field: str, value: Any) -> None:
    assert repr(Agent.from_dict({**DEFINITION, field: value}).to_dict()[field]) == repr(value)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"models": "gpt-5-nano"},
        {"context_window": 0},
        {"max_output_tokens": "4096"},
        {"use_temperature": 1},
        {"temperature": float("nan")},
        {"system_prompt": None},
        {"api_key": "hush"},
    ],
)
def test_an_unknown_key_of_a_definition_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Agent.from_dict({**DEFINITION, **fields})


def test_settings_may_be_overridden() -> None:
    settings = {"context_window": 8192, "reasoning": False, "use_temperature": False, "temperature": None}
    agent = Agent.from_dict(DEFINITION)
    assert agent.overridden(settings).to_dict() == {**DEFINITION, **settings}
    assert agent.to_dict() == DEFINITION


@pytest.mark.parametrize("name", ["models", "system_prompt", "name", "surprise"])
def test_the_identity_of_an_agent_cannot_be_overridden(name: str) -> None:
    with pytest.raises(ValidationError):
        Agent.from_dict(DEFINITION).overridden({name: DEFINITION.get(name)})


def test_a_factory_lists_agents_in_the_order_of_registration() -> None:
    factory = AgentFactory()
    agents = [Agent(name="weather"), Agent(name="search")]
    for agent in agents:
        factory.register_agent(agent)
    assert (factory.list_agents(), factory.get_agent("search")) == (agents, agents[1])
    assert isinstance(factory, AgentFactoryProtocol)


@pytest.mark.parametrize("error", [NotFound, ValueError])
def test_an_unknown_agent_is_not_found(error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        AgentFactory().get_agent("weather")
    assert isinstance(raised.value, UnknownAgent)
    assert raised.value.agent_name == "weather"


def test_a_name_has_one_definition() -> None:
    factory = AgentFactory()
    factory.register_agent(Agent(name="weather"))
    factory.register_agent(Agent(name="weather"))
    with pytest.raises(IdConflict):
        factory.register_agent(Agent(name="weather", system_prompt="other"))
    assert factory.list_agents() == [Agent(name="weather")]


class TheirAgent:
    """Another class that satisfies the protocol."""

    name = "weather"
    models = ("gpt-5-nano",)
    context_window = None
    max_output_tokens = None
    reasoning = None
    use_temperature = False
    temperature = None
    system_prompt = ""

    def to_dict(self) -> dict[str, Any]:
        return {"use_temperature": False, "models": ["gpt-5-nano"], "name": "weather"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls()


def test_anyones_agent_may_be_registered() -> None:
    factory = AgentFactory()
    factory.register_agent(TheirAgent())
    assert factory.list_agents() == [Agent(name="weather", models=("gpt-5-nano",), use_temperature=False)]
