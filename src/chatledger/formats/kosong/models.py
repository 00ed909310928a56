"""The classes of kosong: content parts and tool calls of both revisions, and the message from release 0.30 on.

Content parts are a registry of classes by their `type`. A part has the class that was last registered under its `type`;
defining a subclass registers it. kosong raises a bare KeyError for an unregistered type. Here the part is an
UnknownPart, which holds the original dict: so a process can read and pass on a part whose class only another process
has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    GetCoreSchemaHandler,
    JsonValue,
    ValidationError,
    field_serializer,
    field_validator,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

from chatledger.errors import DecodeError
from chatledger.formats.kosong.parts import KosongRevision
from chatledger.models import json
from chatledger.models.json import JsonObject


class MergeableMixin:
    """Something that arrives in fragments."""

    def merge_in_place(self, other: object) -> bool:
        """Add the other fragment and return True, or change nothing and return False."""
        return False


_REGISTRY: dict[str, type[ContentPart]] = {}


def part_class(part_type: str, *, videos: bool = True) -> type[ContentPart] | None:
    """The class that was last registered under a type. Without `videos`, kosong's own video class does not exist."""
    registered = _REGISTRY.get(part_type)
    return None if registered is VideoURLPart and not videos else registered


def validate_part(value: Any, *, videos: bool = True) -> ContentPart:
    """A part unchanged, or a dict as the part of its type. Raises ValueError for anything else."""
    if isinstance(value, ContentPart):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ValueError(f"Cannot validate {value} as ContentPart")
    part_type = part_class(value["type"], videos=videos)
    return UnknownPart(type=value["type"], value=value) if part_type is None else part_type.model_validate(value)


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
    """A part of an unregistered type. Its dump is `value`, the original part."""

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
        """The URL or data URI of an image; `id` lets a model distinguish several images."""

        url: str
        id: str | None = None

    type: str = "image_url"
    image_url: ImageURL


class AudioURLPart(ContentPart):
    class AudioURL(BaseModel):
        """The URL or data URI of a sound; `id` lets a model distinguish several sounds."""

        url: str
        id: str | None = None

    type: str = "audio_url"
    audio_url: AudioURL


class VideoURLPart(ContentPart):
    """From release 0.36 on; the older revision reads a `video_url` as an unknown part."""

    class VideoURL(BaseModel):
        """The URL or data URI of a video; `id` lets a model distinguish several videos."""

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
        """`arguments` is the JSON that the model wrote, which may be invalid; None until the first piece arrives."""

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
    """A call, with extras that its provider requires back, such as a signature."""

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
        # As in kosong: these four arguments always count as given, and a missing one raises a TypeError.
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


# --- Objects of the classes -------------------------------------------------------------------------------------------

MESSAGE_FIELDS = ("role", "name", "content", "tool_calls", "tool_call_id", "partial")


def is_object(value: object) -> bool:
    """Whether it is a Pydantic object with the fields of a message."""
    fields = getattr(type(value), "model_fields", None)
    return isinstance(fields, dict) and fields.keys() >= set(MESSAGE_FIELDS)


def object_fields(message: Any, path: str) -> JsonObject:
    """The fields of a message object, its parts and calls as their own dumps."""
    held = vars(message)
    missing = [name for name in MESSAGE_FIELDS if name not in held]
    if missing:
        raise DecodeError(f"{path}.{missing[0]}", "missing")
    fields = {name: held[name] for name in MESSAGE_FIELDS}
    for name in ("content", "tool_calls"):
        if isinstance(fields[name], list):
            fields[name] = [dump_object(item, f"{path}.{name}[{index}]") for index, item in enumerate(fields[name])]
    return fields


