"""The parts of an event's content, both ways. A part of another kind is kept whole, in its place."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from chatledger.errors import DecodeError
from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at
from chatledger.formats.wire.parts import (
    ANTHROPIC,
    FROM_URL_SAFE,
    GOOGLE,
    PROVIDER,
    URL_SAFE,
    Medium,
    class_of,
    signed_by,
)
from chatledger.formats.wire.residual import FORM, KEYS, keep_deep, nested, restore_deep
from chatledger.models import (
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
)
from chatledger.models.json import JsonValue

# The names that several modules of the format share, and the two spellings of keys.
#
# ADK writes its keys as `function_call`, or as `functionCall` if it dumps by alias. All keys of an event have the same
# spelling. The format works with the first; the residual of an event's first row records the second.

NAME = "google-adk"
Source = dict[str, JsonValue]

CAMEL = "camel"
"""The `form` of an event whose keys are spelled like `functionCall`."""

# The sections of a residual, which each hold `keys`, `extra` and `inner` as in `wire.residual`.
HEAD = "head"
"""Of the event around its parts; on the first row of each event."""
PARTS = "parts"
"""Of the parts of the content by index; on the row of a result those of the media beside the response."""
CALLS = "calls"
"""Of the calls by index."""
CALLS_AT = "calls_at"
"""The positions of the calls among the parts, if they are not the last ones."""
RESULT = "result"
"""Of the part that holds the result of a tool."""
RESPONSE = "response"
"""How the response of a tool spells the content: `json`, or `output` for the text under that key."""
REST_AT = "rest_at"
"""The positions of parts that stand in one event with results; on the row that holds them."""

AS_JSON = "json"
OUTPUT = "output"

USER = "user"
MODEL = "model"
"""The role of an assistant's content, and the author of an assistant without a name."""

METADATA = ("model_version", "finish_reason", "error_code", "error_message", "usage_metadata")
"""The keys of an event that are its `response_metadata`. All are texts but the last, which is an object."""

_KNOWN = (
    *METADATA,
    "content",
    "invocation_id",
    "author",
    "actions",
    "node_info",
    "id",
    "timestamp",
    "state_delta",
    "artifact_delta",
    "requested_auth_configs",
    "requested_tool_confirmations",
    "path",
    "parts",
    "role",
    "text",
    "thought",
    "thought_signature",
    "function_call",
    "function_response",
    "inline_data",
    "file_data",
    "args",
    "name",
    "response",
    "data",
    "mime_type",
    "display_name",
    "file_uri",
)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_CAMEL = {name: _camel(name) for name in _KNOWN}
_SNAKE = {camel: name for name, camel in _CAMEL.items()}


def spelled(encoded: Source, camel: bool) -> Source:
    """The object with its own keys in the spelling of the event. Objects inside it stay."""
    return {_CAMEL.get(key, key): value for key, value in encoded.items()} if camel else encoded


def view(source: Mapping[str, JsonValue], camel: bool) -> Mapping[str, JsonValue]:
    """The known keys of a source as the format names them."""
    return {_SNAKE[key]: value for key, value in source.items() if key in _SNAKE} if camel else source


def is_metadata(key: str, value: JsonValue) -> bool:
    """Whether an event has a place for this entry of `response_metadata`."""
    return key in METADATA and isinstance(value, dict if key == "usage_metadata" else str)


STANDARD = "standard"
"""The `form` of data in standard base64. ADK writes URL-safe base64 and reads both."""
_KINDS = (
    "text",
    "function_call",
    "function_response",
    "inline_data",
    "file_data",
    "executable_code",
    "executableCode",
    "code_execution_result",
    "codeExecutionResult",
    "tool_call",
    "toolCall",
    "tool_response",
    "toolResponse",
)
_MODELS = {"gemini": GOOGLE, "claude": ANTHROPIC}
"""Words in the names of models, and the providers that sign the thoughts of these models."""


def kind_of(value: JsonValue, camel: bool) -> str | None:
    """The single kind of content in a part; None if the part is not an object, or has no kind or several kinds."""
    known = view(value, camel) if isinstance(value, dict) else {}
    kinds = [kind for kind in _KINDS if known.get(kind) is not None]
    return kinds[0] if len(kinds) == 1 else None


def read_part(value: JsonValue, path: str, *, camel: bool, signer: str | None, lenient: bool) -> tuple[Part, JsonValue]:
    """A part other than a call or a result, and its residual. Lenient rules keep a malformed part whole."""
    try:
        return _read_known(as_object(value, path), path, camel, signer) or (opaque(value, camel), None)
    except DecodeError:
        if not lenient:
            raise
    return opaque(value, camel), None


