"""What the typed fields cannot hold of a row, in the residual of its message.

    calls     one residual for each tool call, None where its own fields say it all
    given     the fields that were set on an object, when not all were
    around    what a chat history holds beside its messages; on the first message of the payload
    keys, extra    those of the row itself, as in chatledger.formats.wire.residual

The run of a message is the one thing that storing may add: it comes back even where the row had none.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.agent_service.sources import MESSAGES, Row
from chatledger.formats.agent_service.words import NAME
from chatledger.formats.agent_service.writing import write
from chatledger.formats.wire.residual import keep, restore
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import JsonValue

CALLS = "calls"
GIVEN = "given"
AROUND = "around"

_TOOL_CALLS = "tool_calls"
_RUN_ID = "run_id"


class Dump(dict[str, JsonValue]):
    """A row that came from an object, and remembers which fields had been set on it."""

    given: frozenset[str]


def keep_row(row: Row, message: LedgerMessage, given: list[str] | None) -> Row | None:
    """The residual with which `restore_row` gives the row again."""
    written = write(message)
    residual: Row = {}
    calls = _keep_calls(row.get(_TOOL_CALLS), written[_TOOL_CALLS])
    if any(calls):
        residual[CALLS] = calls
    if given is not None:
        residual[GIVEN] = given
    return {**residual, **(keep(row, _with_calls(written, calls)) or {})} or None


def _keep_calls(source: JsonValue, written: list[Row]) -> list[Row | None]:
    """Empty where the source's calls are no calls; they are then kept with the row as they are."""
    if not isinstance(source, list) or len(source) != len(written):
        return []
    return [keep(call, own) for call, own in zip(source, written, strict=True)]


def restore_row(message: LedgerMessage) -> Row:
    """The row that the message was decoded from; as a Dump where not all fields had been set."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    row = restore(_with_calls(write(message), residual.get(CALLS)), residual)
    named = {} if message.run_id is None or row.get(_RUN_ID) is not None else {_RUN_ID: message.run_id}
    given = residual.get(GIVEN)
    if not isinstance(given, list):
        return {**row, **named}
    dump = Dump(row, **named)
    dump.given = frozenset(given if message.run_id is None else [*given, _RUN_ID])
    return dump


def _with_calls(written: Row, residuals: Any) -> Row:
    calls = written[_TOOL_CALLS]
    if not isinstance(residuals, list) or len(residuals) != len(calls):
        return written
    restored = [restore(call, residual) for call, residual in zip(calls, residuals, strict=True)]
    return {**written, _TOOL_CALLS: restored}


def keep_around(around: Row) -> Row | None:
    """What is needed to give a history its other keys again, or None where it has only its messages."""
    return keep(around, {MESSAGES: []})


def around_of(message: LedgerMessage) -> Row | None:
    """What stood around the payload that the message was the first of."""
    if message.format != NAME or not isinstance(message.residual, dict):
        return None
    around = message.residual.get(AROUND)
    return around if isinstance(around, dict) else None
