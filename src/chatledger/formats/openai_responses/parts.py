"""Content parts, both ways: input of the model (`input_…`), its output (`output_text`, `refusal`), and any other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.parts import audio_mime_type, audio_object
from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at
from chatledger.formats.wire.parts import data_uri, is_data_uri, opaque
from chatledger.formats.wire.residual import FORM, keep_envelope, nested, restore_envelope
from chatledger.models import AudioPart, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue

Source = dict[str, JsonValue]

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""The types of parts that are a text, each with the key of the text."""


def read_part(value: JsonValue, path: str, role: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient rules keep a malformed part whole, as one of an unknown type."""
    source = as_object(value, path)
    kind = source.get("type")
    reader = _READERS.get(kind, _opaque) if isinstance(kind, str) else _opaque
    try:
        part = reader(source, path)
    except DecodeError:
        if not lenient:
            raise
        part = _opaque(source, path)
    form = kind if isinstance(part, TextPart) and kind != _usual(role) else None
    encoded = _encoded(part, role, form)
    return part, None if encoded is None else keep_envelope(source, encoded, form)


def write_part(part: Part, role: str, residual: JsonValue = None) -> JsonValue:
    """The part in the form of the role; None if there is none."""
    if isinstance(part, OpaquePart):
        return part.value
    encoded = _encoded(part, role, nested(residual, FORM))
    return None if encoded is None else restore_envelope(encoded, residual)


def _usual(role: str) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _encoded(part: Part, role: str, form: JsonValue) -> Source | None:
    if isinstance(part, TextPart):
        kind = form if isinstance(form, str) and form in _TEXTS else _usual(role)
        wire = {"type": kind, _TEXTS[kind]: part.text}
        return {**wire, "annotations": []} if kind == "output_text" else wire
    if isinstance(part, ImagePart):
        return _image(part)
    if isinstance(part, AudioPart):
        audio = audio_object(part)
        return None if audio is None else {"type": "input_audio", "input_audio": audio}
    return _file(part) if isinstance(part, FilePart) else None


def _image(part: ImagePart) -> Source | None:
    url = part.url if part.url is not None else data_uri(part)
    if url is None and part.id is None:
        return None
    detail = (part.extras or {}).get("detail")
    fields = {"image_url": url, "file_id": part.id}
    wire = {"type": "input_image", "detail": detail if isinstance(detail, str) else "auto"}
    return wire | {key: value for key, value in fields.items() if value is not None}


def _file(part: FilePart) -> Source | None:
    """A file with its data, its id and its URL, if it has them."""
    data = data_uri(part) or part.data
    url = part.url if part.url != data else None
    fields = {"file_data": data, "file_id": part.id, "file_url": url, "filename": part.name}
    if data is None and part.id is None and url is None:
        return None
    return {"type": "input_file"} | {key: value for key, value in fields.items() if value is not None}


def _opaque(source: Source, path: str) -> Part:
    return opaque(source)


def _read_text(source: Source, path: str) -> Part:
    return TextPart(text=text_at(source, _TEXTS[source["type"]], path))


def _read_image(source: Source, path: str) -> Part:
    """An image. An image without a URL and an id cannot be shown, and is kept whole."""
    url, id_, detail = (optional_text_at(source, key, path) for key in ("image_url", "file_id", "detail"))
    if url is None and id_ is None:
        return _opaque(source, path)
    return ImagePart(url=url, id=id_, extras=None if detail in (None, "auto") else {"detail": detail})


def _read_audio(source: Source, path: str) -> Part:
    audio = object_at(source, "input_audio", path)
    form = optional_text_at(audio, "format", f"{path}.input_audio")
    data = text_at(audio, "data", f"{path}.input_audio")
    return AudioPart(data=data, mime_type=None if form is None else audio_mime_type(form))


def _read_file(source: Source, path: str) -> Part:
    keys = ("file_data", "file_id", "file_url", "filename")
    data, id_, url, name = (optional_text_at(source, key, path) for key in keys)
    if data is None and id_ is None and url is None:
        return _opaque(source, path)
    if url is None and data is not None and is_data_uri(data):
        return FilePart(url=data, id=id_, name=name)
    return FilePart(url=url, data=data, id=id_, name=name)


_READERS: dict[str, Callable[[Source, str], Part]] = {
    **dict.fromkeys(_TEXTS, _read_text),
    "input_image": _read_image,
    "input_audio": _read_audio,
    "input_file": _read_file,
}


# --- Reasoning --------------------------------------------------------------------------------------------------------
# Reasoning, both ways: an item with its summary, its text and its encrypted content is one thought with a signature.
#
# The texts are joined by a blank line. If there are several, the residual keeps their lengths, to split them again.

_SUMMARY, _CONTENT = "summary", "content"
_TYPES = {_SUMMARY: "summary_text", _CONTENT: "reasoning_text"}
_BETWEEN = "\n\n"


def read_thought(source: dict[str, JsonValue]) -> tuple[ThinkPart, dict[str, JsonValue]]:
    """The thought, and the lengths of its texts for the residual, which also keeps other values."""
    summary, content = (_texts(source.get(key), kind) for key, kind in _TYPES.items())
    signature = source.get("encrypted_content")
    thought = ThinkPart(
        text=_BETWEEN.join([*summary, *content]), signature=signature if isinstance(signature, str) else None
    )
    if len(summary) < 2 and not content:
        return thought, {}
    return thought, {_SUMMARY: [len(text) for text in summary], _CONTENT: [len(text) for text in content]}


def write_thought(thought: ThinkPart, lengths: JsonValue = None) -> dict[str, JsonValue]:
    summary, content = _cut(thought.text, lengths)
    wire: dict[str, JsonValue] = {"type": "reasoning", _SUMMARY: _entries(_SUMMARY, summary)}
    if content:
        wire[_CONTENT] = _entries(_CONTENT, content)
    if thought.signature is not None:
        wire["encrypted_content"] = thought.signature
    return wire


def _texts(entries: JsonValue, kind: str) -> list[str]:
    """The texts of a list of plain entries; none if the list holds anything else."""
    if not isinstance(entries, list) or not all(_is_text(entry, kind) for entry in entries):
        return []
    return [entry["text"] for entry in entries]


def _is_text(entry: JsonValue, kind: str) -> bool:
    return isinstance(entry, dict) and entry.get("type") == kind and isinstance(entry.get("text"), str)


def _entries(key: str, texts: list[str]) -> list[JsonValue]:
    return [{"type": _TYPES[key], "text": text} for text in texts]


def _cut(text: str, lengths: JsonValue) -> tuple[list[str], list[str]]:
    """(summary, content). If the text was edited, so that the lengths do not fit, all of it is the summary."""
    wanted = [_lengths(lengths, key) for key in _TYPES]
    flat = [length for some in wanted for length in some]
    ends = list(accumulate(flat, lambda end, length: end + len(_BETWEEN) + length))
    texts = [text[end - length : end] for end, length in zip(ends, flat, strict=True)]
    if not flat or _BETWEEN.join(texts) != text:
        return [text] if text else [], []
    return texts[: len(wanted[0])], texts[len(wanted[0]) :]


def _lengths(lengths: JsonValue, key: str) -> list[int]:
    values = lengths.get(key) if isinstance(lengths, dict) else None
    known = isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
    return list(values) if known and values is not None else []
