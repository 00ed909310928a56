"""Contents that are neither calls nor results, both ways. A content of an unknown type is kept whole, in its place.

The encoded objects have the keys that `Content.to_dict` writes, in its order and without the fields that are None.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats.wire.fields import as_object, optional_text_at, text_at
from chatledger.formats.wire.parts import (
    FAMILIES,
    OPENAI,
    Medium,
    by_index,
    data_uri,
    id_of,
    is_data_uri,
    opaque,
    signed_by,
)
from chatledger.formats.wire.residual import FORM, KEYS, keep, nested, restore
from chatledger.models import (
    FilePart,
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
)
from chatledger.models.json import JsonValue

# Names that several modules of the format share: of keys, of contents, of residual sections.

NAME = "agent-framework"
Source = dict[str, JsonValue]

TYPE = "type"
MESSAGE = "message"
CONTENTS = "contents"
AUTHOR = "author_name"
PROPERTIES = "additional_properties"

TEXT = "text"
THINKING = "text_reasoning"
DATA = "data"
URI = "uri"
CALL = "function_call"
RESULT = "function_result"

# The sections of a residual, besides `keys` and `extra` of `wire.residual` in each of them.
HEAD = "head"
"""Of the message around its contents; on the first row of each message."""
PARTS = "parts"
"""Of the contents that are parts, or of the items of a result, by index."""
CALLS = "calls"
"""Of the calls, by index."""
CALLS_AT = "calls_at"
"""The positions of the calls, if they did not stand after all other contents."""
ANSWER = "answer"
"""Of the content that a result is."""
AS_JSON = "json"
"""Inside a section: true if the text is JSON that spells the result."""

ROLES = ("system", "user", "assistant", "developer")
"""The roles that are the same here and in the ledger. A message of another role, tool aside, is a custom one."""


def head_of(role: str, contents: list[JsonValue], author: str | None) -> Source:
    """A message around its contents, as the framework writes it without the fields that are None."""
    named: Source = {} if author is None else {AUTHOR: author}
    return {TYPE: MESSAGE, "role": role, CONTENTS: contents, **named, PROPERTIES: {}}


BARE = "bare"
"""The form of a text in the list without a content around it."""
_OPENAI_ID = "rs_"
"""The prefix of the ids of OpenAI's reasoning items. Anthropic's have no id."""


def read_parts(
    values: Sequence[JsonValue], path: str, at: Sequence[int], signers: dict[int, str], *, lenient: bool
) -> tuple[list[Part], Source]:
    """The parts of the contents at these positions, and their residuals by index, if they need one. `signers` has the
    signers of reasoning by position, as far as objects named them. Raises DecodeError.
    """
    places = zip(at, values, strict=True)
    return by_index(read_part(value, f"{path}[{at}]", signers.get(at), lenient=lenient) for at, value in places)


def write_parts(content: str | Sequence[Part] | None, residual: JsonValue) -> list[JsonValue]:
    """The contents of a text or of parts, without the parts that no content can hold."""
    parts = [TextPart(text=content)] if isinstance(content, str) else content or ()
    written = (write_part(part, nested(residual, PARTS, str(index))) for index, part in enumerate(parts))
    return [value for value in written if value is not None]


def read_part(
    value: JsonValue, path: str, signer: str | None = None, *, lenient: bool
) -> tuple[Part, dict[str, JsonValue] | None]:
    """The part of a content, and its residual. Lenient rules keep a malformed content whole. Raises DecodeError."""
    if isinstance(value, str):
        return TextPart(text=value), {FORM: BARE}
    try:
        content = as_object(value, path)
        part = _read_known(content, text_at(content, TYPE, path), path, signer)
    except DecodeError:
        if not lenient:
            raise
        part = None
    if part is None:
        return opaque(value), None
    return part, keep(content, _encoded(part) or {})


def write_part(part: Part, residual: JsonValue = None) -> JsonValue:
    """The content of a part; None if there is none, as for a medium without a URL and data."""
    if isinstance(part, OpaquePart):
        return part.value
    if isinstance(part, TextPart) and nested(residual, FORM) == BARE:
        return part.text
    encoded = _encoded(part)
    keys = nested(residual, KEYS)
    if encoded is None or (isinstance(keys, list) and not _is_of_keys(encoded, keys)):
        return encoded
    return restore(encoded, residual)


def _is_of_keys(encoded: Source, keys: list[JsonValue]) -> bool:
    """Whether a residual with these keys can be of this content. The source may lack empty texts and properties."""
    return all(key in keys or not value for key, value in encoded.items())


def _read_known(content: Source, kind: str, path: str, signer: str | None) -> Part | None:
    if kind == TEXT:
        return TextPart(text=optional_text_at(content, TEXT, path) or "")
    if kind == THINKING:
        return _read_thought(content, path, signer)
    return _read_medium(content, path) if kind in (DATA, URI) else None


def _encoded(part: Part) -> Source | None:
    if isinstance(part, TextPart):
        return {TYPE: TEXT, TEXT: part.text, PROPERTIES: {}}
    if isinstance(part, ThinkPart):
        signature = _given(protected_data=part.signature)
        return {TYPE: THINKING, TEXT: part.text, **signature, **_given(id=id_of(part)), PROPERTIES: {}}
    return _medium(part) if isinstance(part, MediaPart) else None


def _given(**fields: str | None) -> Source:
    return {key: value for key, value in fields.items() if value is not None}


# --- Reasoning --------------------------------------------------------------------------------------------------------


def _read_thought(content: Source, path: str, signer: str | None) -> ThinkPart:
    """A thought, with the provider's id of it. The id of OpenAI's reasoning also tells the signer."""
    text, signature, id_ = (optional_text_at(content, key, path) for key in (TEXT, "protected_data", "id"))
    if signature is not None and signer is None and id_ is not None and id_.startswith(_OPENAI_ID):
        signer = OPENAI
    return ThinkPart(text=text or "", signature=signature, extras=signed_by(signer, id_))


# --- Media ------------------------------------------------------------------------------------------------------------


def _read_medium(content: Source, path: str) -> Medium:
    """A medium by its media type. A data URI in the framework's own spelling is read as data."""
    uri, mime_type = text_at(content, URI, path), optional_text_at(content, "media_type", path)
    name, id_ = (optional_text_at(content, key, path) for key in ("name", "file_id"))
    family, _, subtype = (mime_type or "").partition("/")
    fields: dict[str, str | None] = {"mime_type": None if subtype == "*" else mime_type, "name": name, "id": id_}
    prefix = f"data:{mime_type};base64,"
    if mime_type is not None and uri.startswith(prefix) and subtype != "*":
        fields["data"] = uri.removeprefix(prefix)
    else:
        fields["url"] = uri
    return FAMILIES.get(family.lower(), FilePart).model_validate(fields)


def _medium(part: MediaPart) -> Source | None:
    uri = data_uri(part) if part.url is None else part.url
    if uri is None:
        return None
    mime_type = part.mime_type
    if mime_type is None:
        # The framework identifies a medium only by its media type, and its clients reject a medium without one.
        mime_type = next((f"{family}/*" for family, kind in FAMILIES.items() if isinstance(part, kind)), None)
    named = _given(media_type=mime_type, name=part.name, file_id=part.id)
    return {TYPE: DATA if is_data_uri(uri) else URI, URI: uri, **named, PROPERTIES: {}}
