"""The messages of the Microsoft Agent Framework: `Message.to_dict()`, or the message objects themselves."""

from chatledger.formats.agent_framework.codec import CODEC, AgentFramework

__all__ = ["CODEC", "AgentFramework"]
