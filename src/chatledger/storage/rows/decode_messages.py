"""Decodes rows into ChatMessages, and finds the cell that cannot be decoded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeAlias

from sqlalchemy import Column

from chatledger.errors import ChatLedgerError, DamagedCell, EncryptionError, StorageError
from chatledger.models import (
    ROLES,
    ChatMessage,
    OpaquePart,
    Part,
    TextPart,
    ToolCall,
    Violation,
)
from chatledger.models.base import blank, build, revive_all
from chatledger.storage.drivers.asyncpg import aside
from chatledger.storage.drivers.sql import Row
from chatledger.storage.rows.encryption import TABLES, Tenant, damaged_cell
from chatledger.storage.rows.messages import (
    CALL_COLUMNS,
    CALL_FIELDS,
    LONG_OF,
    MESSAGE_COLUMNS,
    PART_COLUMNS,
    PART_MODELS,
)
from chatledger.storage.schema.columns import JsonText, can_decode
from chatledger.storage.schema.text import (
    ESCAPE_MARK,
    UNREADABLE,
    decode_json,
    decode_object,
    decode_text,
    encode_text,
    from_microseconds,
)

Link: TypeAlias = Callable[[Sequence[ChatMessage]], None]
"""Is called with the messages of a page, a block at a time and in order, while nobody else holds them."""

_Place: TypeAlias = tuple[int, int]
"""The branch and the seq of a message."""
_BLOCK = 64
"""Messages that are linked right after they were decoded. In a page that is decoded whole before, the first messages
have left the processor's cache, and linking takes twice as long.
"""


def decode_messages(
    tenant: Tenant,
    thread_id: str,
    messages: Sequence[Row],
    parts: Sequence[Row],
    calls: Sequence[Row],
    link: Link | None = None,
) -> list[ChatMessage]:
    """Decode rows of one thread into models, in the order of `messages`. Raises EncryptionError, DamagedCell and
    HalfStored.

    A message row is (branch, *MESSAGE_COLUMNS), with created_at as the database stores it. A part or call row is
    (branch, *its columns).
    """
    tables = zip(LONG_OF, (messages, parts, calls), strict=True)
    cells = [map(column, rows) for columns, rows in tables for column in columns]
    return aside(lambda: _decode(tenant, thread_id, messages, parts, calls, link), *cells)


def _decode(
    tenant: Tenant,
    thread_id: str,
    messages: Sequence[Row],
    parts: Sequence[Row],
    calls: Sequence[Row],
    link: Link | None,
) -> list[ChatMessage]:
    if (encryption := tenant.encryption) is not None:
        thread = encode_text(thread_id)
        messages = encryption.decrypt("messages", ("branch", *MESSAGE_COLUMNS), messages, thread)
        parts = encryption.decrypt("message_parts", ("branch", *PART_COLUMNS), parts, thread)
        calls = encryption.decrypt("tool_calls", ("branch", *CALL_COLUMNS), calls, thread)
    parts_of: dict[_Place, list[Row]] = defaultdict(list)
    for row in parts:
        parts_of[row[0], row[1]].append(row)
    decoded: list[ChatMessage] = []
    try:
        calls_of = _decode_calls(calls)
        for start in range(0, len(messages), _BLOCK):
            block = _decode_block(thread_id, messages[start : start + _BLOCK], parts_of, calls_of)
            if link is not None:
                link(block)
            decoded += block
        return decoded
    except UNREADABLE:
        # Looking for the cell now costs intact rows nothing.
        tables = (("messages", MESSAGE_COLUMNS, messages), ("message_parts", PART_COLUMNS, parts))
        damaged = _find_damage(thread_id, *tables, ("tool_calls", CALL_COLUMNS, calls))
        if damaged is None:
            raise
    raise damaged  # outside of the handler, because the error there may quote the cell


def _find_damage(thread_id: str, *tables: tuple[str, Sequence[str], Sequence[Row]]) -> DamagedCell | None:
    """The first cell that its column type cannot decode."""
    for name, columns, rows in tables:
        table = TABLES[name]
        for row in rows:
            cells = {"thread_id": thread_id, **dict(zip(("branch", *columns), row, strict=True))}
            for column in columns:
                if cells[column] is not None and not _is_readable(table.c[column], cells):
                    return damaged_cell(table, column, cells)
    return None


def _is_readable(column: Column[Any], cells: Mapping[str, Any]) -> bool:
    stored = cells[column.name]
    if column.name == "arguments" and cells["arguments_form"] == "object":
        return can_decode(_OBJECT, stored)
    if column.name == "violations":
        return can_decode(column.type, stored) and all(type(item) is dict for item in decode_json(stored))
    return can_decode(column.type, stored)


_OBJECT = JsonText(dict)
_LIST = JsonText(list)


def decode_each(
    tenant: Tenant, thread_id: str, messages: Sequence[Row], parts: Sequence[Row], calls: Sequence[Row]
) -> list[tuple[int, int, ChatMessage | ChatLedgerError]]:
    """As `decode_messages`, with the branch and seq of each message, and an error in the place of each that cannot be
    read. Raises EncryptionError.
    """
    places = [(row[0], row[_SEQ]) for row in messages]
    try:
        decoded = decode_messages(tenant, thread_id, messages, parts, calls)
        return [(*place, message) for place, message in zip(places, decoded, strict=True)]
    except ChatLedgerError as error:
        if not is_damage(error):
            raise
    return [
        (*place, _decode_or_error(tenant, thread_id, row, *(_rows_of(place, rows) for rows in (parts, calls))))
        for place, row in zip(places, messages, strict=True)
    ]


_SEQ = 1 + MESSAGE_COLUMNS.index("seq")


def _rows_of(place: tuple[int, int], rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if (row[0], row[1]) == place]


def _decode_or_error(
    tenant: Tenant, thread_id: str, row: Row, parts: Sequence[Row], calls: Sequence[Row]
) -> ChatMessage | ChatLedgerError:
    try:
        return decode_messages(tenant, thread_id, [row], parts, calls)[0]
    except ChatLedgerError as error:
        if not is_damage(error):
            raise
        return error


def is_damage(error: ChatLedgerError) -> bool:
    """Whether the rows of one object are to blame, so that the others can still be read. A missing key is no damage."""
    if isinstance(error, EncryptionError):
        return error.place is not None and error.reason != "no-key"
    return isinstance(error, (DamagedCell, HalfStored))


def _decode_block(
    thread_id: str,
    rows: Sequence[Row],
    parts_of: Mapping[_Place, Sequence[Row]],
    calls_of: Mapping[_Place, list[ToolCall]],
) -> list[ChatMessage]:
    """One loop, written out field by field, because a history spends most of its time here.

    A text that is less than ESCAPE_MARK is stored as it is. Nearly every text is, and a comparison costs less than a
    call of `decode_text`.
    """
    defaults = {**_BLANK, "thread_id": thread_id}
    values: list[dict[str, Any]] = []
    set_fields: list[set[str]] = []
    stored_moment: object = None
    moment: datetime | None = None
    for (
        branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error, run_id,
        format_, residual, response_metadata, custom_data, seq, state, violations, created_at,
    ) in rows:  # fmt: skip
        fields = defaults.copy()
        values.append(fields)
        fields["role"] = role if role in ROLES else decode_text(role)
        fields["branch"] = branch
        fields["seq"] = seq
        fields["state"] = state
        if moment is None or created_at != stored_moment:  # the messages of an append share one moment
            stored_moment, moment = created_at, _decode_moment(created_at)
        fields["created_at"] = moment
        fields["violations"] = [] if violations is None else _decode_violations(violations)
        if content_form == "str":  # nearly all messages
            fields["content"] = text if text and text < ESCAPE_MARK else decode_text(text or "")
        elif content_form is not None:
            parts = _parts_of_one(thread_id, branch, seq, parts_of)
            fields["content"] = _decode_content(content_form, text, parts)
        if call_count is not None:
            fields["tool_calls"] = calls = calls_of.get((branch, seq), [])
            if len(calls) != call_count:
                # :d raises ValueError for a count that is a text
                stored = f"{len(calls)} of its {call_count:d} calls are stored"
                raise HalfStored(thread_id, branch, seq, stored)
        if message_id is not None:
            fields["message_id"] = message_id if message_id < ESCAPE_MARK else decode_text(message_id)
        if tool_call_id is not None:
            fields["tool_call_id"] = tool_call_id if tool_call_id < ESCAPE_MARK else decode_text(tool_call_id)
        if run_id is not None:
            fields["run_id"] = run_id if run_id < ESCAPE_MARK else decode_text(run_id)
        often = (
            content_form is None, call_count is None, message_id is None, tool_call_id is None, run_id is None,
            role != "tool",
        )  # fmt: skip
        if (  # as in nearly all messages
            reasoning_form is name is is_error is format_ is residual
            is response_metadata is custom_data is violations is None
        ):  # fmt: skip
            set_fields.append(_given(often))
            continue
        if reasoning_form is not None:
            parts = _parts_of_one(thread_id, branch, seq, parts_of)
            if reasoning_form == "str" and not any(row[3] == "reasoning" for row in parts):
                raise HalfStored(thread_id, branch, seq, "its reasoning is not stored")
            fields["reasoning"] = _decode_reasoning(reasoning_form, parts)
        if name is not None:
            fields["name"] = decode_text(name)
        if is_error is not None:
            fields["is_error"] = _FLAGS[is_error]
        if format_ is not None:
            fields["format"] = decode_text(format_)
        if residual is not None:
            fields["residual"] = decode_json(residual)
        if response_metadata is not None:
            fields["response_metadata"] = decode_object(response_metadata)
        if custom_data is not None:
            fields["custom_data"] = decode_object(custom_data)
        rarely = (
            reasoning_form is None, name is None, is_error is None, format_ is None, residual is None,
            response_metadata is None, custom_data is None, violations is None,
        )  # fmt: skip
        set_fields.append(_given(often, rarely))
    return revive_all(ChatMessage, values, set_fields)


class HalfStored(StorageError):
    """Rows of a message are missing. The ledger always writes them all, so somebody else deleted them."""

    def __init__(self, thread_id: str, branch: int, seq: int, missing: str) -> None:
        super().__init__(
            f"thread {thread_id!r}, branch {branch}, seq {seq}: rows of the message are missing: {missing}; "
            "restore them from a backup"
        )
        self.thread_id = thread_id
        self.branch = branch
        self.seq = seq
        self.missing = missing


def _parts_of_one(thread_id: str, branch: int, seq: int, parts_of: Mapping[_Place, Sequence[Row]]) -> Sequence[Row]:
    """The part rows of a message. Raises HalfStored if rows are missing. It cannot see parts that are missing at the
    end of a list.
    """
    parts = parts_of.get((branch, seq), ())
    if parts and parts[-1][2] != len(parts) - 1:
        raise HalfStored(thread_id, branch, seq, f"{len(parts)} of at least {parts[-1][2] + 1} parts are stored")
    return parts


_BLANK = blank(ChatMessage)
_ALWAYS = {"role", "thread_id", "branch", "seq", "state", "created_at"}
_OFTEN = ("content", "tool_calls", "message_id", "tool_call_id", "run_id", "answers")
_RARELY = (
    "reasoning", "name", "is_error", "format", "residual", "response_metadata", "custom_data", "violations",
)  # fmt: skip
_NO_RARE = (True,) * len(_RARELY)


@lru_cache(maxsize=1_024)
def _given(often: tuple[bool, ...], rarely: tuple[bool, ...] = _NO_RARE) -> set[str]:
    """The names of the fields that a message has: `_ALWAYS`, and those of `_OFTEN` and `_RARELY` that are not absent.
    All messages of one shape share one set.
    """
    absent = zip(_OFTEN + _RARELY, often + rarely, strict=True)
    return _ALWAYS | {name for name, gone in absent if not gone}


def _decode_moment(stored: datetime | int) -> datetime:
    if not isinstance(stored, datetime):
        return _read_microseconds(stored)
    # asyncpg returns the first and the last moment of its calendar without a zone
    return stored if stored.tzinfo is not None else stored.replace(tzinfo=UTC)


_read_microseconds = lru_cache(maxsize=16)(from_microseconds)  # the messages of an append share one moment


_FLAGS = {0: False, 1: True}


def _decode_violations(stored: str) -> list[Violation]:
    return [build(Violation, violation) for violation in _LIST.decode(stored)]


def _decode_content(form: str, text: str | None, rows: Sequence[Row]) -> str | list[Part]:
    if form == "str":
        return decode_text(text or "")
    if form == "text":
        return [build(TextPart, {"text": decode_text(text or "")})]
    return [_decode_part(row) for row in rows if row[3] == "content"]


def _decode_reasoning(form: str, rows: Sequence[Row]) -> str | list[Part]:
    own = [row for row in rows if row[3] == "reasoning"]
    return "".join(decode_text(row[5] or "") for row in own) if form == "str" else [_decode_part(row) for row in own]


def _decode_part(row: Row) -> Part:
    _, _, _, _, kind, text, body = row
    fields: dict[str, Any] = {} if body is None else decode_object(body)
    if text is not None:
        fields["text"] = decode_text(text)
    if kind not in PART_MODELS:  # a kind of a newer release
        return OpaquePart(type=kind, value={"kind": kind, **fields})
    part: Part = build(PART_MODELS[kind], fields)
    return part


def _decode_calls(rows: Sequence[Row]) -> dict[_Place, list[ToolCall]]:
    """The calls of each message that has any."""
    values = []
    for _, _, _, call_id, name, arguments, form, extras in rows:
        if arguments is not None:
            if form != "str":
                arguments = decode_object(arguments)
            elif not arguments < ESCAPE_MARK:
                arguments = decode_text(arguments)
        values.append(
            {
                "id": call_id if call_id is None or call_id < ESCAPE_MARK else decode_text(call_id),
                "name": name if name < ESCAPE_MARK else decode_text(name),
                "arguments": arguments,
                "extras": None if extras is None else decode_object(extras),
            }
        )
    calls_of: dict[_Place, list[ToolCall]] = defaultdict(list)
    for row, call in zip(rows, revive_all(ToolCall, values, repeat(CALL_FIELDS)), strict=True):
        calls_of[row[0], row[1]].append(call)
    return calls_of
