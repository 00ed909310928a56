"""What a request to Anthropic's Messages API says of a conversation: `{"system": …, "messages": […]}`."""

from chatledger.formats.anthropic.codec import CODEC, Anthropic

__all__ = ["CODEC", "Anthropic"]
