"""The input and output items of OpenAI's Responses API."""

from chatledger.formats.openai_responses.codec import CODEC, OpenAIResponses

__all__ = ["CODEC", "OpenAIResponses"]
