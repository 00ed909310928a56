"""Content blocks as parts, both ways. A block of an unknown type is kept whole, in its position.

Redacted thinking, server tools with their results, MCP, searches, container uploads and compaction count as unknown:
only this API can read them, and it accepts its own blocks only unchanged.

An image or a document has a `source`: base64 data, a URL, or the id of an uploaded file. A document whose source is
plain text or a list of blocks is not a file, and is kept whole too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chatledger.errors import DecodeError
from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import by_index, opaque
from chatledger.formats.wire.residual import keep, nested, own_residual, put_back
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import JsonValue

# Names that several modules of the format share: of keys, of blocks, of residual sections.

NAME = "anthropic"
ROLES = frozenset({"user", "assistant", "system"})

MESSAGES = "messages"
SYSTEM = "system"
TOOL_USE = "tool_use"
TOOL_RESULT = "tool_result"

PAYLOAD = "payload"
"""Residual of the first message: `keys` and `extra` of the request around the messages."""
LISTED = "listed"
"""Residual: the message was in `messages` with this role, unlike most system prompts and tool results."""


def is_listed(message: ChatMessage) -> bool:
    return nested(own_residual(message, NAME), LISTED) is True


def is_result(message: ChatMessage) -> bool:
    """Whether the message is written as a tool_result block of a user message."""
    return message.role == "tool" and not is_listed(message)


PARTS = "parts"
"""Residual: the residuals of the parts by index."""
SOURCE = "source"
"""Residual of a medium: the residual of its source, so that the outer one never repeats the data."""
_SOURCES = {
    "base64": {"media_type": "mime_type", "data": "data"},
    "url": {"url": "url"},
    "file": {"file_id": "id"},
}
"""The keys of each type of source, and the fields of a part that they become."""


def read_parts(
    blocks: Sequence[JsonValue], path: str, *, lenient: bool, at: Sequence[int] | None = None
) -> tuple[list[Part], dict[str, JsonValue]]:
    """The parts and their section of the residual; `at` has the positions of the blocks, if they are not
    consecutive.
    """
    places = zip(at or range(len(blocks)), blocks, strict=True)
    return by_index(_read_block(block, f"{path}[{position}]", lenient=lenient) for position, block in places)


def write_parts(parts: Sequence[Part], residual: JsonValue) -> list[dict[str, JsonValue]]:
    """The blocks of parts, without the parts that no block can hold."""
    written = (_write_block(part, nested(residual, PARTS, str(idx))) for idx, part in enumerate(parts))
    return [block for block in written if block is not None]


def _read_block(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient rules keep a malformed block whole, like a block of an unknown type."""
    block = as_object(value, path)
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        if reader is None and not lenient:
            text_at(block, "type", path)
        part = None if reader is None else reader(block, path)
    except DecodeError:
        if not lenient:
            raise
        part = None
    if part is None:
        return opaque(block), None
    return part, _residual(block, _encoded(part) or {})


def _write_block(part: Part, residual: JsonValue = None) -> dict[str, JsonValue] | None:
    """The block that the part was read from; None if no block can hold it."""
    if isinstance(part, OpaquePart):
        return part.value if isinstance(part.value, dict) else None
    encoded = _encoded(part)
    if encoded is None:
        return None
    if isinstance(encoded.get(SOURCE), dict):
        encoded = {**encoded, SOURCE: put_back(encoded[SOURCE], nested(residual, SOURCE))}
    return put_back(encoded, residual)


def read_medium(block: dict[str, JsonValue], path: str) -> ImagePart | FilePart | None:
    """The part of an image or a document; None if its source is of another type."""
    source = object_at(block, "source", path)
    keys = _SOURCES.get(text_at(source, "type", f"{path}.source"))
    if keys is None:
        return None
    fields = {name: text_at(source, key, f"{path}.source") for key, name in keys.items()}
    if block["type"] == "image":
        return ImagePart.model_validate(fields)
    return FilePart.model_validate({**fields, "name": optional_text_at(block, "title", path)})


def write_medium(part: ImagePart | FilePart) -> dict[str, JsonValue] | None:
    """The block of a part; None if it has none of the three sources."""
    source = _source(part)
    if source is None:
        return None
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source}
    title = {} if part.name is None else {"title": part.name}
    return {"type": "document", "source": source, **title}


def _residual(block: dict[str, JsonValue], encoded: dict[str, JsonValue]) -> JsonValue:
    source = keep(block[SOURCE], encoded[SOURCE]) if SOURCE in encoded else None
    inner: dict[str, JsonValue] = {} if source is None else {SOURCE: source}
    if SOURCE in encoded:
        encoded = {**encoded, SOURCE: block[SOURCE]}
    return {**inner, **(keep(block, encoded) or {})} or None


