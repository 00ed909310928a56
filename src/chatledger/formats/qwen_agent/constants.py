"""The constants of the format: roles, kinds of content, names of fields."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ContentType: TypeAlias = Literal["text", "image", "file", "audio", "video"]

DEFAULT_SYSTEM_MESSAGE = ""

SYSTEM = "system"
USER = "user"
ASSISTANT = "assistant"
FUNCTION = "function"

TEXT: Final = "text"
IMAGE: Final = "image"
FILE: Final = "file"
AUDIO: Final = "audio"
VIDEO: Final = "video"

ROLE = "role"
CONTENT = "content"
REASONING_CONTENT = "reasoning_content"
NAME = "name"

ROLES = (USER, ASSISTANT, SYSTEM, FUNCTION)
CONTENT_TYPES: tuple[ContentType, ...] = (TEXT, IMAGE, FILE, AUDIO, VIDEO)
MESSAGE_FIELDS = (ROLE, CONTENT, REASONING_CONTENT, NAME, "function_call", "extra")
CALL_FIELDS = ("name", "arguments")
FUNCTION_ID = "function_id"  # the key of `extra` that holds a call's id, on the call and on its result
