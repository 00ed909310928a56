"""The input and output items of OpenAI's Responses API."""

from chatledger.formats.openai_responses.codec import CODEC, OpenAIResponses, write_items

__all__ = ["CODEC", "OpenAIResponses", "write_items"]