def dump_object(value: Any, path: str) -> json.JsonValue:
    """An object's own dump. Raises DecodeError for anything that an application's serializer raises."""
    if not hasattr(type(value), "model_fields"):
        return value
    try:
        return value.model_dump(warnings=False)
    except Exception as error:
        raise DecodeError(path, f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error


def classes_of(message: Any) -> dict[int, str]:
    """The type under which a part's class was registered, for each part that states another type; by index."""
    content = vars(message)["content"]
    stated = enumerate(content) if isinstance(content, list) else ()
    types = {index: (_registered_as(part), getattr(part, "type", None)) for index, part in stated}
    return {index: own for index, (own, stated_type) in types.items() if own is not None and own != stated_type}


def _registered_as(part: Any) -> str | None:
    field = getattr(type(part), "model_fields", {}).get("type")
    default = getattr(field, "default", None)
    return default if isinstance(default, str) else None


def is_plain_text(message: Any) -> bool:
    """Whether the content is one text part without further fields: then the message keeps only the text."""
    content = vars(message)["content"]
    if not isinstance(content, list) or len(content) != 1 or type(content[0]).__name__ != "TextPart":
        return False
    held = vars(content[0])
    return held.get("type") == "text" and isinstance(held.get("text"), str) and len(held) == 2


def build(revision: KosongRevision, fields: JsonObject, classes: Any) -> Any:
    """A message object, whose parts have their classes. A part that no class accepts is an UnknownPart."""
    content = fields.get("content")
    if isinstance(content, list):
        named = classes if isinstance(classes, dict) else {}
        content = [_build_part(part, named.get(str(index)), revision) for index, part in enumerate(content)]
    return revision.message.model_validate({**fields, "content": content})


def _build_part(value: json.JsonValue, part_type: Any, revision: KosongRevision) -> ContentPart:
    stated = value.get("type") if isinstance(value, dict) else None
    if not isinstance(stated, str):
        return UnknownPart(type="", value=value)
    class_ = part_class(part_type if isinstance(part_type, str) else stated, videos=revision.has_videos)
    with suppress(ValidationError, TypeError):
        if class_ is not None:
            return class_.model_validate(value)
    return UnknownPart(type=stated, value=value)


MADE, SHORT_READ, READ = "made", "short", "full"

_NAMED_BY_INIT = ("tool_calls", "tool_call_id")  # the newer constructor always passes them on
_TEXT_ITSELF = "content.0"


def keep_given(message: Any, *, is_text: bool) -> json.JsonValue:
    """The value that `restore_given` needs, None for MADE. `is_text` says that the residual keeps a lone text part as
    its text.
    """
    models = dict(_models(message, ""))
    set_fields = {path: set(model.model_fields_set) for path, model in models.items()}
    for way in (MADE, SHORT_READ, READ):
        if set_fields == {path: _expected(model, path, way, is_text=is_text) for path, model in models.items()}:
            return None if way == MADE else way
    constructed = {path: _expected(model, path, MADE, is_text=is_text) for path, model in models.items()}
    return {path: sorted(names) for path, names in set_fields.items() if names != constructed[path]}


def restore_given(message: Any, residual: Any, *, is_text: bool) -> None:
    """Mark the fields that were given, on the message and the objects inside it."""
    listed = residual if isinstance(residual, dict) else {}
    way = residual if isinstance(residual, str) else MADE
    for path, model in _models(message, ""):
        set_fields = model.model_fields_set
        names = listed.get(path)
        set_fields.clear()
        set_fields.update(names if isinstance(names, list) else _expected(model, path, way, is_text=is_text))


def _models(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The object and the objects inside it, with their paths. Free JSON is skipped: it holds none and may be deep."""
    if isinstance(getattr(type(value), "model_fields", None), dict):
        yield path, value
        for name, child in list(vars(value).items()):
            yield from _models(child, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and all(hasattr(type(item), "model_fields") for item in value):
        for index, item in enumerate(value):
            yield from _models(item, f"{path}.{index}")


def _expected(model: Any, path: str, way: str, *, is_text: bool) -> set[str]:
    if is_text and path == _TEXT_ITSELF:
        return {"text"}
    fields = type(model).model_fields
    values = vars(model)
    if way == READ:
        return set(fields)
    if way == SHORT_READ:
        names = (
            set(fields) if path.startswith("content.") else {name for name in fields if values.get(name) is not None}
        )
    else:
        names = {name for name, info in fields.items() if info.is_required() or values.get(name) != info.default}
    return names.union(_NAMED_BY_INIT) if path == "" and hasattr(model, "extract_text") else names
