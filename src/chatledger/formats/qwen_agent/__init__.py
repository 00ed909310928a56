"""Qwen-Agent's messages: models that behave like those of the real package, and their codec.

The codec also accepts the real package's objects. It identifies them by their fields and never imports the package.
"""

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
from chatledger.formats.qwen_agent.models import (
    DOCUMENTED,
    BaseModelCompatibleDict,
    ContentItem,
    FunctionCall,
    Message,
    ModelResponse,
    Problem,
    UnknownField,
    Usage,
    check,
)

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
