"""The columns of a message, and a ChatMessage encoded as rows. Only `decode_messages` decodes them.

An EncodedMessage holds the columns of a message that do not depend on its position in the branch. It is made once,
before the first attempt of an append. Two messages are equal if their EncodedMessages are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy.util.concurrency import in_greenlet

from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from chatledger.models.base import Model, refuse_own_fields
from chatledger.models.json import dumps
from chatledger.models.kv import Put
from chatledger.storage.drivers.asyncpg import LONG, apart
from chatledger.storage.drivers.sql import Row
from chatledger.storage.schema.text import (
    encode_json,
    encode_key,
    encode_text,
)

# The columns that the caller's message fills, then those that the ledger fills. Every statement uses this order.
GIVEN_COLUMNS = (
    "message_id",
    "role",
    "name",
    "content_form",
    "text",
    "reasoning_form",
    "call_count",
    "tool_call_id",
    "is_error",
    "run_id",
    "format",
    "residual",
    "response_metadata",
    "custom_data",
)
PLACED_COLUMNS = ("seq", "state", "violations", "created_at")
MESSAGE_COLUMNS = (*GIVEN_COLUMNS, *PLACED_COLUMNS)
PART_COLUMNS = ("seq", "idx", "channel", "kind", "text", "body")
CALL_COLUMNS = ("seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras")
RESULT_COLUMNS = ("seq", "call_branch", "call_seq", "call_idx")


LONG_COLUMNS = (
    (MESSAGE_COLUMNS, ("text", "residual", "response_metadata", "custom_data")),
    (PART_COLUMNS, ("text", "body")),
    (CALL_COLUMNS, ("arguments", "extras")),
)
"""The columns of the three tables, and those of them that hold long texts."""
LONG_OF = [[itemgetter(1 + columns.index(name)) for name in names] for columns, names in LONG_COLUMNS]  # after branch
_MESSAGE_ID = GIVEN_COLUMNS.index("message_id")
_RUN_ID = GIVEN_COLUMNS.index("run_id")
_PLAIN_TEXT = {"kind", "text"}
CALL_FIELDS = {"id", "name", "arguments", "extras"}
PART_MODELS: dict[str, Any] = {
    "text": TextPart,
    "think": ThinkPart,
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
    "file": FilePart,
    "opaque": OpaquePart,
}
_PART_CLASSES = frozenset(PART_MODELS.values())


class EncodedMessage(NamedTuple):
    """A message as the values of GIVEN_COLUMNS, and its parts and calls as those of their columns without seq."""

    message: tuple[Any, ...]
    parts: tuple[tuple[Any, ...], ...]
    calls: tuple[tuple[Any, ...], ...]

    @property
    def message_id(self) -> str | None:
        return self.message[_MESSAGE_ID]  # type: ignore[no-any-return]


def runs_of(rows: Sequence[EncodedMessage]) -> list[str]:
    """The runs that the messages name, each once."""
    return list(dict.fromkeys([run for message, _, _ in rows if (run := message[_RUN_ID]) is not None]))


def bytes_of(rows: Sequence[EncodedMessage]) -> int:
    """The UTF-8 bytes of all texts of the messages together."""
    cells = [
        cell for message, parts, calls in rows for own in (message, *parts, *calls) for cell in own if type(cell) is str
    ]
    text = "".join(cells)
    return len(text) if text.isascii() else len(text.encode())


def encode_message(message: ChatMessage, message_id: str | None = None) -> EncodedMessage:
    """Encode a message. `message_id` is used if the message has no id. Raises LimitExceeded for an id that is too long
    for a key, and InvalidArgument for a part or a call of a subclass with fields of its own.
    """
    fields = message.__dict__  # a model takes twice as long to find an attribute
    content_form, text, content = _encode_content(fields["content"])
    reasoning_form, reasoning = _encode_reasoning(fields["reasoning"])
    calls, run_id = fields["tool_calls"], fields["run_id"]
    message_id = message_id if fields["message_id"] is None else fields["message_id"]
    columns = (
        None if message_id is None else encode_key(message_id, "message_id"),
        encode_text(fields["role"]),
        None if (name := fields["name"]) is None else encode_text(name),
        content_form,
        text,
        reasoning_form,
        None if calls is None else len(calls),
        None if (answered := fields["tool_call_id"]) is None else encode_text(answered),
        fields["is_error"],
        None if run_id is None else encode_key(run_id, "run_id"),
        None if (format_ := fields["format"]) is None else encode_text(format_),
        None if (residual := fields["residual"]) is None else encode_json(residual),
        None if (metadata := fields["response_metadata"]) is None else encode_json(metadata),
        None if (custom := fields["custom_data"]) is None else encode_json(custom),
    )
    return EncodedMessage(
        columns,
        tuple(_numbered(content, reasoning)) if content or reasoning else (),
        tuple([(idx, *_encode_call(call)) for idx, call in enumerate(calls)]) if calls else (),
    )


def encode_all(messages: Sequence[ChatMessage]) -> list[EncodedMessage]:
    """The messages encoded, for plain code that may run in a greenlet of the event loop: it does a long batch in a
    thread.
    """

    def encode() -> list[EncodedMessage]:
        return [*map(encode_message, messages)]

    return apart(encode) if in_greenlet() and is_long_batch(messages) else encode()


def is_long_batch(messages: Sequence[Any], beside: Any = None) -> bool:
    """Whether the messages, with a value that is written beside them, have about LONG characters, or as much work. It
    looks no further, and what is no message has none.
    """
    left, pending = LONG, [] if beside is None else [beside]
    for message in messages if type(messages) in (list, tuple) else ():
        if issubclass(type(message), ChatMessage):
            try:
                pending += [value for value in _long_fields(message.__dict__) if value is not None]
            except KeyError:  # a copy without validation
                continue
    while pending and left > 0:
        item = pending.pop()
        kind = type(item)  # of a value that nobody has checked yet, only the type is safe to ask
        left -= _AROUND
        if issubclass(kind, str):
            left -= len(item)
        elif issubclass(kind, dict):
            pending += [*item, *item.values()]
        elif issubclass(kind, list):
            pending += item
        elif issubclass(kind, Put):
            pending.append(item.value)
        elif issubclass(kind, Model):  # a part or a call
            pending += [value for value in item.__dict__.values() if value is not None]
    return left <= 0


_long_fields = itemgetter("content", "reasoning", "tool_calls", "response_metadata", "custom_data", "residual")
_AROUND = 512
"""Characters that take as long to encode as any value does besides."""


def is_encoded_alike(message: ChatMessage, other: ChatMessage) -> bool:
    """Whether `encode_message` gives the same for both. Nearly all fields are None or a text, and need no encoding."""
    fields, others = message.__dict__, other.__dict__
    for name in _GIVEN_FIELDS:
        own, two = fields[name], others[name]
        if own is not two and (type(own) is not str or type(two) is not str or own != two):
            return encode_message(message) == encode_message(other)
    return True


_GIVEN_FIELDS = (
    "message_id", "role", "name", "content", "reasoning", "tool_calls", "tool_call_id", "is_error", "run_id", "format",
    "residual", "response_metadata", "custom_data",
)  # fmt: skip


def _numbered(content: Sequence[Row], reasoning: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    channels = [("content", row) for row in content] + [("reasoning", row) for row in reasoning]
    return ((idx, channel, *row) for idx, (channel, row) in enumerate(channels))


def _text_or_none(text: str | None) -> str | None:
    return None if text is None else encode_text(text)


def _encode_content(content: Any) -> tuple[str | None, str | None, Sequence[Row]]:
    """(content_form, text, part rows). A lone text, as a str or as a list of one part, needs no part row."""
    if content is None:
        return None, None, ()
    if isinstance(content, str):
        return "str", encode_text(content), ()
    if len(content) == 1 and isinstance(content[0], TextPart) and content[0].extras is None:
        if type(content[0]) is not TextPart:
            _refuse_own_fields(content[0])
        return "text", encode_text(content[0].text), ()
    return "parts", None, [_encode_part(part) for part in content]


def _encode_reasoning(reasoning: Any) -> tuple[str | None, Sequence[Row]]:
    if reasoning is None:
        return None, ()
    if isinstance(reasoning, str):
        return "str", [("text", encode_text(reasoning), None)]
    return "parts", [_encode_part(part) for part in reasoning]


def _encode_part(part: Any) -> tuple[str, str | None, str | None]:
    """(kind, text, body)."""
    if type(part) not in _PART_CLASSES:
        _refuse_own_fields(part)
    fields = {name: value for name, value in part.__dict__.items() if value is not None and name not in _PLAIN_TEXT}
    if part.kind == "opaque":
        fields = {"type": part.type, "value": part.value}
    return part.kind, _text_or_none(getattr(part, "text", None)), encode_json(fields) if fields else None


def _refuse_own_fields(part: Any) -> None:
    """Raises InvalidArgument for a part of a subclass with fields of its own."""
    model = next((kind for kind in PART_MODELS.values() if isinstance(part, kind)), None)
    if model is not None:
        refuse_own_fields(part, model, "messages", "the value of the part" if model is OpaquePart else "its extras")


def _encode_call(call: Any) -> tuple[Any, ...]:
    """(call_id, name, arguments, arguments_form, extras)."""
    if type(call) is not ToolCall or len(call.__dict__) != len(CALL_FIELDS):
        refuse_own_fields(call, ToolCall, "messages", "the extras of the call")
    arguments, form = call.arguments, None
    if isinstance(arguments, str):
        arguments, form = encode_text(arguments), "str"
    elif arguments is not None:
        arguments, form = encode_text(dumps(arguments)), "object"
    return _text_or_none(call.id), encode_text(call.name), arguments, form, encode_json(call.extras)
