"""Parts of the content, both ways. Parts without a class of ours are kept whole, in their place: sources, data, files
of the reasoning, custom and steering parts, tools that the provider ran itself, and unknown ones.
"""

from __future__ import annotations

from chatledger.errors import DecodeError
from chatledger.formats.ai_sdk.names import FILE, REASONING, TEXT, Source
from chatledger.formats.wire.fields import as_object, optional_text_at, text_at
from chatledger.formats.wire.parts import (
    ANTHROPIC,
    FAMILIES,
    GOOGLE,
    OPENAI,
    PROVIDER,
    Medium,
    class_of,
    data_uri,
    id_of,
    opaque,
    signed_by,
    split_data_uri,
)
from chatledger.formats.wire.residual import keep, nested, restore
from chatledger.models import AudioPart, ImagePart, MediaPart, OpaquePart, Part, TextPart, ThinkPart, VideoPart
from chatledger.models.json import JsonValue

_PROVIDER_METADATA = "providerMetadata"
_SIGNATURES = {ANTHROPIC: "signature", OPENAI: "reasoningEncryptedContent", GOOGLE: "thoughtSignature"}
"""The key of a provider's metadata that holds its signature of a thought."""
_IDS = {OPENAI: "itemId"}
"""The key that holds the provider's id of a thought."""
_WORDS: tuple[tuple[type[Medium], str], ...] = ((ImagePart, "image"), (AudioPart, "audio"), (VideoPart, "video"))
_ANY_FILE = "application/octet-stream"


def read_part(value: JsonValue, path: str, *, of_assistant: bool, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient rules keep a malformed part whole."""
    try:
        source = as_object(value, path)
        kind = text_at(source, "type", path)
        part = _read_known(source, kind, path, of_assistant=of_assistant)
    except DecodeError:
        if not lenient:
            raise
        part = None
    if part is None:
        return opaque(value), None
    return part, keep(source, encoded_part(part, of_assistant=of_assistant) or {})


def write_part(part: Part, residual: JsonValue, *, of_assistant: bool) -> JsonValue:
    """The part in this format; None if it cannot hold it."""
    if isinstance(part, OpaquePart):
        return part.value
    encoded = encoded_part(part, of_assistant=of_assistant)
    return None if encoded is None else restore(encoded, residual)


def encoded_part(part: Part, *, of_assistant: bool) -> Source | None:
    """The part before its residual is put back."""
    done: Source = {"state": "done"} if of_assistant else {}
    if isinstance(part, TextPart):
        return {"type": TEXT, "text": part.text, **done}
    if isinstance(part, ThinkPart) and of_assistant:
        return {"type": REASONING, "text": part.text, **_signed(part), **done}
    return _encoded_file(part) if isinstance(part, MediaPart) else None


def _read_known(source: Source, kind: str, path: str, *, of_assistant: bool) -> Part | None:
    if kind == TEXT:
        return TextPart(text=text_at(source, "text", path))
    if kind == REASONING and of_assistant:
        return _read_thought(text_at(source, "text", path), source.get(_PROVIDER_METADATA))
    if kind == FILE:
        media_type = text_at(source, "mediaType", path)
        fields = {
            "url": text_at(source, "url", path),
            "mime_type": None if media_type in FAMILIES else media_type,
            "name": optional_text_at(source, "filename", path),
        }
        return class_of(media_type).model_validate(fields)
    return None


# --- Reasoning --------------------------------------------------------------------------------------------------------


def _read_thought(text: str, metadata: JsonValue) -> ThinkPart:
    for signer, key in _SIGNATURES.items():
        signature, id_ = nested(metadata, signer, key), nested(metadata, signer, _IDS.get(signer, ""))
        known = [value if isinstance(value, str) else None for value in (signature, id_)]
        if known != [None, None]:
            return ThinkPart(text=text, signature=known[0], extras=signed_by(signer, known[1]))
    return ThinkPart(text=text)


def _signed(part: ThinkPart) -> Source:
    """The provider's metadata of a thought; empty if nobody knows the provider, which alone takes a signature back."""
    signer = nested(part.extras, PROVIDER)
    if not isinstance(signer, str) or signer not in _SIGNATURES:
        return {}
    known = {_IDS.get(signer, ""): id_of(part) if signer in _IDS else None, _SIGNATURES[signer]: part.signature}
    metadata: JsonValue = {key: value for key, value in known.items() if value is not None}
    return {_PROVIDER_METADATA: {signer: metadata}} if metadata else {}


# --- Files ------------------------------------------------------------------------------------------------------------


def _encoded_file(part: MediaPart) -> Source | None:
    """A file needs an address, which may be a data URI, and a type; the first word of a type will do."""
    media_type = part.mime_type or _type_of(part)
    url = part.url if part.data is None else data_uri(part.model_copy(update={"mime_type": media_type}))
    if url is None:
        return None
    name: Source = {} if part.name is None else {"filename": part.name}
    return {"type": FILE, "mediaType": media_type, **name, "url": url}


def _type_of(part: MediaPart) -> str:
    split = None if part.url is None else split_data_uri(part.url)
    if split is not None and split[0]:
        return split[0]
    return next((word for cls, word in _WORDS if isinstance(part, cls)), _ANY_FILE)
