"""What media look like in chat completions: images by URL, audio by data and format, files by data URI or id."""

from __future__ import annotations

from chatledger.formats.wire.data_uris import data_uri
from chatledger.models import AudioPart, FilePart, ImagePart
from chatledger.models.json import JsonValue

_MIME_TYPES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"}


def audio_mime_type(audio_format: str) -> str:
    return _MIME_TYPES.get(audio_format, f"audio/{audio_format}")


def audio_format(mime_type: str) -> str:
    return _AUDIO_FORMATS.get(mime_type, mime_type.removeprefix("audio/"))


def image_object(part: ImagePart) -> dict[str, JsonValue] | None:
    url = part.url if part.url is not None else data_uri(part)
    if url is None:
        return None
    detail = (part.extras or {}).get("detail")
    return {"url": url, "detail": detail} if isinstance(detail, str) else {"url": url}


def audio_object(part: AudioPart) -> dict[str, JsonValue] | None:
    if part.data is None:
        return None
    return (
        {"data": part.data} if part.mime_type is None else {"data": part.data, "format": audio_format(part.mime_type)}
    )


def file_object(part: FilePart) -> dict[str, JsonValue] | None:
    """A file by its data, its id, or both. One that is only a URL elsewhere cannot be said."""
    data = data_uri(part) or part.data
    if data is None and part.id is None and part.url is not None:
        return None
    said = {"file_data": data, "file_id": part.id, "filename": part.name}
    return {key: value for key, value in said.items() if value is not None}
