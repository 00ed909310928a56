"""The input and output items of OpenAI's Responses API."""

from chatledger.formats.openai_responses.codec import CODEC, OpenAIResponses
from chatledger.formats.openai_responses.write import as_items

__all__ = ["CODEC", "OpenAIResponses", "as_items"]
