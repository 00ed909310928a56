"""kosong up to release 0.28: content is a text or a list of parts, and empty content dumps as null.

So its dump does not distinguish `""` from `[]`. The object does, and the codec uses the object.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, field_serializer, field_validator

from chatledger.formats.kosong.codec import KosongCodec
from chatledger.formats.kosong.models import (
    AnyToolCall,
    AudioURLPart,
    ContentPart,
    ImageURLPart,
    MergeableMixin,
    TextPart,
    ThinkPart,
    ToolCallPart,
    UnknownPart,
    validate_part,
)
from chatledger.formats.kosong.parts import KosongRevision

__all__ = [
    "CODEC",
    "AudioURLPart",
    "ContentPart",
    "ImageURLPart",
    "MergeableMixin",
    "Message",
    "TextPart",
    "ThinkPart",
    "ToolCall",
    "ToolCallPart",
    "UnknownPart",
]


class ToolCall(AnyToolCall):
    """A call without extras: kosong has those from release 0.26 on."""


class Message(BaseModel):
    role: Literal["system", "user", "assistant", "tool"]
    name: str | None = None
    content: str | list[ContentPart]
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    partial: bool | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _null_is_empty(cls, content: Any) -> Any:
        if isinstance(content, list):
            return [validate_part(part, videos=False) if isinstance(part, dict) else part for part in content]
        return "" if content is None else content

    @field_serializer("content")
    def _empty_is_null(self, content: str | list[ContentPart]) -> str | list[dict[str, Any]] | None:
        if not content:
            return None
        return content if isinstance(content, str) else [part.model_dump() for part in content]


CODEC = KosongCodec(KosongRevision("kosong/0.23", Message, null_is_empty=True, has_extras=False, has_videos=False))
