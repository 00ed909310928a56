"""Parts of other origin as parts that the API takes in the message's role."""

from __future__ import annotations

from chatledger.formats.openai_responses.parts import write_part
from chatledger.models import FilePart, ImagePart, MediaPart, Part, TextPart

_FILE_ID_FORMATS = (None, "openai-chat", "openai-responses")
"""Whose file ids mean something here: an upload belongs to the provider that took it."""
_SHOWN_TO = ("user", "tool")
"""The roles whose messages may hold images and files."""


def fit_part(part: Part, *, role: str, source_format: str | None) -> Part | None:
    """The part as it can be said; None if it cannot."""
    if isinstance(part, TextPart):
        return part
    if role not in _SHOWN_TO or not isinstance(part, (ImagePart, FilePart)):
        return None
    fitted = _with_own_id(part, source_format)
    return None if write_part(fitted, role) is None else fitted


def _with_own_id(part: MediaPart, source_format: str | None) -> Part:
    fitted = part if source_format in _FILE_ID_FORMATS else part.model_copy(update={"id": None})
    assert isinstance(fitted, (ImagePart, FilePart))
    return fitted
