"""An agent of the OpenAI Agents SDK whose conversation is kept in a ledger.

    pip install 'chatledger[openai-agents]'
    OPENAI_API_KEY=… python -m examples.openai_agents

Run it again, and the agent continues the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import Agent, Runner, function_tool

from chatledger import Ledger
from chatledger.adapters.openai_agents import ChatLedgerSession


@function_tool  # type: ignore[untyped-decorator]  # the type checker's environment does not have the SDK
def weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


async def talk(ledger: Ledger, user: str, questions: Sequence[str], model: Any = None) -> list[str]:
    """Ask the questions one after the other, in the user's own thread. Returns the answers."""
    agent = Agent(name="Assistant", instructions="Reply very concisely.", tools=[weather], model=model)
    session = ChatLedgerSession(f"weather/{user}", ledger, user_id=user)
    return [str((await Runner.run(agent, question, session=session)).final_output) for question in questions]


async def main() -> None:
    async with Ledger.open("agents.db") as ledger:
        for answer in await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"]):
            print(answer)
        encoded = (await ledger.messages.history("weather/ada")).encode("anthropic")
        print(f"{len(encoded.payload['messages'])} messages for Anthropic, and every other format reads them too")


if __name__ == "__main__":
    asyncio.run(main())
