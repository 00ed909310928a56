"""Requests to Anthropic's Messages API: `{"system": …, "messages": […]}`."""

from chatledger.formats.anthropic.codec import CODEC, Anthropic

__all__ = ["CODEC", "Anthropic"]
