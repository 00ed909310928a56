"""The `agent-service` format: the messages, requests and answers of an agent service, and their codec."""

from chatledger.formats.agent_service.codec import CODEC, AgentServiceCodec
from chatledger.formats.agent_service.models import (
    AgentInfo,
    ChatHistory,
    ChatHistoryInput,
    ChatMessage,
    Feedback,
    FeedbackResponse,
    ServiceMetadata,
    StreamInput,
    ToolCall,
    UserInput,
)
from chatledger.formats.agent_service.runs import run_input, to_ledger_feedback, user_input_to_message

__all__ = [
    "CODEC",
    "AgentInfo",
    "AgentServiceCodec",
    "ChatHistory",
    "ChatHistoryInput",
    "ChatMessage",
    "Feedback",
    "FeedbackResponse",
    "ServiceMetadata",
    "StreamInput",
    "ToolCall",
    "UserInput",
    "run_input",
    "to_ledger_feedback",
    "user_input_to_message",
]
