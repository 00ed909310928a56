"""Parts of other origin as parts that chat completions can say in the message's role."""

from __future__ import annotations

from chatledger.formats.openai_chat.parts import THINKING, THINKING_TEXT, write_part
from chatledger.formats.wire.data_uris import split_data_uri
from chatledger.formats.wire.residual import FORM, nested
from chatledger.models import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue

_FILE_ID_FORMATS = (None, "openai-responses")
"""Whose file ids mean something here: an upload belongs to the provider that took it."""


def fit_part(part: Part, *, role: str, source_format: str | None) -> Part | None:
    """The part as it can be said; None if it cannot."""
    if isinstance(part, TextPart):
        return part
    if role != "user" or not isinstance(part, MediaPart):
        return None
    fitted = _fit_medium(part, source_format)
    return None if fitted is None or write_part(fitted) is None else fitted


def _fit_medium(part: MediaPart, source_format: str | None) -> Part | None:
    if isinstance(part, AudioPart):
        return _fit_audio(part)
    if isinstance(part, FilePart) and part.id is not None and source_format not in _FILE_ID_FORMATS:
        return None if part.url is None and part.data is None else part.model_copy(update={"id": None})
    return part if isinstance(part, (ImagePart, FilePart)) else None


def _fit_audio(part: AudioPart) -> AudioPart | None:
    """Audio has a place for data of a known format only; a data URI has both."""
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    if split is not None:
        mime_type, data = split
        part = part.model_copy(update={"url": None, "data": data, "mime_type": mime_type or part.mime_type})
    return part if part.mime_type else None


def is_as_read(part: Part, residual: JsonValue) -> bool:
    """Whether reading makes such a part: one that a program changed or put there may hold what is not written."""
    if isinstance(part, ThinkPart):
        return part.extras is None and _is_thought_as_read(part, nested(residual, FORM))
    if isinstance(part, OpaquePart):
        return True
    if isinstance(part, ImagePart):
        return (part.data, part.mime_type, part.name, part.id) == (None, None, None, None)
    if isinstance(part, AudioPart):
        return (part.url, part.name, part.id, part.extras) == (None, None, None, None)
    if isinstance(part, FilePart):
        return part.mime_type is None and part.extras is None
    return isinstance(part, TextPart) and part.extras is None


def _is_thought_as_read(part: ThinkPart, form: JsonValue) -> bool:
    return form == THINKING_TEXT or (form == THINKING and part.signature is None)
