"""What a bare load gives: three range scans, by the columns that chatledger reads, into slotted objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS

SCANNED = {"messages": MESSAGE_COLUMNS, "message_parts": PART_COLUMNS, "tool_calls": CALL_COLUMNS}


@dataclass(slots=True)
class LoadedPart:
    seq: int
    idx: int
    channel: str
    kind: str
    text: str | None
    body: str | None


@dataclass(slots=True)
class LoadedCall:
    seq: int
    idx: int
    call_id: str | None
    name: str
    arguments: str | None
    arguments_form: str | None
    extras: str | None


@dataclass(slots=True)
class LoadedMessage:
    message_id: str | None
    role: str
    name: str | None
    content_form: str | None
    text: str | None
    reasoning_form: str | None
    call_count: int | None
    tool_call_id: str | None
    is_error: bool | None
    run_id: str | None
    format: str | None
    residual: str | None
    response_metadata: str | None
    custom_data: str | None
    seq: int
    state: str
    violations: str | None
    created_at: Any
    parts: list[LoadedPart] = field(default_factory=list)
    calls: list[LoadedCall] = field(default_factory=list)


def assemble(
    messages: Iterable[Sequence[Any]], parts: Iterable[Sequence[Any]], calls: Iterable[Sequence[Any]]
) -> list[LoadedMessage]:
    """Rows in order of seq as objects, each part and call with its message."""
    loaded = [LoadedMessage(*row) for row in messages]
    first = loaded[0].seq if loaded else 0
    for row in parts:
        loaded[row[0] - first].parts.append(LoadedPart(*row))
    for row in calls:
        loaded[row[0] - first].calls.append(LoadedCall(*row))
    return loaded
