"""Content blocks, both ways. A block of an unknown type is kept whole.

LangChain accepts several forms of a block: its own standard, an older form with a `source_type`, and the forms of
OpenAI and Anthropic. The residual of a part names the form (`form`), and the block comes back in it.
"""

from __future__ import annotations

from collections.abc import Callable

from chatledger.errors import DecodeError
from chatledger.formats.wire.fields import object_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import opaque
from chatledger.formats.wire.residual import FORM, KEYS, keep_deep, nested, restore_deep
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

BARE = "bare"
"""The form of a text in the list without a block around it."""
THINKING = "thinking"
"""The form of `{"type": "thinking", "thinking": …, "signature": …}`, as Anthropic has it."""
SUMMARY = "summary"
"""The form of `{"type": "reasoning", "summary": […], "encrypted_content": …}`, as OpenAI has it."""
LENGTHS = "lengths"
"""Residual of a summary of several texts: their lengths, to split the joined text again."""
CONVERSE = "reasoning_content"
"""The form of `{"type": "reasoning_content", "reasoning_content": {"text": …, "signature": …}}`, as Bedrock has it."""
SOURCE_TYPE = "source_type"
"""The form of LangChain's older blocks of media."""
SOURCE = "source"
"""The form of Anthropic's images and documents."""

