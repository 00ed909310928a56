"""A message of Qwen-Agent, with the constructor, the dumps and the leniency of the real one.

Reasoning, content and each call of a reply are separate consecutive assistant messages. Unknown keyword arguments are
dropped. The stricter rules of the documentation hold with `model_validate(data, context={"rules": "documented"})`.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import ValidationInfo, field_validator, model_validator

from chatledger.formats.qwen_agent.base import BaseModelCompatibleDict
from chatledger.formats.qwen_agent.calls import FunctionCall
from chatledger.formats.qwen_agent.check import check, is_documented, refuse
from chatledger.formats.qwen_agent.constants import ROLES
from chatledger.formats.qwen_agent.content import ContentItem


class Message(BaseModelCompatibleDict):
    role: str
    content: str | list[ContentItem]
    reasoning_content: str | list[ContentItem] | None = None
    name: str | None = None
    function_call: FunctionCall | None = None
    extra: dict[Any, Any] | None = None

    def __init__(
        self,
        role: str,
        content: str | list[ContentItem] | None,
        reasoning_content: str | list[ContentItem] | None = None,
        name: str | None = None,
        function_call: FunctionCall | None = None,
        extra: dict[Any, Any] | None = None,
        **_dropped: Any,
    ) -> None:
        super().__init__(
            role=role,
            content="" if content is None else content,
            reasoning_content=reasoning_content,
            name=name,
            function_call=function_call,
            extra=extra,
        )

    @field_validator("role")
    @classmethod
    def _known_role(cls, role: str) -> str:
        if role not in ROLES:
            raise ValueError(f"{role} must be one of {','.join(ROLES)}")
        return role

    @model_validator(mode="after")
    def _as_documented(self, info: ValidationInfo) -> Self:
        # The constructor validates the fields without the context, so the call is judged from here as well.
        if is_documented(info):
            if self.function_call is not None:
                self.function_call.name = self.function_call.name.strip()
            refuse(check(self))
        return self

    def get_text_content(self) -> str:
        """The content if it is a text, otherwise its texts that are not empty, a line each."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text for item in self.content if item.text)

    def is_multimodal(self) -> bool:
        """Whether there is anything but text in the content, files included."""
        if isinstance(self.content, str):
            return False
        return any(item.is_media_content() or item.file for item in self.content)
