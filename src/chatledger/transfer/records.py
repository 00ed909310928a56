"""Reads the records of a file one at a time, each with its position.

A file is an array of records, one record per line, or records over several lines, one after the other. A record is an
object with a message list in a field, or is such a list itself. An unreadable record gives a BadRecord, and reading
continues with the next one. Reading ends early only if it cannot find where the next record begins.
"""

from __future__ import annotations

import json
from codecs import utf_8_decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeAlias

from chatledger.errors import DecodeError, UnknownFormat
from chatledger.formats import recognise
from chatledger.models.json import MAX_DEPTH, JsonValue, json_problem
from chatledger.transfer.source import ByteSource

Container: TypeAlias = Literal["array", "lines", "object"]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as read. `index` counts from 0, `line` from 1 (None in an array); `byte` and `end` are its bounds.

    `repeated` names keys that occur twice in one object, of which the JSON parser keeps the last. For a request in a
    recording, `item` is its number and `around` the rest of the recording.
    """

    value: JsonValue
    container: Container
    index: int
    line: int | None
    byte: int
    end: int
    repeated: tuple[str, ...] = ()
    item: int | None = None
    around: JsonValue = None

    @property
    def place(self) -> str:
        where = record_place(self.index, self.line)
        return where if self.item is None else f"{where}, interaction {self.item}"


@dataclass(frozen=True, slots=True)
class BadRecord:
    """An unreadable record, and the error that says why."""

    error: DecodeError
    index: int
    line: int | None
    end: int

    @property
    def place(self) -> str:
        return record_place(self.index, self.line)


def record_place(index: int, line: int | None) -> str:
    return f"record {index}" if line is None else f"line {line}"


def read_records(stream: BinaryIO, *, field: str | None = None, lines: bool = False) -> Iterator[Record | BadRecord]:
    """Yields the records of a file. `lines` means that the file's name promises one record per line; an empty file then
    has no records.

    Without `lines`, the form is detected, and an empty file is a bad record. An array whose first element is a message
    is a single record, unless `field` is given, because records are then objects. With and without `lines`, an object
    that was printed over several lines is one record, and a file that is not JSON is one bad record.
    """
    source = ByteSource(stream)
    first = source.peek()
    if lines and not first:
        return
    is_record = first == b"{" or (first == b"[" and field is None and _begins_with_message(source))
    if (problem := _no_json(source)) is not None:
        yield _torn(source, 0, problem)
    elif (lines or is_record) and _is_line(source, named_so=lines):
        yield from _read_lines(source)
    elif is_record:
        yield from _read_values(source)
    elif first == b"[":
        yield from _read_array(source)
    else:
        yield _torn(source, 0, "neither an array nor an object")


def _is_line(source: ByteSource, *, named_so: bool) -> bool:
    """Whether the first line is a record, or a broken record in a file whose name promises lines (`named_so`)."""
    line = source.look(source.line_length())
    if _is_json(line):
        return True
    # An indented object has only a bracket on its first line, or a bracket and the first key.
    goes_on = line[:1] in _BRACKETS and (line.strip() in _BRACKETS or not source.begins_value(len(line)))
    return named_so and not goes_on


_HEAD = 4096
"""Bytes at the beginning of a file from which the kind of a file that is not JSON is guessed."""
_KINDS = (
    (b"\x1f\x8b", "gzip; decompress it first (gunzip)"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd; decompress it first (unzstd)"),
    (
        b"SQLite format 3\x00",
        "a SQLite database; open chatledger's own with --url, and import a framework's with --from and --store",
    ),
    (b"PAR1", "Parquet; convert it to JSON lines first"),
    (b"\xff\xfe", "perhaps UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "perhaps UTF-16; save it as UTF-8"),
)


def _no_json(source: ByteSource) -> str | None:
    """The problem of a file that is not JSON. None if its first line is JSON, or any line begins with a bracket."""
    head = source.look(_HEAD)
    if not head:
        return "the file is empty"
    kind = next((kind for mark, kind in _KINDS if head.startswith(mark)), None)
    lines = [line.strip() for line in head.split(b"\n")]
    if kind is None and not _is_json(lines[0]) and not any(line[:1] in _BRACKETS for line in lines):
        kind = _kind_of_text(head)
    return f"not JSON but {kind}" if kind else None


def _kind_of_text(head: bytes) -> str:
    try:
        text, _ = utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return "text that is not UTF-8, or binary data"
    if "\x00" in text:
        return "binary data"
    if text.startswith("<"):
        return "HTML or XML; is it an error page?"
    first, second, *_ = [*text.split("\n"), "", ""]
    if any(0 < first.count(mark) == second.count(mark) for mark in ",;\t"):
        return "perhaps CSV; convert it to JSON lines first"
    return "other text"


def _begins_with_message(source: ByteSource) -> bool:
    """Whether the first element of the next array is a message in some format. Consumes nothing."""
    element = source.first_element()
    try:
        value = json.loads(element)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (isinstance(value.get("role"), str) or _is_recognised([value]))


def _is_recognised(messages: list[JsonValue]) -> bool:
    try:
        recognise(messages)
    except UnknownFormat:
        return False
    return True


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _read_lines(source: ByteSource) -> Iterator[Record | BadRecord]:
    index, number = 0, source.skipped_lines
    while length := source.line_length():
        number += 1
        byte = source.byte
        raw = source.take(length)
        if raw.strip():
            yield _parse(raw, "lines", index, number, byte)
            index += 1


def _read_values(source: ByteSource) -> Iterator[Record | BadRecord]:
    """Objects or lists one after the other, on any lines. If a value has no end, the next one cannot be found by
    brackets; from then on, each line that begins with a bracket begins a value.
    """
    index = 0
    torn = False
    while mark := source.peek():
        byte = source.byte
        length = source.value_length() if mark in _BRACKETS and not torn else None
        torn = torn or (mark in _BRACKETS and length is None)
        raw = source.take(source.lines_to_a_value() if length is None else length)
        container: Container = "lines" if index or source.peek() else "object"
        yield _parse(raw, container, index, None, byte)
        index += 1


def _read_array(source: ByteSource) -> Iterator[Record | BadRecord]:
    source.take(1)
    index = 0
    while True:
        mark = source.peek()
        if index and mark == b",":
            source.take(1)
            mark = source.peek()
        elif index and mark != b"]":
            yield _torn(source, index, "expected , or ]" if mark else _ENDS_IN_ARRAY)
            return
        if mark == b"]":  # also after a comma: JSON forbids it, but no record is lost
            break
        record: Record | BadRecord | None = _read_good(source, index) if mark in _BRACKETS else None
        if record is None:
            length = source.value_length() if mark else 0
            if not length or mark in b",:}":
                detail = "expected a record" if length else _ENDS_IN_RECORD if mark else _ENDS_IN_ARRAY
                yield _torn(source, index, detail)
                return
            byte = source.byte
            record = _parse(source.take(length), "array", index, None, byte)
        yield record
        index += 1
    source.take(1)
    if source.peek():
        yield _torn(source, index, "more after the end of the array")


def _read_good(source: ByteSource, index: int) -> Record | None:
    """Parse a valid record in the buffer. None if it is invalid or incomplete. A search for its end costs more."""
    byte = source.byte
    read = source.take_parsed(_load_at)
    return None if read is None else Record(read[0], "array", index, None, byte, source.byte, read[1])


_BRACKETS = (b"{", b"[")
_ENDS_IN_ARRAY = "the file ends inside the array"
_ENDS_IN_RECORD = "the file ends inside the record"


def _torn(source: ByteSource, index: int, detail: str) -> BadRecord:
    error = DecodeError("", detail, record=index, byte=source.byte)
    source.take_rest()
    return BadRecord(error, index, None, source.byte)


def _parse(raw: bytes, container: Container, index: int, line: int | None, byte: int) -> Record | BadRecord:
    try:
        value, repeated = _loads(raw)
    except _NotRead as problem:
        error = DecodeError("", problem.detail, record=index, byte=byte + problem.offset)
        return BadRecord(error, index, line, byte + len(raw))
    return Record(value, container, index, line, byte, byte + len(raw), repeated)


class _NotRead(Exception):
    def __init__(self, detail: str, offset: int) -> None:
        self.detail = detail
        self.offset = offset


def _loads(raw: bytes) -> tuple[JsonValue, tuple[str, ...]]:
    """The value, and the keys that occur twice in an object. Raises _NotRead with the offset in bytes."""
    objects = _Objects()
    try:
        text = raw.decode()
        value = json.loads(text, object_pairs_hook=objects)
    except UnicodeDecodeError as error:
        raise _NotRead("not UTF-8", error.start) from error
    except json.JSONDecodeError as error:
        raise _NotRead(_detail(error, text), len(text[: error.pos].encode())) from error
    except RecursionError as error:
        raise _NotRead(_TOO_DEEP, 0) from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise _NotRead(str(error).partition(";")[0], 0) from error
    if _is_too_deep(value):
        raise _NotRead(_TOO_DEEP, 0)
    return value, tuple(objects.repeated)


def _load_at(text: str, at: int) -> tuple[tuple[JsonValue, tuple[str, ...]], int]:
    """The same for the value at a position in a text, with its end. Raises ValueError or RecursionError."""
    objects = _Objects()
    value, end = json.JSONDecoder(object_pairs_hook=objects).raw_decode(text, at)
    if _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return (value, tuple(objects.repeated)), end


class _Objects:
    """Builds objects from pairs, and notes keys that occur twice. Like the JSON parser, it keeps the last value."""

    def __init__(self) -> None:
        self.repeated: list[str] = []

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            self.repeated.extend(dict.fromkeys(name for name in names if names.count(name) > 1))
        return value


def _is_too_deep(value: JsonValue) -> bool:
    """Depth is the only problem that a parsed JSON value can have."""
    return json_problem(value, max_depth=MAX_DEPTH) is not None


_TOO_DEEP = f"JSON nested deeper than {MAX_DEPTH}"


def _detail(error: json.JSONDecodeError, text: str) -> str:
    at_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    return f"the record ends too early ({error.msg})" if at_end else f"not JSON: {error.msg}"