_SIGNATURES = ("extras.signature", "extras.encrypted_content", "encrypted_content", "signature")
"""The places of a signature in a standard block of reasoning, as forms; the first is the usual one."""
_BETWEEN = "\n\n"
_OPENAI_FORMS = ("image_url", "bare-url", "input_audio", "openai-file")
_MEDIA: dict[str, type[ImagePart | AudioPart | VideoPart | FilePart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
    "file": FilePart,
}

Block = dict[str, JsonValue]
Read = tuple[Part, dict[str, JsonValue]]
"""A part and the beginning of its residual."""


def read_block(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient rules keep a malformed block whole, like a block of an unknown type.

    Raises DecodeError. A value that is neither a block nor a text raises it at every level.
    """
    if isinstance(value, str):
        return TextPart(text=value), {FORM: BARE}
    if not isinstance(value, dict):
        raise wrong(path, "a block or text", value)
    kind = value.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        part, residual = (opaque(value), {}) if reader is None else reader(value, path)
    except DecodeError:
        if not lenient:
            raise
        part, residual = opaque(value), {}
    if isinstance(part, OpaquePart):
        return part, None
    encoded = _encoded(part, residual)
    assert isinstance(encoded, dict)
    return part, {**residual, **(keep_deep(value, encoded) or {})} or None


def write_block(part: Part, residual: JsonValue = None) -> JsonValue:
    """LangChain's form of the part; None for a medium without a URL, data and an id."""
    if isinstance(part, OpaquePart):
        return part.value
    encoded = _encoded(part, residual if isinstance(residual, dict) else {})
    if not isinstance(encoded, dict):
        return encoded
    keys = nested(residual, KEYS)
    if isinstance(keys, list) and not encoded.keys() <= set(keys):
        return encoded  # the residual of another block: a program edited the message
    return restore_deep(encoded, residual)


def _encoded(part: Part, residual: Block) -> JsonValue:
    form = residual.get(FORM)
    if isinstance(part, TextPart):
        return part.text if form == BARE else {"type": "text", "text": part.text}
    if isinstance(part, ThinkPart):
        return _thought_block(part, form, residual.get(LENGTHS))
    if not isinstance(part, MediaPart):
        return None
    return _foreign_medium(part, form) or _medium(part)


def _read_text(source: Block, path: str) -> Read:
    return TextPart(text=text_at(source, "text", path)), {}


# --- Reasoning --------------------------------------------------------------------------------------------------------


def _read_thinking(source: Block, path: str) -> Read:
    signature = optional_text_at(source, "signature", path)
    return ThinkPart(text=text_at(source, "thinking", path), signature=signature), {FORM: THINKING}


def _read_converse(source: Block, path: str) -> Read:
    content = object_at(source, CONVERSE, path)
    path = f"{path}.{CONVERSE}"
    signature = optional_text_at(content, "signature", path)
    return ThinkPart(text=text_at(content, "text", path), signature=signature), {FORM: CONVERSE}


def _read_reasoning(source: Block, path: str) -> Read:
    """Reasoning in LangChain's standard, or a reasoning item of OpenAI's with its summary."""
    if "reasoning" not in source and isinstance(source.get("summary"), list):
        return _read_summary(source, path)
    text = text_at(source, "reasoning", path)
    for form in _SIGNATURES:
        signature = nested(source, *form.split("."))
        if isinstance(signature, str):
            return ThinkPart(text=text, signature=signature), {} if form == _SIGNATURES[0] else {FORM: form}
    return ThinkPart(text=text), {}


def _read_summary(source: Block, path: str) -> Read:
    entries, texts = source["summary"], []
    assert isinstance(entries, list)
    for idx, entry in enumerate(entries):
        text = nested(entry, "text")
        if not isinstance(text, str):
            raise DecodeError(f"{path}.summary[{idx}].text", "expected text")
        texts.append(text)
    signature = optional_text_at(source, "encrypted_content", path)
    lengths: Block = {LENGTHS: [len(text) for text in texts]} if len(texts) != 1 else {}
    return ThinkPart(text=_BETWEEN.join(texts), signature=signature), {FORM: SUMMARY, **lengths}


def _thought_block(part: ThinkPart, form: JsonValue, lengths: JsonValue) -> Block:
    signature = part.signature
    if form == THINKING:
        return {"type": THINKING, THINKING: part.text, **_given(signature=signature)}
    if form == CONVERSE:
        return {"type": CONVERSE, CONVERSE: {"text": part.text, **_given(signature=signature)}}
    if form == SUMMARY:
        summary: JsonValue = [{"type": "summary_text", "text": text} for text in _cut(part.text, lengths)]
        return {"type": "reasoning", "summary": summary, **_given(encrypted_content=signature)}
    block: Block = {"type": "reasoning", "reasoning": part.text}
    if signature is None:
        return block
    *around, key = (form if form in _SIGNATURES else _SIGNATURES[0]).split(".")
    return {**block, around[0]: {key: signature}} if around else {**block, key: signature}


def _cut(text: str, lengths: JsonValue) -> list[str]:
    """The texts of a summary; a single one if the lengths do not fit because a program edited the text."""
    if not isinstance(lengths, list) or not all(type(length) is int and length >= 0 for length in lengths):
        return [text]
    texts, start = [], 0
    for length in lengths:
        texts.append(text[start : start + length])
        start += length + len(_BETWEEN)
    return texts if _BETWEEN.join(texts) == text else [text]


# --- Media ------------------------------------------------------------------------------------------------------------


def _read_medium(source: Block, path: str) -> Read:
    """A medium in LangChain's standard form, the older form, or Anthropic's form."""
    kind = _MEDIA[source["type"]]
    if kind is FilePart and isinstance(source.get("file"), dict):
        return _read_openai_file(source, path)
    if kind is ImagePart and isinstance(source.get(SOURCE), dict):
        return _read_source(source, path)
    if SOURCE_TYPE in source:
        url, data, mime_type, id_ = (optional_text_at(source, key, path) for key in ("url", "data", "mime_type", "id"))
        sent = kind(url=url, data=data, mime_type=mime_type, id=id_ if source[SOURCE_TYPE] == "id" else None)
        _require_address(sent, path)
        return sent, {FORM: SOURCE_TYPE}
    url, data, mime_type, id_ = (
        optional_text_at(source, key, path) for key in ("url", "base64", "mime_type", "file_id")
    )
    name, detail = nested(source, "extras", "filename"), nested(source, "extras", "detail")
    part = kind(
        url=url,
        data=data,
        mime_type=mime_type,
        id=id_,
        name=name if isinstance(name, str) else None,
        extras={"detail": detail} if kind is ImagePart and isinstance(detail, str) else None,
    )
    _require_address(part, path)
    return part, {}


def _require_address(part: MediaPart, path: str) -> None:
    if part.url is None and part.data is None and part.id is None:
        raise DecodeError(path, "missing: an image, audio, video or file needs a url, data or an id")


def _medium(part: MediaPart) -> JsonValue:
    if part.url is None and part.data is None and part.id is None:
        return None
    kind = next(name for name, of in _MEDIA.items() if isinstance(part, of))
    detail = (part.extras or {}).get("detail") if isinstance(part, ImagePart) else None
    extras = _given(filename=part.name, detail=detail if isinstance(detail, str) else None)
    address = _given(url=part.url, base64=part.data, file_id=part.id, mime_type=part.mime_type)
    return {"type": kind, **address, **({"extras": extras} if extras else {})}


def _foreign_medium(part: MediaPart, form: JsonValue) -> JsonValue:
    """The medium in another form than the standard; None if that form can no longer hold all values."""
    encoded = _in_form(part, form)
    if encoded is None or form not in (SOURCE_TYPE, SOURCE, *_OPENAI_FORMS):
        return None
    try:
        back, _ = _READERS[str(encoded["type"])](encoded, "")
    except DecodeError:
        return None
    return encoded if back == part else None


def _in_form(part: MediaPart, form: JsonValue) -> Block | None:
    kind = next(name for name, of in _MEDIA.items() if isinstance(part, of))
    if form == SOURCE_TYPE:
        source_type = "id" if part.id is not None else "url" if part.url is not None else "base64"
        address = _given(url=part.url, data=part.data, mime_type=part.mime_type, id=part.id)
        return {"type": kind, SOURCE_TYPE: source_type, **address}
    if form == SOURCE:
        return _with_source(part)
    if form == "bare-url":
        return None if part.url is None else {"type": "image_url", "image_url": part.url}
    if form == "image_url":
        detail = (part.extras or {}).get("detail")
        image: Block = {"url": part.url, **_given(detail=detail if isinstance(detail, str) else None)}
        return {"type": "image_url", "image_url": image}
    if form == "input_audio":
        audio = _given(data=part.data, format=(part.mime_type or "").removeprefix("audio/"))
        return {"type": "input_audio", "input_audio": audio}
    if form == "openai-file":
        return {"type": "file", "file": _given(file_data=part.url or part.data, file_id=part.id, filename=part.name)}
    return None


def _with_source(part: MediaPart) -> Block:
    kind = "image" if isinstance(part, ImagePart) else "document"
    if part.data is not None:
        source = _given(type="base64", media_type=part.mime_type, data=part.data)
    elif part.url is not None:
        source = _given(type="url", url=part.url)
    else:
        source = _given(type="file", file_id=part.id)
    return {"type": kind, SOURCE: source, **_given(title=part.name)}


def _read_source(source: Block, path: str) -> Read:
    """Anthropic's images and documents; a document of another kind is kept whole."""
    origin = object_at(source, SOURCE, path)
    path = f"{path}.{SOURCE}"
    kind = ImagePart if source["type"] == "image" else FilePart
    name = optional_text_at(source, "title", path) if kind is FilePart else None
    if origin.get("type") == "base64":
        mime_type = optional_text_at(origin, "media_type", path)
        return kind(data=text_at(origin, "data", path), mime_type=mime_type, name=name), {FORM: SOURCE}
    if origin.get("type") == "url":
        return kind(url=text_at(origin, "url", path), name=name), {FORM: SOURCE}
    if origin.get("type") == "file":
        return kind(id=text_at(origin, "file_id", path), name=name), {FORM: SOURCE}
    return opaque(source), {}


def _read_document(source: Block, path: str) -> Read:
    return _read_source(source, path) if isinstance(source.get(SOURCE), dict) else (opaque(source), {})


def _read_image_url(source: Block, path: str) -> Read:
    if isinstance(source.get("image_url"), str):
        return ImagePart(url=text_at(source, "image_url", path)), {FORM: "bare-url"}
    image = object_at(source, "image_url", path)
    detail = optional_text_at(image, "detail", f"{path}.image_url")
    extras = None if detail is None else {"detail": detail}
    return ImagePart(url=text_at(image, "url", f"{path}.image_url"), extras=extras), {FORM: "image_url"}


def _read_input_audio(source: Block, path: str) -> Read:
    audio = object_at(source, "input_audio", path)
    path = f"{path}.input_audio"
    format_ = text_at(audio, "format", path)
    return AudioPart(data=text_at(audio, "data", path), mime_type=f"audio/{format_}"), {FORM: "input_audio"}


def _read_openai_file(source: Block, path: str) -> Read:
    file, path = object_at(source, "file", path), f"{path}.file"
    data, id_, name = (optional_text_at(file, key, path) for key in ("file_data", "file_id", "filename"))
    where = {"url": data} if data is not None and data.startswith("data:") else {"data": data}
    part = FilePart(**where, id=id_, name=name)
    _require_address(part, path)
    return part, {FORM: "openai-file"}


def _given(**fields: JsonValue) -> Block:
    return {key: value for key, value in fields.items() if value is not None}


_READERS: dict[str, Callable[[Block, str], Read]] = {
    "text": _read_text,
    "thinking": _read_thinking,
    "reasoning": _read_reasoning,
    CONVERSE: _read_converse,
    "document": _read_document,
    "image_url": _read_image_url,
    "input_audio": _read_input_audio,
    **dict.fromkeys(_MEDIA, _read_medium),
}