def _encoded(part: Part) -> dict[str, JsonValue] | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ThinkPart):
        signature = {} if part.signature is None else {"signature": part.signature}
        return {"type": "thinking", "thinking": part.text, **signature}
    return write_medium(part) if isinstance(part, (ImagePart, FilePart)) else None


def _source(part: ImagePart | FilePart) -> dict[str, JsonValue] | None:
    for kind, keys in _SOURCES.items():
        fields = {key: getattr(part, name) for key, name in keys.items()}
        if None not in fields.values():
            return {"type": kind, **fields}
    return None


def _read_text(block: dict[str, JsonValue], path: str) -> Part:
    return TextPart(text=text_at(block, "text", path))


def _read_thinking(block: dict[str, JsonValue], path: str) -> Part:
    return ThinkPart(text=text_at(block, "thinking", path), signature=optional_text_at(block, "signature", path))


_READERS: dict[str, Callable[[dict[str, JsonValue], str], Part | None]] = {
    "text": _read_text,
    "thinking": _read_thinking,
    "image": read_medium,
    "document": read_medium,
}


# --- Calls and results ------------------------------------------------------------------------------------------------
# Tool calls and their results, both ways.
#
# A call is a `tool_use` block of an assistant's message. A result is a `tool_result` block of a user's message; each
# becomes a separate stored message.

BLOCK = "block"
"""Residual of a result: the residual of the block, beside those of its parts."""


def read_call(block: dict[str, JsonValue], path: str) -> tuple[ToolCall, JsonValue]:
    """A call and its residual. Raises DecodeError. The input may be text if the stream was cut off."""
    arguments = block.get("input")
    if not isinstance(arguments, (dict, str)):
        raise wrong(f"{path}.input", "an object", arguments)
    call = ToolCall(id=text_at(block, "id", path), name=text_at(block, "name", path), arguments=arguments)
    return call, keep(block, _call_block(call, ""))


def write_call(call: ToolCall, made_id: str, residual: JsonValue = None) -> dict[str, JsonValue]:
    """The block of a call; `made_id` is used if the call has no id."""
    return put_back(_call_block(call, made_id), residual)


def read_result(block: dict[str, JsonValue], path: str, *, lenient: bool) -> ChatMessage:
    """The message of a block. Raises DecodeError."""
    content, is_error, parts = block.get("content"), block.get("is_error"), None
    if is_error is not None and not isinstance(is_error, bool):
        raise wrong(f"{path}.is_error", "a boolean", is_error)
    if isinstance(content, list):
        content, parts = read_parts(content, f"{path}.content", lenient=lenient)
    elif content is not None and not isinstance(content, str):
        raise wrong(f"{path}.content", "text or a list of blocks", content)
    message = ChatMessage(
        role="tool",
        tool_call_id=text_at(block, "tool_use_id", path),
        content=content,
        is_error=is_error,
        format=NAME,
    )
    of_block = keep(block, _result_block(message, block.get("content"), ""))
    residual = {key: value for key, value in ((BLOCK, of_block), (PARTS, parts)) if value}
    return message.model_copy(update={"residual": residual or None})


def write_result(message: ChatMessage, call_id: str) -> dict[str, JsonValue]:
    """The block of a result; `call_id` is used if the message names no call."""
    residual = own_residual(message, NAME)
    content = write_parts(message.content, residual) if isinstance(message.content, list) else message.content
    return put_back(_result_block(message, content, call_id), nested(residual, BLOCK))


def reads_as_result(value: JsonValue) -> bool:
    """Whether a block that is kept as a part here would be read as a tool result."""
    if not isinstance(value, dict) or value.get("type") != TOOL_RESULT:
        return False
    try:
        return read_result(value, "", lenient=True) is not None
    except DecodeError:
        return False


def _call_block(call: ToolCall, made_id: str) -> dict[str, JsonValue]:
    return {
        "type": TOOL_USE,
        "id": made_id if call.id is None else call.id,
        "name": call.name,
        "input": {} if call.arguments is None else call.arguments,
    }


def _result_block(message: ChatMessage, content: JsonValue, call_id: str) -> dict[str, JsonValue]:
    id_ = call_id if message.tool_call_id is None else message.tool_call_id
    optional = {"content": content, "is_error": message.is_error}
    return {
        "type": TOOL_RESULT,
        "tool_use_id": id_,
        **{key: value for key, value in optional.items() if value is not None},
    }
