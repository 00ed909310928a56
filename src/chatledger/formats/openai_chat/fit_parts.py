"""Parts of other origin as parts that chat completions can say in the message's role, and what that loses."""

from __future__ import annotations

from collections.abc import Iterator

from chatledger.formats.openai_chat import losses
from chatledger.formats.openai_chat.losses import LossLog
from chatledger.formats.openai_chat.media import data_uri, is_data_uri, split_data_uri
from chatledger.formats.openai_chat.parts import write_part
from chatledger.models import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, Part, TextPart, ThinkPart

_FILE_ID_FORMATS = (None, "openai-responses")
"""Whose file ids mean something here: an upload belongs to the provider that took it."""


def fit_part(part: Part, *, role: str, source_format: str | None, path: str, log: LossLog) -> Part | None:
    """The part as it can be said; None if it cannot, with the loss noted."""
    if isinstance(part, (TextPart, ThinkPart, OpaquePart)):
        note_unsaid(part, path, log)
        return part if isinstance(part, TextPart) else None
    fitted = _fit_medium(part, source_format, path, log) if role == "user" else None
    if fitted is None or write_part(fitted) is None:
        log.add(losses.MEDIA, path)
        return None
    note_unsaid(fitted, path, log)
    return fitted


def note_unsaid(part: Part, path: str, log: LossLog) -> None:
    """The losses of a part as it is: all of it, or the fields that chat completions have no place for."""
    if isinstance(part, ThinkPart):
        log.add(losses.REASONING, path)
        if part.signature is not None:
            log.add(losses.SIGNATURE, f"{path}.signature")
    elif isinstance(part, OpaquePart):
        log.add(losses.OPAQUE, path)
    elif write_part(part) is None:
        log.add(losses.MEDIA, path)
    else:
        for name in _unsaid_fields(part):
            log.add(losses.FIELD, f"{path}.{name}")


def _fit_medium(part: Part, source_format: str | None, path: str, log: LossLog) -> Part | None:
    if isinstance(part, AudioPart):
        return _fit_audio(part)
    if isinstance(part, FilePart) and part.id is not None and source_format not in _FILE_ID_FORMATS:
        if part.url is None and part.data is None:
            return None
        log.add(losses.FIELD, f"{path}.id")
        return part.model_copy(update={"id": None})
    return part


def _fit_audio(part: AudioPart) -> AudioPart | None:
    """Audio has a place for data of a known format only; a data URI has both."""
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    if split is not None:
        mime_type, data = split
        part = part.model_copy(update={"url": None, "data": data, "mime_type": mime_type or part.mime_type})
    return part if part.mime_type else None


def _unsaid_fields(part: TextPart | MediaPart) -> Iterator[str]:
    if _unsaid_extras(part):
        yield "extras"
    if isinstance(part, (ImagePart, AudioPart)):
        yield from (name for name in ("id", "name") if getattr(part, name) is not None)
    if isinstance(part, (ImagePart, FilePart)) and part.mime_type is not None and data_uri(part) is None:
        yield "mime_type"
    if isinstance(part, ImagePart) and part.url is not None and part.data is not None:
        yield "data"
    if isinstance(part, FilePart) and part.url is not None and not is_data_uri(part.url):
        yield "url"
    if isinstance(part, AudioPart) and part.url is not None:
        yield "url"


def _unsaid_extras(part: TextPart | MediaPart) -> bool:
    """Of extras only the detail of an image has a place."""
    extras = dict(part.extras or {})
    if isinstance(part, ImagePart) and isinstance(extras.get("detail"), str):
        del extras["detail"]
    return bool(extras)
