"""Content parts, for messages whose content is more than one text.

`kind` tells them apart. A kind that this release does not know is kept whole in an OpaquePart, so that a newer
writer's part survives an older reader.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, GetJsonSchemaHandler, Tag, model_validator

from chatledger.models.base import Model, Text
from chatledger.models.json import Json, JsonObject


class _NamedPart(Model):
    """A part that is known by its `kind`, which no JSON may leave out: it would be read as an opaque part."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        own = handler.resolve_ref_schema(schema)
        if "kind" in own.get("properties", {}):
            own["required"] = ["kind", *(name for name in own.get("required", ()) if name != "kind")]
        return schema


class TextPart(_NamedPart):
    """A piece of text."""

    kind: Literal["text"] = "text"
    """Tells the parts apart."""
    text: Text
    """The text."""
    extras: JsonObject | None = None
    """Further fields of the part in its own format, such as annotations or a cache control."""


class ThinkPart(_NamedPart):
    """A piece of a model's reasoning."""

    kind: Literal["think"] = "think"
    """Tells the parts apart."""
    text: Text
    """The reasoning as text."""
    signature: Text | None = None
    """The provider's signature of the text. The provider checks both byte for byte, so neither may change."""
    extras: JsonObject | None = None
    """Further fields of the part in its own format."""


class MediaPart(_NamedPart):
    """The base of the parts for media: an address, an id or the content, as the source gave it. The ledger fetches
    nothing.
    """

    url: Text | None = None
    """The address of the medium. It may be a data URI."""
    data: Text | None = None
    """The content in base64."""
    mime_type: Text | None = None
    """The type of the content, such as `image/png`."""
    name: Text | None = None
    """The file name."""
    id: Text | None = None
    """The provider's id of an uploaded file."""
    extras: JsonObject | None = None
    """Further fields of the part in its own format."""


class ImagePart(MediaPart):
    """An image."""

    kind: Literal["image"] = "image"
    """Tells the parts apart."""


class AudioPart(MediaPart):
    """A piece of audio."""

    kind: Literal["audio"] = "audio"
    """Tells the parts apart."""


class VideoPart(MediaPart):
    """A video."""

    kind: Literal["video"] = "video"
    """Tells the parts apart."""


class FilePart(MediaPart):
    """A file of another type, such as a PDF."""

    kind: Literal["file"] = "file"
    """Tells the parts apart."""


class OpaquePart(Model):
    """A part of a kind that this release does not know, kept as it came."""

    kind: Literal["opaque"] = "opaque"
    """Tells the parts apart."""
    type: Text | None = None
    """The name of the kind in the part's own format."""
    value: Json
    """The whole part, verbatim."""

    @model_validator(mode="before")
    @classmethod
    def _keep_unknown(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind", "opaque") != "opaque":
            return {"type": data["kind"] if isinstance(data["kind"], str) else None, "value": data}
        return data


_KINDS = frozenset({"text", "think", "image", "audio", "video", "file"})


def _kind_of(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) and kind in _KINDS else "opaque"


Part: TypeAlias = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ThinkPart, Tag("think")]
    | Annotated[ImagePart, Tag("image")]
    | Annotated[AudioPart, Tag("audio")]
    | Annotated[VideoPart, Tag("video")]
    | Annotated[FilePart, Tag("file")]
    | Annotated[OpaquePart, Tag("opaque")],
    Discriminator(_kind_of),
]
"""A part of a content or of a reasoning. `kind` says which; a part of an unknown kind is read as an OpaquePart."""
