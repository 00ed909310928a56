"""The context file of a Kimi agent: one JSON line for each message, control records between them.

    read(file).messages, written by `write`, are the file again, byte by byte

The line of a message is `model_dump_json(exclude_none=True)`; the line of a record is Python's `json.dumps`. Messages
from such lines need no residual. For any other line the residual keeps the difference: spacing, escapes, key order, a
missing key, at worst the whole text. Records (`_system_prompt`, `_usage`, `_checkpoint`, and any other `_…`) become
custom messages: they have a position and are listed, but are never sent to a model. Blank lines are kept with the
messages around them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.kosong import CODEC
from chatledger.formats.kosong.codec import KosongCodec
from chatledger.formats.kosong.foreign import adapt, is_record
from chatledger.formats.kosong.parts import AS_DICT, FIELDS, LINE, SHORT, residual_of
from chatledger.formats.kosong.write import shortened, write_message
from chatledger.formats.wire.plain import require_json
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonObject, JsonValue, dumps

COMPACT, SPACED = "compact", "spaced"
_AS_GIVEN = frozenset({AS_DICT, SHORT, FIELDS})

STYLE, TEXT, BEFORE, END, AFTER = "style", "text", "before", "end", "after"
"""The keys of a line's residual: its style, or its text if it has none; its ending; blank lines before and after it."""

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ContextFile:
    """The messages and records of a file in order, up to the `problem` if there is one.

    `problem.record` is the number of the bad line, from 1, and `problem.byte` its position: the file is valid up to it.
    """

    messages: list[ChatMessage]
    problem: DecodeError | None = None


def read(file: Iterable[bytes], *, codec: KosongCodec = CODEC, rules: RulesLevel = "strict") -> ContextFile:
    """Read lines, such as those of a file opened in binary mode, up to the first bad line.

    Lenient keeps a bad line as a custom message and continues. An incomplete last line is a problem at every level,
    since half a message is not a message.
    """
    messages: list[ChatMessage] = []
    blank = ""
    start = 0
    for number, line in enumerate(file, start=1):
        text, end = _split(line)
        if not text.strip():
            blank += text + end
        else:
            try:
                message = _read_line(text, codec, lenient=rules == "lenient")
            except DecodeError as error:
                if rules != "lenient" or not end:
                    return ContextFile(_with_blank(messages, blank), _placed(error, number, start))
                message = _bad_line(text, codec)
            messages.append(_with_line(message, {BEFORE: blank, END: end}))
            blank = ""
        start += len(line)
    return ContextFile(_with_blank(messages, blank))


def write(messages: Sequence[ChatMessage], *, codec: KosongCodec = CODEC) -> bytes:
    """The file of messages of any format. Like `encode`, it leaves out what kosong cannot express."""
    adapted = adapt(messages, codec.revision, records=True)
    return b"".join(_encoded_line(message, codec) for message, _ in adapted)


def _read_line(text: str, codec: KosongCodec, *, lenient: bool) -> ChatMessage:
    fields = _parsed(text)
    if isinstance(fields.get("role"), str) and fields["role"].startswith("_"):
        require_json(fields, "$")
        record = ChatMessage(role="custom", custom_data=fields, format=codec.name)
        return _with_line(record, _style_of(text, fields, SPACED))
    as_given = codec.decode([fields], rules="lenient" if lenient else "strict").messages[0]
    rest = {key: value for key, value in residual_of(as_given).items() if key not in _AS_GIVEN}
    plain = as_given.model_copy(update={"residual": rest or None})
    if STYLES[COMPACT](_fields_of(plain, codec)) == text:
        return plain
    return _with_line(as_given, _style_of(text, _fields_of(as_given, codec), COMPACT))


def _parsed(text: str) -> JsonObject:
    if SURROGATE.search(text):  # `_split` decodes bytes that are not UTF-8 like this
        raise DecodeError("$", "not UTF-8")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("$", f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise DecodeError("$", f"expected an object, not {type(fields).__name__}")
    return fields


def _bad_line(text: str, codec: KosongCodec) -> ChatMessage:
    return ChatMessage(role="custom", custom_data={"line": text}, format=codec.name, residual={LINE: {TEXT: text}})


def _fields_of(message: ChatMessage, codec: KosongCodec) -> JsonObject:
    if is_record(message):
        return message.custom_data or {}
    fields = write_message(message, codec.revision)
    return fields if AS_DICT in residual_of(message) else shortened(fields)


def _encoded_line(message: ChatMessage, codec: KosongCodec) -> bytes:
    default = SPACED if is_record(message) else COMPACT
    return _write_line(_fields_of(message, codec), residual_of(message).get(LINE), default)


def _with_line(message: ChatMessage, style: dict[str, str]) -> ChatMessage:
    """The message, with the differences to a default line: no blank lines around it and one newline at its end."""
    usual = {BEFORE: "", AFTER: "", END: "\n"}
    fields = {key: value for key, value in style.items() if usual.get(key) != value}
    if not fields:
        return message
    residual = residual_of(message)
    return message.model_copy(update={"residual": {**residual, LINE: {**residual.get(LINE, {}), **fields}}})


def _with_blank(messages: list[ChatMessage], blank: str) -> list[ChatMessage]:
    return [*messages[:-1], _with_line(messages[-1], {AFTER: blank})] if messages else messages


def _placed(error: DecodeError, number: int, start: int) -> DecodeError:
    return DecodeError(error.path, error.detail, record=number, byte=start)


def _compact(fields: JsonValue) -> str:
    """JSON as Pydantic writes it. Lone surrogates, which UTF-8 lacks, are escaped even if two would form a pair."""
    text = dumps(fields)
    return STYLES["ascii"](fields) if SURROGATE.search(text) else text


STYLES: dict[str, Callable[[JsonValue], str]] = {
    "compact": _compact,
    "spaced": json.dumps,
    "ascii": partial(json.dumps, separators=(",", ":")),
    "unicode": partial(json.dumps, ensure_ascii=False),
}


def _split(line: bytes) -> tuple[str, str]:
    """The text of a line and its ending.

    Bytes that are not UTF-8 become lone surrogates, which `_write_line` turns back into the bytes.
    """
    text = line.decode("utf-8", "surrogateescape")
    body = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    return body, text[len(body) :]


def _style_of(text: str, fields: JsonValue, default: str) -> dict[str, str]:
    """The style that writes the fields as this text: nothing for the default style, the text itself if there is
    none.
    """
    for style in (default, *STYLES):
        if STYLES[style](fields) == text:
            return {} if style == default else {STYLE: style}
    return {TEXT: text}


def _write_line(fields: JsonValue, residual: Any, default: str) -> bytes:
    """The line as it was read, or in the default style if it was not read from a line."""
    own = residual if isinstance(residual, dict) else {}
    text = own.get(TEXT) or STYLES.get(own.get(STYLE, default), STYLES[default])(fields)
    line = f"{own.get(BEFORE, '')}{text}{own.get(END, chr(10))}{own.get(AFTER, '')}"
    return line.encode("utf-8", "surrogateescape")
