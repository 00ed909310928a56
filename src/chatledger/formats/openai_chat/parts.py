"""Content parts, both ways. A part of an unknown type is kept whole.

Images have a URL, audio has data and a format, files have a data URI or an id.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType

from chatledger.errors import DecodeError
from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import data_uri, is_data_uri, opaque
from chatledger.formats.wire.residual import FORM, keep, keep_envelope, nested, restore, restore_envelope
from chatledger.models import AudioPart, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build
from chatledger.models.json import JsonValue

REFUSAL = "refusal"
THINKING = "thinking"
"""The form of `{"type": "thinking", "thinking": [{"type": "text", "text": …}]}`, as Mistral has it."""
THINKING_TEXT = "thinking-text"
"""The form of the same with a text instead of the list, and perhaps a signature beside it."""
BARE_URL = "bare-url"
"""The form of `{"type": "image_url", "image_url": "https://…"}`, which several providers accept."""
_MIME_TYPES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"}


def read_part(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient rules keep a malformed part whole, like a part of an unknown type."""
    source = as_object(value, path)
    kind = source.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        part, form = reader(source, path) if reader is not None else (opaque(source), None)
    except DecodeError:
        if not lenient:
            raise
        part, form = opaque(source), None
    encoded = _encoded(part, form)
    return part, None if encoded is None else keep_envelope(source, encoded, form)


def write_part(part: Part, residual: JsonValue = None) -> JsonValue:
    """The part in the form of chat completions; None if they have no such part."""
    if isinstance(part, OpaquePart):
        return part.value if isinstance(part.value, dict) else None
    encoded = _encoded(part, nested(residual, FORM))
    return None if encoded is None else restore_envelope(encoded, residual)


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
    """A file with its data, its id, or both; None for a file with only a URL."""
    data = data_uri(part) or part.data
    if data is None and part.id is None and part.url is not None:
        return None
    fields = {"file_data": data, "file_id": part.id, "filename": part.name}
    return {key: value for key, value in fields.items() if value is not None}


def _encoded(part: Part, form: JsonValue) -> dict[str, JsonValue] | None:
    if isinstance(part, TextPart):
        key = REFUSAL if form == REFUSAL else "text"
        return {"type": key, key: part.text}
    if isinstance(part, ThinkPart):
        return _encoded_thought(part, form)
    if isinstance(part, ImagePart):
        return _envelope("image_url", part.url if form == BARE_URL else image_object(part))
    if isinstance(part, AudioPart):
        return _envelope("input_audio", audio_object(part))
    if isinstance(part, FilePart):
        return _envelope("file", file_object(part))
    return None


