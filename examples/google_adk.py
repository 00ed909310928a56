"""An agent of Google's Agent Development Kit whose sessions are kept in a ledger.

    pip install 'chatledger[google-adk]'
    GOOGLE_API_KEY=… python -m examples.google_adk

Run it again, and the agent continues the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.genai import types

from chatledger import Ledger
from chatledger.adapters.google_adk import ChatLedgerSessionService

APP = "weather"


def weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


async def talk(ledger: Ledger, user: str, questions: Sequence[str], model: Any = "gemini-flash-latest") -> list[str]:
    """Ask the questions one after the other, in the user's own session. Returns the answers."""
    sessions = ChatLedgerSessionService(ledger)
    where: dict[str, Any] = {"app_name": APP, "user_id": user, "session_id": "first"}
    if await sessions.get_session(**where) is None:
        await sessions.create_session(**where)
    agent = LlmAgent(name="helper", model=model, instruction="Reply very concisely.", tools=[weather])
    runner = Runner(app_name=APP, agent=agent, session_service=sessions)
    return [await _ask(runner, user, question) for question in questions]


async def _ask(runner: Runner, user: str, question: str) -> str:
    asked = types.Content(role="user", parts=[types.Part(text=question)])
    texts = []
    async for event in runner.run_async(user_id=user, session_id="first", new_message=asked):
        if event.is_final_response() and event.content:
            texts += [part.text for part in event.content.parts or [] if part.text and not part.thought]
    return "".join(texts)


async def main() -> None:
    async with Ledger.open("agents.db") as ledger:
        for answer in await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"]):
            print(answer)
        encoded = (await ledger.messages.history(f"{APP}/ada/first")).encode("anthropic")
        print(f"{len(encoded.payload['messages'])} messages for Anthropic, and every other format reads them too")


if __name__ == "__main__":
    asyncio.run(main())
