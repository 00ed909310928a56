"""The context file of a Kimi agent: one JSON line for each message, control records between them.

    read(file).messages, written by `write`, are the file again, byte by byte

A message's line is `model_dump_json(exclude_none=True)`; a record's is Python's own `json.dumps`. A message that reads
from such a line carries nothing extra; of any other line the residual keeps what differs: spacing, escapes, key order,
a missing key, at worst the text. Records (`_system_prompt`, `_usage`, `_checkpoint`, and any later `_…`) become custom
messages: they have their place in the order, are listed, and no model ever sees them. Blank lines stay with their
neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatledger.errors import DecodeError
from chatledger.formats.kosong import CODEC
from chatledger.formats.kosong.adapting import adapt, is_record
from chatledger.formats.kosong.codec import KosongCodec
from chatledger.formats.kosong.lines import AFTER, BEFORE, END, STYLES, SURROGATE, TEXT, line_of, split, style_of
from chatledger.formats.kosong.revision import AS_DICT, FIELDS, LINE, SHORT, residual_of
from chatledger.formats.kosong.sources import as_json
from chatledger.formats.kosong.writing import Row, shortened
from chatledger.models import ChatMessage, RulesLevel

COMPACT, SPACED = "compact", "spaced"
_AS_GIVEN = frozenset({AS_DICT, SHORT, FIELDS})


@dataclass(frozen=True, slots=True)
class ContextFile:
    """The messages and records of a file in order, up to the `problem` if there is one.

    `problem.record` is the line, from 1, and `problem.byte` where it begins: cut there, the file is whole again.
    """

    messages: list[ChatMessage]
    problem: DecodeError | None = None


def read(file: Iterable[bytes], *, codec: KosongCodec = CODEC, rules: RulesLevel = "strict") -> ContextFile:
    """Read lines, such as those of a file opened in binary, up to the first bad one.

    Lenient goes on after a bad line and keeps it as a custom message; a torn last line is a problem at every level,
    since half a message is none.
    """
    messages: list[ChatMessage] = []
    blank = ""
    start = 0
    for number, line in enumerate(file, start=1):
        text, end = split(line)
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
    """The file of these messages, whatever they came from; what kosong cannot say is left out, as `encode` does."""
    adapted = adapt(messages, codec.revision, records=True)
    return b"".join(_written(message, codec) for message, _ in adapted)


def _read_line(text: str, codec: KosongCodec, *, lenient: bool) -> ChatMessage:
    row = _parsed(text)
    if isinstance(row.get("role"), str) and row["role"].startswith("_"):
        record = ChatMessage(role="custom", custom_data=as_json(row, "$", [], lenient=False), format=codec.name)
        return _with_line(record, style_of(text, row, SPACED))
    as_given = codec.decode([row], rules="lenient" if lenient else "strict").messages[0]
    kept = {key: value for key, value in residual_of(as_given).items() if key not in _AS_GIVEN}
    plain = as_given.model_copy(update={"residual": kept or None})
    if STYLES[COMPACT](_row_of(plain, codec)) == text:
        return plain
    return _with_line(as_given, style_of(text, _row_of(as_given, codec), COMPACT))


def _parsed(text: str) -> Row:
    if SURROGATE.search(text):  # what `split` makes of bytes that are not UTF-8
        raise DecodeError("$", "not UTF-8")
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("$", f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise DecodeError("$", f"an object is expected, not {type(row).__name__}")
    return row


def _bad_line(text: str, codec: KosongCodec) -> ChatMessage:
    return ChatMessage(role="custom", custom_data={"line": text}, format=codec.name, residual={LINE: {TEXT: text}})


def _row_of(message: ChatMessage, codec: KosongCodec) -> Row:
    if is_record(message):
        return message.custom_data or {}
    row = codec.row_of(message)
    return row if AS_DICT in residual_of(message) else shortened(row)


def _written(message: ChatMessage, codec: KosongCodec) -> bytes:
    default = SPACED if is_record(message) else COMPACT
    return line_of(_row_of(message, codec), residual_of(message).get(LINE), default)


def _with_line(message: ChatMessage, found: dict[str, str]) -> ChatMessage:
    """The message with what is not as we would write it: no blank lines before it, one newline behind it."""
    usual = {BEFORE: "", AFTER: "", END: "\n"}
    told = {key: value for key, value in found.items() if usual.get(key) != value}
    if not told:
        return message
    residual = residual_of(message)
    return message.model_copy(update={"residual": {**residual, LINE: {**residual.get(LINE, {}), **told}}})


def _with_blank(messages: list[ChatMessage], blank: str) -> list[ChatMessage]:
    return [*messages[:-1], _with_line(messages[-1], {AFTER: blank})] if messages else messages


def _placed(error: DecodeError, number: int, start: int) -> DecodeError:
    return DecodeError(error.path, error.detail, record=number, byte=start)
