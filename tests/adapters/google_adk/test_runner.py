"""ADK's own Runner with our service, as its quickstart has it: nothing else of the program changes."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.genai import types

from chatledger import Ledger, Payload
from chatledger.adapters.google_adk import ChatLedgerSessionService
from tests.adapters.google_adk.scripted import Scripted, says, thinks_and_calls


def weather(city: str, tool_context: Any) -> dict[str, Any]:
    """The weather of a city."""
    tool_context.state["city"] = city
    tool_context.state["user:unit"] = "celsius"
    return {"degrees": 18}


def runner(service: Any, model: Scripted) -> Runner:
    agent = LlmAgent(name="helper", model=model, instruction="Be brief.", tools=[weather])
    return Runner(app_name="demo", agent=agent, session_service=service)


async def ask(running: Runner, user: str, session: str, text: str) -> list[Any]:
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in running.run_async(user_id=user, session_id=session, new_message=message)]


async def test_the_quickstart_stores_into_the_ledger(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    await service.create_session(app_name="demo", user_id="ada", session_id="s1")
    model = Scripted.of(thinks_and_calls("weather", city="Oslo"), says("18 degrees."), says("Mild."))
    running = runner(service, model)
    told = await ask(running, "ada", "s1", "Weather in Oslo?")
    await ask(running, "ada", "s1", "Is that warm?")

    assert [content.role for content in model.asked[2]] == ["user", "model", "user", "model", "user"]
    thought, call = model.asked[2][1].parts
    assert (thought.thought_signature, call.thought_signature) == (b"\xff\xfe>?", b"sig")

    session = await service.get_session(app_name="demo", user_id="ada", session_id="s1")
    assert session is not None
    assert session.state == {"city": "Oslo", "user:unit": "celsius"}
    assert session.events[1:4] == told
    assert await service.get_user_state(app_name="demo", user_id="ada") == {"unit": "celsius"}

    (thread,) = await ledger.threads.list(kind="demo")
    assert (thread.user_id, thread.rules) == ("ada", "lenient")
    stored = (await ledger.messages.history(thread.thread_id)).messages
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [message.role for message in stored] == roles
    assert all(message.violations == [] for message in stored)
    assert len(await ledger.runs.list(thread_id=thread.thread_id)) == 2


async def test_the_thread_reads_in_other_formats(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    await service.create_session(app_name="demo", user_id="ada", session_id="s1")
    await ask(runner(service, Scripted.of(thinks_and_calls("weather", city="Oslo"), says("18."))), "ada", "s1", "Oslo?")
    chat = (await ledger.messages.history("demo/ada/s1")).encode("openai-chat").payload
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant"]
    assert chat[1]["tool_calls"][0]["function"]["name"] == "weather"
    anthropic = (await ledger.messages.history("demo/ada/s1")).encode("anthropic").payload
    messages = anthropic["messages"] if isinstance(anthropic, dict) else anthropic
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]  # Google signed the thought
    responses = (await ledger.messages.history("demo/ada/s1")).encode("openai-responses").payload
    assert "encrypted_content" not in str(responses)
    objects = (await ledger.messages.history("demo/ada/s1")).encode("google-adk", as_="models").payload
    session = await service.get_session(app_name="demo", user_id="ada", session_id="s1")
    assert session is not None
    assert objects == session.events


async def test_an_agent_goes_on_with_a_conversation_of_another_format(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    await service.create_session(app_name="demo", user_id="ada", session_id="s1")
    said = [
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "content": "18 degrees.", "name": "helper"},
    ]
    await ledger.messages.append("demo/ada/s1", Payload(said, "openai-chat"))
    model = Scripted.of(says("Mild."))
    await ask(runner(service, model), "ada", "s1", "Is that warm?")
    assert [(content.role, content.parts[0].text) for content in model.asked[0]] == [
        ("user", "Oslo?"),
        ("model", "18 degrees."),
        ("user", "Is that warm?"),
    ]


async def test_the_runner_without_await_has_a_loop_of_its_own(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    await service.create_session(app_name="demo", user_id="ada", session_id="s1")

    def talk(number: int) -> list[Any]:
        running = runner(service, Scripted.of(thinks_and_calls("weather", city=str(number)), says("18.")))
        message = types.Content(role="user", parts=[types.Part(text="Oslo?")])
        return list(running.run(user_id="ada", session_id="s1", new_message=message))

    for number in range(2):
        assert len(await asyncio.wait_for(asyncio.to_thread(talk, number), 60)) == 3
    session = await service.get_session(app_name="demo", user_id="ada", session_id="s1")
    assert session is not None
    assert (len(session.events), session.state["city"]) == (8, "1")