def _encoded_thought(part: ThinkPart, form: JsonValue) -> dict[str, JsonValue] | None:
    if form == THINKING:
        return {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
    if form != THINKING_TEXT:
        return None
    signed = {} if part.signature is None else {"signature": part.signature}
    return {"type": "thinking", "thinking": part.text, **signed}


def _envelope(kind: str, value: JsonValue) -> dict[str, JsonValue] | None:
    return None if value is None else {"type": kind, kind: value}


def _read_text(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    return TextPart(text=text_at(source, "text", path)), None


def _read_refusal(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    return TextPart(text=text_at(source, REFUSAL, path)), REFUSAL


def _read_thinking(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    """Reasoning inside the content. The residual keeps the rest of its list, such as references."""
    thinking = source.get("thinking")
    if isinstance(thinking, str):
        signature = optional_text_at(source, "signature", path)
        return ThinkPart(text=thinking, signature=signature), THINKING_TEXT
    if not isinstance(thinking, list):
        raise wrong(f"{path}.thinking", "text or a list", thinking)
    texts = (chunk.get("text") for chunk in thinking if isinstance(chunk, dict))
    return ThinkPart(text="".join(text for text in texts if isinstance(text, str))), THINKING


def _read_image(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    if isinstance(source.get("image_url"), str):
        return ImagePart(url=source["image_url"]), BARE_URL
    image = object_at(source, "image_url", path)
    detail = optional_text_at(image, "detail", f"{path}.image_url")
    return ImagePart(
        url=text_at(image, "url", f"{path}.image_url"), extras=None if detail is None else {"detail": detail}
    ), None


def _read_audio(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    audio = object_at(source, "input_audio", path)
    audio_format = optional_text_at(audio, "format", f"{path}.input_audio")
    return AudioPart(
        data=text_at(audio, "data", f"{path}.input_audio"),
        mime_type=None if audio_format is None else audio_mime_type(audio_format),
    ), None


def _read_file(source: dict[str, JsonValue], path: str) -> tuple[Part, str | None]:
    file = object_at(source, "file", path)
    data, file_id, name = (optional_text_at(file, key, f"{path}.file") for key in ("file_data", "file_id", "filename"))
    where = {"url": data} if is_data_uri(data) else {"data": data}
    return FilePart(**where, id=file_id, name=name), None


_READERS: dict[str, Callable[[dict[str, JsonValue], str], tuple[Part, str | None]]] = {
    "text": _read_text,
    REFUSAL: _read_refusal,
    "thinking": _read_thinking,
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
}


# --- Calls ------------------------------------------------------------------------------------------------------------
# Tool calls, both ways: functions, custom tools with free text, the legacy `function_call`, and unknown types.

CUSTOM = "custom"
OTHER = "other"
"""The form of a call of an unknown type: the type serves as its name, the residual keeps the rest."""


def read_call(value: JsonValue, path: str) -> tuple[ToolCall, JsonValue]:
    """A call and its residual. A call without a `type` is a call of a function."""
    source = as_object(value, path)
    kind = optional_text_at(source, "type", path) or "function"
    if kind == "function":
        fields, form = _read_named(object_at(source, kind, path), "arguments", f"{path}.{kind}"), None
    elif kind == CUSTOM:
        fields, form = _read_named(object_at(source, kind, path), "input", f"{path}.{kind}"), CUSTOM
    else:
        fields, form = {"name": kind}, OTHER
    call = _checked({**fields, "id": optional_text_at(source, "id", path)})
    return call, keep_envelope(source, _encoded_call(call, form), form)


def write_call(call: ToolCall, residual: JsonValue = None) -> dict[str, JsonValue]:
    return restore_envelope(_encoded_call(call, nested(residual, FORM)), residual)


def read_function_call(value: JsonValue, path: str) -> tuple[ToolCall, JsonValue]:
    """The single call of a legacy message, which has no id and no envelope."""
    source = as_object(value, path)
    call = _checked(_read_named(source, "arguments", path))
    return call, keep(source, _named(call, "arguments"))


def write_function_call(call: ToolCall, residual: JsonValue = None) -> dict[str, JsonValue]:
    return restore(_named(call, "arguments"), residual)


def _read_named(source: dict[str, JsonValue], key: str, path: str) -> dict[str, JsonValue]:
    arguments = source.get(key)
    if arguments is not None and not isinstance(arguments, (str, dict)):
        raise wrong(f"{path}.{key}", "text, an object or null", arguments)
    return {"name": text_at(source, "name", path), "arguments": arguments}


def _checked(fields: dict[str, JsonValue]) -> ToolCall:
    """The call; if all fields are text or None, it needs no validation and no copy of a dict."""
    return build(ToolCall, fields) if _TEXT_OR_NONE.issuperset(map(type, fields.values())) else ToolCall(**fields)


_TEXT_OR_NONE = frozenset({str, NoneType})


def _encoded_call(call: ToolCall, form: JsonValue) -> dict[str, JsonValue]:
    id_: dict[str, JsonValue] = {} if call.id is None else {"id": call.id}
    if form == OTHER:
        return {**id_, "type": call.name}
    if form == CUSTOM:
        return {**id_, "type": CUSTOM, CUSTOM: _named(call, "input")}
    return {**id_, "type": "function", "function": _named(call, "arguments")}


def _named(call: ToolCall, key: str) -> dict[str, JsonValue]:
    return {"name": call.name, key: call.arguments}
