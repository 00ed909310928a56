"""The calls of a file, as the Message File interface document describes them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chatledger import Ledger, NotFound, ThreadNotFound
from chatledger.errors import IdConflict
from chatledger.formats.message_file import Agent, AgentFactory, FunctionCall, Message, NoDefaultAgent, UnknownAgent
from chatledger.message_file import MessageFile
from tests.message_file.conftest import WEATHER, Reopen
from tests.message_file.shapes import dicts, names, said


async def test_a_new_file_is_empty(reopen: Reopen) -> None:
    file = await reopen()
    assert (file.get_items(), file.get_agents(), file.default_agent(), file.get_path()) == ([], [], None, None)


async def test_get_path_is_what_the_file_was_opened_with(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    assert (await MessageFile.open(ledger, "t", "notes/trip.md")).get_path() == "notes/trip.md"


async def test_a_file_is_a_thread_that_exists(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await MessageFile.open(ledger, "nowhere")


async def test_add_message_gives_a_message_for_the_default_agent(file: MessageFile) -> None:
    message = file.add_message("How warm?", timeout=30)
    assert isinstance(message, Message)
    assert (message.name, message.content, message.mime_type) == ("message_1", "How warm?", "text/plain")
    assert (message.agent_name, message.timeout, message.outputs) == ("weather", 30, ())
    assert file.get_items() == [message]


async def test_add_function_call_gives_a_call_that_is_an_item_of_its_own(file: MessageFile) -> None:
    message = file.add_message("How warm?")
    call = file.add_function_call("message_1", "forecast", {"city": "Tokyo"}, timeout=1.5)
    assert isinstance(call, FunctionCall)
    assert (call.name, call.function_name, call.args) == ("message_1_func_1", "forecast", {"city": "Tokyo"})
    assert [item.to_dict() for item in file.get_items()] == [message.to_dict(), call.to_dict()]
    assert message.to_dict()["function_calls"] == [call.to_dict()]


async def test_a_function_call_may_name_an_agent(file: MessageFile) -> None:
    file.add_message("How warm?")
    assert file.add_function_call("message_1", "weather").function_name == "weather"


async def test_names_count_and_given_names_stand(file: MessageFile) -> None:
    for name in (None, "intro", "message_7", None):
        file.add_message("x", name=name)
    file.add_function_call("intro", "f")
    file.add_function_call("intro", "f", name="mine")
    file.add_function_call("intro", "f")
    expected = ["message_1", "intro", "message_7", "message_8", "intro_func_1", "mine", "intro_func_2"]
    assert names(file) == expected


@pytest.mark.parametrize("index_or_name", [1, "message_2"])
async def test_get_item_by_position_and_by_name(file: MessageFile, index_or_name: int | str) -> None:
    file.add_message("a")
    second = file.add_message("b")
    assert file.get_item(index_or_name) is second


@pytest.mark.parametrize("index_or_name", [2, -1, "1", "nobody"])
async def test_get_item_returns_none_if_there_is_none(file: MessageFile, index_or_name: int | str) -> None:
    file.add_message("a")
    assert file.get_item(index_or_name) is None


async def test_the_first_agent_is_not_the_default(reopen: Reopen) -> None:
    file = await reopen()
    added = file.add_agent_with_definition("weather", WEATHER)
    assert (file.get_agents(), file.default_agent()) == ([added], None)
    file.set_default_agent("weather")
    assert file.default_agent() == added


async def test_without_a_default_agent_nothing_can_be_asked(reopen: Reopen) -> None:
    file = await reopen()
    file.add_agent_with_definition("weather", WEATHER)
    with pytest.raises(NoDefaultAgent):
        file.add_message("x")
    message = file.add_message("x", agent_name="weather")
    with pytest.raises(ValueError, match="no default agent"):
        file.add_function_call("message_1", "f")
    assert (file.get_items(), message.name) == ([message], "message_1")


async def test_an_agent_that_is_not_in_the_file_is_an_error_before_anything_changes(file: MessageFile) -> None:
    with pytest.raises(UnknownAgent):
        file.add_message("x", agent_name="sky")
    with pytest.raises(UnknownAgent):
        file.set_default_agent("sky")
    with pytest.raises(UnknownAgent):
        file.add_agent("sky")
    assert (file.get_items(), [agent.name for agent in file.get_agents()]) == ([], ["weather"])


@pytest.mark.parametrize("message_name", ["nobody", "message_1_func_1"])
async def test_a_call_belongs_to_a_message_of_the_file(file: MessageFile, message_name: str) -> None:
    file.add_message("x")
    file.add_function_call("message_1", "f")
    with pytest.raises(NotFound):
        file.add_function_call(message_name, "f")
    assert names(file) == ["message_1", "message_1_func_1"]


async def test_a_name_is_unique(file: MessageFile) -> None:
    file.add_message("x", name="a")
    for add in (lambda: file.add_message("y", name="a"), lambda: file.add_function_call("a", "f", name="a")):
        with pytest.raises(IdConflict):
            add()
    assert names(file) == ["a"]


async def test_a_refused_item_uses_up_no_number(file: MessageFile) -> None:
    with pytest.raises(ValidationError):
        file.add_message("x", timeout=-1)
    with pytest.raises(ValidationError):
        file.add_message("x", name="")
    assert file.add_message("x").name == "message_1"


async def test_settings_can_be_overridden_and_what_the_agent_is_cannot(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    registry = AgentFactory()
    registry.register_agent(Agent.from_dict({"name": "weather", **WEATHER}))
    file = await MessageFile.open(ledger, "t", agents=registry)
    agent = file.add_agent("weather", {"context_window": 100, "temperature": 0.5})
    assert (agent.context_window, agent.temperature, agent.system_prompt) == (100, 0.5, "Be brief.")
    for setting in ({"models": ["x"]}, {"system_prompt": "x"}, {"api_key": "x"}):
        with pytest.raises(ValidationError):
            file.add_agent("weather", setting)
    assert file.get_agents() == [agent]


async def test_a_definition_holds_no_key_of_a_provider(file: MessageFile) -> None:
    with pytest.raises(ValidationError):
        file.add_agent_with_definition("sky", {**WEATHER, "api_key": "secret"})
    with pytest.raises(IdConflict):
        file.add_agent_with_definition("weather", {"models": ["other"]})
    assert [agent.name for agent in file.get_agents()] == ["weather"]


async def test_save_and_load_give_the_same_file(file: MessageFile, reopen: Reopen) -> None:
    file.add_agent("weather", {"reasoning": True})
    message = file.add_message("How warm?")
    file.add_function_call("message_1", "forecast", {"b": 1, "a": 2}).add_output(said("21"))
    message.add_output(said("21 degrees"))
    await file.save()
    other = await reopen()
    assert dicts(other) == dicts(file)
    assert (other.get_agents(), other.default_agent()) == (file.get_agents(), file.default_agent())


async def test_load_forgets_what_was_not_saved(file: MessageFile) -> None:
    file.add_message("kept")
    await file.save()
    file.add_message("dropped")
    await file.load()
    assert names(file) == ["message_1"]
