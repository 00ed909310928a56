"""The message of kosong from release 0.30 on: its content is a list of parts, and one plain text dumps as that text."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, field_serializer, field_validator

from chatledger.formats.kosong.calls import ToolCall
from chatledger.formats.kosong.parts import ContentPart, TextPart

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Message(BaseModel):
    role: Role
    name: str | None = None
    content: list[ContentPart]
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    partial: bool | None = None

    def __init__(
        self,
        *,
        role: Role,
        content: list[ContentPart] | ContentPart | str,
        tool_calls: list[ToolCall] | None = None,
        tool_call_id: str | None = None,
        **data: Any,
    ) -> None:
        # As upstream: the four named here always count as given, and a missing one is a TypeError.
        parts = [content] if isinstance(content, ContentPart) else content
        super().__init__(role=role, content=parts, tool_calls=tool_calls, tool_call_id=tool_call_id, **data)

    @field_validator("content", mode="before")
    @classmethod
    def _wrap(cls, content: Any) -> Any:
        if content is None:
            return []
        return [TextPart(text=content)] if isinstance(content, str) else content

    @field_serializer("content")
    def _collapse(self, content: list[ContentPart]) -> str | list[dict[str, Any]]:
        if len(content) == 1 and isinstance(content[0], TextPart):
            return content[0].text
        return [part.model_dump() for part in content]

    def extract_text(self, sep: str = "") -> str:
        """All text parts, joined."""
        return sep.join(part.text for part in self.content if isinstance(part, TextPart))
