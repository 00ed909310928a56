"""One piece of content: a text, an image, a file, an audio or a video.

What counts as given is a text that is not None, even an empty one, and of the others what is truthy. So `text="a"`
with `image=""` is one piece, and `image=""` alone is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

from pydantic import model_validator

from chatledger.formats.qwen_agent.base import BaseModelCompatibleDict
from chatledger.formats.qwen_agent.constants import CONTENT_TYPES, FILE, IMAGE, TEXT, ContentType

ContentValue: TypeAlias = str | dict[Any, Any] | list[Any]

EXCLUSIVE = "Exactly one of 'text', 'image', 'file', 'audio', or 'video' must be provided."


def given_types(fields: Mapping[str, Any]) -> list[ContentType]:
    """The kinds that count as given, in the order of the fields."""
    return [kind for kind in CONTENT_TYPES if (fields.get(kind) is not None if kind == TEXT else fields.get(kind))]


class ContentItem(BaseModelCompatibleDict):
    text: str | None = None
    image: str | None = None
    file: str | None = None
    audio: str | dict[Any, Any] | None = None
    video: str | list[Any] | None = None

    def __init__(
        self,
        text: str | None = None,
        image: str | None = None,
        file: str | None = None,
        audio: str | dict[Any, Any] | None = None,
        video: str | list[Any] | None = None,
    ) -> None:
        super().__init__(text=text, image=image, file=file, audio=audio, video=video)

    @model_validator(mode="after")
    def check_exclusivity(self) -> Self:
        if len(given_types(dict(self))) != 1:
            raise ValueError(EXCLUSIVE)
        return self

    def get_type_and_value(self) -> tuple[ContentType, ContentValue]:
        """The kind and its value. An empty text if an assignment has emptied the item."""
        for kind in given_types(dict(self)):
            return kind, getattr(self, kind)
        return TEXT, ""

    @property
    def type(self) -> ContentType:
        return self.get_type_and_value()[0]

    @property
    def value(self) -> ContentValue:
        return self.get_type_and_value()[1]

    def is_media_content(self) -> bool:
        """Whether it is an image, an audio or a video. A file is not a medium, though it makes a message multimodal."""
        return bool(self.image or self.audio or self.video)

    def get_file_extension(self) -> str | None:
        """What stands after the last dot of an image or a file, in lower case. Of a URL with a query, all of that."""
        kind, value = self.get_type_and_value()
        if kind in (IMAGE, FILE) and isinstance(value, str) and "." in value:
            return value.rpartition(".")[2].lower()
        return None
