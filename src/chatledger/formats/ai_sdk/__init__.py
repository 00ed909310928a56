"""UI messages of the AI SDK: what `useChat` shows and an application stores, as JSON."""

from chatledger.formats.ai_sdk.codec import AISDK, CODEC

__all__ = ["AISDK", "CODEC"]
