"""Messages of Pydantic AI: the JSON of its `ModelMessagesTypeAdapter`, or its objects."""

from chatledger.formats.pydantic_ai.codec import CODEC, PydanticAI

__all__ = ["CODEC", "PydanticAI"]
