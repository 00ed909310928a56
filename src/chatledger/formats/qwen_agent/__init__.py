"""Qwen-Agent's messages: models that behave like the real package's, and their codec.

The real package's objects are accepted wherever these are; they are known by their fields, never imported.
"""

from chatledger.formats.qwen_agent.base import BaseModelCompatibleDict, UnknownField
from chatledger.formats.qwen_agent.calls import FunctionCall
from chatledger.formats.qwen_agent.check import DOCUMENTED, Problem, check
from chatledger.formats.qwen_agent.codec import CODEC
from chatledger.formats.qwen_agent.constants import (
    ASSISTANT,
    AUDIO,
    CONTENT,
    DEFAULT_SYSTEM_MESSAGE,
    FILE,
    FUNCTION,
    IMAGE,
    NAME,
    REASONING_CONTENT,
    ROLE,
    SYSTEM,
    TEXT,
    USER,
    VIDEO,
)
from chatledger.formats.qwen_agent.content import ContentItem
from chatledger.formats.qwen_agent.messages import Message
from chatledger.formats.qwen_agent.responses import ModelResponse, Usage

__all__ = [
    "ASSISTANT",
    "AUDIO",
    "CODEC",
    "CONTENT",
    "DEFAULT_SYSTEM_MESSAGE",
    "DOCUMENTED",
    "FILE",
    "FUNCTION",
    "IMAGE",
    "NAME",
    "REASONING_CONTENT",
    "ROLE",
    "SYSTEM",
    "TEXT",
    "USER",
    "VIDEO",
    "BaseModelCompatibleDict",
    "ContentItem",
    "FunctionCall",
    "Message",
    "ModelResponse",
    "Problem",
    "UnknownField",
    "Usage",
    "check",
]
