"""The classes of kosong: content parts and tool calls of both revisions, and the message from release 0.30 on.

Content parts are a registry of classes by their `type`. A part's class is the one that was last registered under its
`type`; an application's own subclass registers itself by being defined. Upstream raises a bare KeyError for a type that
nobody registered. Here it is an UnknownPart, which holds the part as it was written: one process can read and hand on
what another wrote with a class of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, GetCoreSchemaHandler, JsonValue, field_serializer, field_validator, model_serializer
from pydantic_core import CoreSchema, core_schema


class MergeableMixin:
    """Something that arrives in fragments."""

    def merge_in_place(self, other: object) -> bool:
        """Add the other fragment and return True, or change nothing and return False."""
        return False


_REGISTRY: dict[str, type[ContentPart]] = {}


def part_class(part_type: str, *, videos: bool = True) -> type[ContentPart] | None:
    """The class that was last registered under a type. Without `videos`, upstream's own video class does not exist."""
    found = _REGISTRY.get(part_type)
    return None if found is VideoURLPart and not videos else found


def validate_part(value: Any, *, videos: bool = True) -> ContentPart:
    """A part unchanged, or a dict as the part of its type. Raises ValueError for anything else."""
    if isinstance(value, ContentPart):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ValueError(f"Cannot validate {value} as ContentPart")
    found = part_class(value["type"], videos=videos)
    return UnknownPart(type=value["type"], value=value) if found is None else found.model_validate(value)


class ContentPart(BaseModel, MergeableMixin):
    """A part of a message. Validating against this class gives the registered class of the part's `type`."""

    registered_as: ClassVar[str | None] = None

    type: str

    def __init_subclass__(cls, *, registered: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not registered:
            return
        own_type = getattr(cls, "type", None)  # an inherited field is no attribute, so each class states its own
        if not isinstance(own_type, str):
            raise ValueError(f"ContentPart subclass {cls.__name__} must have a `type` field of type `str`")
        cls.registered_as = own_type
        _REGISTRY[own_type] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls.__name__ == "ContentPart":  # its name is not bound yet while Python makes the class
            return core_schema.no_info_plain_validator_function(validate_part)
        return handler(source)


class UnknownPart(ContentPart, registered=False):
    """A part whose type nobody registered. Its dump is `value`, the part as it was written."""

    value: Any

    @model_serializer
    def _as_written(self) -> Any:
        return self.value


class TextPart(ContentPart):
    type: str = "text"
    text: str

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, TextPart):
            return False
        self.text += other.text
        return True


class ThinkPart(ContentPart):
    """Reasoning. `encrypted` is a signature over the text or its encrypted form; it ends the part."""

    type: str = "think"
    think: str
    encrypted: str | None = None

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, ThinkPart) or self.encrypted:
            return False
        self.think += other.think
        self.encrypted = other.encrypted or self.encrypted
        return True


class ImageURLPart(ContentPart):
    class ImageURL(BaseModel):
        """Where the image is (data URIs included); `id` lets a model tell several apart."""

        url: str
        id: str | None = None

    type: str = "image_url"
    image_url: ImageURL


class AudioURLPart(ContentPart):
    class AudioURL(BaseModel):
        """Where the sound is (data URIs included); `id` lets a model tell several apart."""

        url: str
        id: str | None = None

    type: str = "audio_url"
    audio_url: AudioURL


class VideoURLPart(ContentPart):
    """From release 0.36 on; the older revision reads a `video_url` as an unknown part."""

    class VideoURL(BaseModel):
        """Where the video is (data URIs included); `id` lets a model tell several apart."""

        url: str
        id: str | None = None

    type: str = "video_url"
    video_url: VideoURL


# A fragment of the arguments of a call. A fragment is never stored alone.
class ToolCallPart(BaseModel, MergeableMixin):
    arguments_part: str | None = None

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, ToolCallPart):
            return False
        self.arguments_part = _joined(self.arguments_part, other.arguments_part)
        return True


class AnyToolCall(BaseModel, MergeableMixin):
    """The fields that the tool calls of both revisions have."""

    class FunctionBody(BaseModel):
        """`arguments` is the JSON that the model wrote, which may be broken; None while nothing arrived."""

        name: str
        arguments: str | None

    type: Literal["function"] = "function"
    id: str
    function: FunctionBody

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, ToolCallPart):
            return False
        self.function.arguments = _joined(self.function.arguments, other.arguments_part)
        return True


class ToolCall(AnyToolCall):
    """A call, with extras that its provider wants back, such as a signature."""

    extras: dict[str, JsonValue] | None = None


def _joined(text: str | None, fragment: str | None) -> str | None:
    return fragment if text is None else text + (fragment or "")


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


# The content is a list of parts, and a lone text part dumps as its text.
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
        # As upstream: these four arguments always count as given, and a missing one raises a TypeError.
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
