"""Content parts of kosong, of both revisions: a registry of classes by their `type`.

A part's class is the one that was last registered under its `type`; an application's own subclass registers itself by
being defined. Upstream raises a bare KeyError for a type that nobody registered. Here it is an UnknownPart, which holds
the part as it was written: what one process wrote with a class of its own, another can still read and hand on.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, GetCoreSchemaHandler, model_serializer
from pydantic_core import CoreSchema, core_schema


class MergeableMixin:
    """Something that arrives in fragments."""

    def merge_in_place(self, other: object) -> bool:
        """Take the other fragment in and say True, or change nothing and say False."""
        return False


_REGISTRY: dict[str, type[ContentPart]] = {}


def part_class(part_type: str, *, videos: bool = True) -> type[ContentPart] | None:
    """The class that was last registered under a type. Without `videos`, upstream's own video class does not exist."""
    found = _REGISTRY.get(part_type)
    return None if found is VideoURLPart and not videos else found


def read_part(value: Any, *, videos: bool = True) -> ContentPart:
    """A part as it is, or a dict as the part of its type. Raises ValueError for anything else."""
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
        if cls.__name__ == "ContentPart":  # the name is not bound yet while this very class is being made
            return core_schema.no_info_plain_validator_function(read_part)
        return handler(source)


class UnknownPart(ContentPart, registered=False):
    """A part whose type nobody registered: its dump is `value`, as it was written."""

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
