"""An agent of Pydantic AI whose conversations are kept in a ledger.

    pip install 'chatledger[pydantic-ai]' 'pydantic-ai-slim[openai]'
    OPENAI_API_KEY=… python -m examples.pydantic_ai

Run it again, and the agent continues the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation

from chatledger import Ledger
from chatledger.adapters.pydantic_ai import LedgerConversationStore


def weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


async def talk(ledger: Ledger, user: str, questions: Sequence[str], model: Any = "openai:gpt-5.2") -> list[str]:
    """Ask the questions one after the other, in the user's own conversation. Returns the answers."""
    store = LedgerConversationStore(ledger)
    agent = Agent(model, instructions="Reply very concisely.", tools=[weather])
    answers = []
    for question in questions:
        conversation_id = f"weather/{user}"
        conversation = await store.load(conversation_id, scope=user) or Conversation(conversation_id=conversation_id)
        result = await agent.run(question, conversation=conversation)
        await store.save(result, scope=user)
        answers.append(str(result.output))
    return answers


async def main() -> None:
    async with Ledger.open("agents.db") as ledger:
        for answer in await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"]):
            print(answer)
        encoded = (await ledger.messages.history("weather/ada")).encode("anthropic")
        print(f"{len(encoded.payload['messages'])} messages for Anthropic, and every other format reads them too")


if __name__ == "__main__":
    asyncio.run(main())