def write_part(part: Part, residual: JsonValue, *, camel: bool) -> list[JsonValue]:
    """The part of an event, which may be null; nothing if an event cannot hold this one."""
    if isinstance(part, OpaquePart):
        return [part.value]
    encoded = _encoded(part, residual, camel)
    return [] if encoded is None else [restored(encoded, residual)]


def restored(encoded: Source, residual: JsonValue) -> Source:
    """The source. If an edit put another part in this place, its residual changes nothing."""
    keys = nested(residual, KEYS)
    if isinstance(keys, list) and not encoded.keys() <= set(keys):
        return encoded
    return restore_deep(encoded, residual)


def opaque(value: JsonValue, camel: bool) -> OpaquePart:
    return OpaquePart(type=kind_of(value, camel), value=value)


def _read_known(source: Source, path: str, camel: bool, signer: str | None) -> tuple[Part, JsonValue] | None:
    known, kind = dict(view(source, camel)), kind_of(source, camel)
    part: Part | None = None
    form: Source = {}
    if kind == "text":
        part = _read_text(known, path, signer)
    elif kind == "inline_data":
        part, form = _read_data(known, path, camel)
    elif kind == "file_data":
        part = _read_address(known, path, camel)
    if part is None:
        return None
    residual = {**form, **(keep_deep(source, _encoded(part, form, camel) or {}) or {})}
    return part, residual or None


def _read_text(known: Source, path: str, signer: str | None) -> Part:
    text = text_at(known, "text", path)
    if known.get("thought") is not True:
        return TextPart(text=text)
    signature = optional_text_at(known, "thought_signature", path)
    if signature is None:
        return ThinkPart(text=text)
    return ThinkPart(text=text, signature=_as_signed(signature, signer), extras=signed_by(signer))


def _read_data(known: Source, path: str, camel: bool) -> tuple[Medium, Source]:
    blob = dict(view(object_at(known, "inline_data", path), camel))
    path = f"{path}.inline_data"
    data, mime_type = text_at(blob, "data", path), optional_text_at(blob, "mime_type", path)
    fields = {
        "data": data.translate(FROM_URL_SAFE),
        "mime_type": mime_type,
        "name": optional_text_at(blob, "display_name", path),
    }
    return class_of(mime_type).model_validate(fields), {FORM: STANDARD} if "+" in data or "/" in data else {}


def _read_address(known: Source, path: str, camel: bool) -> Medium:
    file = dict(view(object_at(known, "file_data", path), camel))
    path = f"{path}.file_data"
    mime_type = optional_text_at(file, "mime_type", path)
    fields = {
        "url": text_at(file, "file_uri", path),
        "mime_type": mime_type,
        "name": optional_text_at(file, "display_name", path),
    }
    return class_of(mime_type).model_validate(fields)


def _encoded(part: Part, residual: JsonValue, camel: bool) -> Source | None:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, ThinkPart):
        signature = _as_sent(part.signature, nested(part.extras, PROVIDER))
        signed: Source = {} if signature is None else {"thought_signature": signature}
        return spelled({"text": part.text, "thought": True, **signed}, camel)
    return _medium(part, residual, camel) if isinstance(part, MediaPart) else None


def _medium(part: MediaPart, residual: JsonValue, camel: bool) -> Source | None:
    name: Source = {} if part.name is None else {"display_name": part.name}
    mime_type: Source = {} if part.mime_type is None else {"mime_type": part.mime_type}
    if part.data is not None:
        data = part.data if nested(residual, FORM) == STANDARD else part.data.translate(URL_SAFE)
        return spelled({"inline_data": spelled({"data": data, **name, **mime_type}, camel)}, camel)
    if part.url is None:
        return None
    return spelled({"file_data": spelled({**name, "file_uri": part.url, **mime_type}, camel)}, camel)


# --- Signatures -------------------------------------------------------------------------------------------------------


def signer_of_model(model_version: JsonValue) -> str | None:
    """The provider whose signatures an event of the model holds; None if it is unknown. Without a model it is Google,
    because ADK is Google's.
    """
    if model_version is None:
        return GOOGLE
    name = model_version.lower() if isinstance(model_version, str) else ""
    return next((signer for word, signer in _MODELS.items() if word in name), None)


def _as_signed(signature: str, signer: str | None) -> str:
    """The signature as its provider spells it. ADK has bytes instead: for Anthropic's, the bytes of its text."""
    if signer != ANTHROPIC:
        return signature
    try:
        text = base64.urlsafe_b64decode(signature).decode()
    except ValueError:
        return signature
    return text if _as_sent(text, signer) == signature else signature


def _as_sent(signature: str | None, signer: str | None) -> str | None:
    if signature is None or signer != ANTHROPIC:
        return signature
    return base64.urlsafe_b64encode(signature.encode(errors="surrogatepass")).decode()


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.translate(FROM_URL_SAFE), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
