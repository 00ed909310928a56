"""The contents of a message file: protocols, builders of objects that satisfy them, agents, and the codec."""

from chatledger.formats.message_file.agents import Agent, AgentFactory, AgentSettings, NoDefaultAgent, UnknownAgent
from chatledger.formats.message_file.builders import (
    CodeExecutionOutputBuilder,
    FunctionCallBuilder,
    MessageBuilder,
    MessageOutputBuilder,
)
from chatledger.formats.message_file.codec import CODEC
from chatledger.formats.message_file.models import UnknownItem, item_from_dict, output_from_dict
from chatledger.formats.message_file.protocols import (
    AgentFactoryProtocol,
    AgentProtocol,
    CodeExecutionOutput,
    FunctionCall,
    Message,
    MessageItem,
    MessageOutput,
)

__all__ = [
    "CODEC",
    "Agent",
    "AgentFactory",
    "AgentFactoryProtocol",
    "AgentProtocol",
    "AgentSettings",
    "CodeExecutionOutput",
    "CodeExecutionOutputBuilder",
    "FunctionCall",
    "FunctionCallBuilder",
    "Message",
    "MessageBuilder",
    "MessageItem",
    "MessageOutput",
    "MessageOutputBuilder",
    "NoDefaultAgent",
    "UnknownAgent",
    "UnknownItem",
    "item_from_dict",
    "output_from_dict",
]
