"""What the parts of all formats share: their classes, data URIs, which are URLs that hold a medium, and signatures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from chatledger.formats.wire.residual import nested
from chatledger.models import (
    AudioPart,
    FilePart,
    ImagePart,
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)
from chatledger.models.json import JsonValue

Medium: TypeAlias = ImagePart | AudioPart | VideoPart | FilePart
FAMILIES: dict[str, type[Medium]] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}
"""The classes of media by the first word of their type."""


def class_of(mime_type: str | None) -> type[Medium]:
    return FAMILIES.get((mime_type or "").partition("/")[0], FilePart)


def opaque(value: JsonValue, key: str = "type") -> OpaquePart:
    """A value that is kept whole; `key` is the key of its kind."""
    kind = nested(value, key)
    return OpaquePart(type=kind if isinstance(kind, str) else None, value=value)


def text_alone(parts: list[Part]) -> str | list[Part] | None:
    """A single text as plain text; None for no content."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return parts or None


def thoughts_of(reasoning: str | list[Part] | None) -> list[ThinkPart]:
    """The field `reasoning` as thoughts."""
    if isinstance(reasoning, str):
        return [ThinkPart(text=reasoning)]
    as_thoughts = (ThinkPart(text=part.text) if isinstance(part, TextPart) else part for part in reasoning or ())
    return [part for part in as_thoughts if isinstance(part, ThinkPart)]


def by_index(read: Iterable[tuple[Part, JsonValue]]) -> tuple[list[Part], dict[str, JsonValue]]:
    """The parts that were read, and by index the residuals of those that have one."""
    pairs = list(read)
    return [part for part, _ in pairs], {str(index): residual for index, (_, residual) in enumerate(pairs) if residual}


# --- Data -------------------------------------------------------------------------------------------------------------

URL_SAFE = str.maketrans("+/", "-_")
FROM_URL_SAFE = str.maketrans("-_", "+/")
"""Between the two spellings of base64."""


def is_data_uri(url: str | None) -> bool:
    return url is not None and url.startswith("data:")


def split_data_uri(url: str) -> tuple[str, str] | None:
    """(mime type, base64 data) of a data URI; None if it is not one in base64."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").split(";")[0], data


def data_uri(part: MediaPart) -> str | None:
    """The part as a data URI; None for any other URL, and for data without a type."""
    if is_data_uri(part.url):
        return part.url
    if part.data is None or part.mime_type is None:
        return None
    return f"data:{part.mime_type};base64,{part.data}"


# --- Signatures -------------------------------------------------------------------------------------------------------
# Which provider signed a thought. It checks its signature and takes it back; every other provider refuses it.
#
# A format that stands in front of several providers keeps the name of the signer in the `extras` of the thought, under
# `provider`, and the id that this provider knows the thought by under `id`. A format of one provider needs no such
# word.

PROVIDER = "provider"
ID = "id"
ANTHROPIC = "anthropic"
GOOGLE = "google"
OPENAI = "openai"
_SIGNERS = {"anthropic": ANTHROPIC, "openai-responses": OPENAI}
"""The formats behind which one provider stands, with its name."""


def signed_by(provider: str | None, id_: str | None = None) -> dict[str, Any] | None:
    """The extras of a thought; None if neither is known."""
    names = {PROVIDER: provider, ID: id_}
    return {key: value for key, value in names.items() if value is not None} or None


def signer_of(part: ThinkPart, source_format: str | None) -> str | None:
    """The provider that signed a thought of a message in `source_format`; None if nobody says."""
    provider = nested(part.extras, PROVIDER)
    return provider if isinstance(provider, str) else _SIGNERS.get(source_format or "")


def id_of(part: ThinkPart) -> str | None:
    """The id that the signer knows the thought by; None if the thought does not say it."""
    id_ = nested(part.extras, ID)
    return id_ if isinstance(id_, str) else None
