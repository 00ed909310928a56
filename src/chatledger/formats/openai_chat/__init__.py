"""The messages of OpenAI's chat completions, which many other providers and tools use as well."""

from chatledger.formats.openai_chat.codec import CODEC, OpenAIChat

__all__ = ["CODEC", "OpenAIChat"]
