"""Content parts, for messages whose content is more than one text.

`kind` tells them apart. A kind that this release does not know is kept whole in an OpaquePart, so that a newer
writer's part survives an older reader.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Tag, model_validator

from chatledger.models.base import Model, Text
from chatledger.models.json import Json, JsonObject


class TextPart(Model):
    kind: Literal["text"] = "text"
    text: Text
    extras: JsonObject | None = None


class ThinkPart(Model):
    """A model's reasoning. The signature belongs to the text byte for byte: its provider checks it."""

    kind: Literal["think"] = "think"
    text: Text
    signature: Text | None = None
    extras: JsonObject | None = None


class MediaPart(Model):
    """The address of a medium (`url`, data URIs included) or its content (`data`, base64), as the source gave it."""

    url: Text | None = None
    data: Text | None = None
    mime_type: Text | None = None
    name: Text | None = None
    id: Text | None = None
    extras: JsonObject | None = None


class ImagePart(MediaPart):
    kind: Literal["image"] = "image"


class AudioPart(MediaPart):
    kind: Literal["audio"] = "audio"


class VideoPart(MediaPart):
    kind: Literal["video"] = "video"


class FilePart(MediaPart):
    kind: Literal["file"] = "file"


class OpaquePart(Model):
    """A part of unknown kind, verbatim. `type` is its name in its own format."""

    kind: Literal["opaque"] = "opaque"
    type: Text | None = None
    value: Json

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
