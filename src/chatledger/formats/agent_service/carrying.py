"""Messages of other formats under way in this one: what a row cannot say travels in its custom_data.

    carry(write(message), message)     the row, with the fields that reading it would not give back
    unpack(read(row), row)             the message again, of its own format and with its own residual

Only a row that is to the last value what `carry` writes is unpacked; any other keeps its custom_data as plain data, so
that nothing which merely looks alike is lost. An unpacked message is of its own format: written with `carry` it gives
the same row again, without it the row says what it can.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from chatledger.formats.agent_service.reading import read
from chatledger.formats.agent_service.sources import Row
from chatledger.formats.agent_service.words import CARRIED
from chatledger.formats.agent_service.writing import write
from chatledger.models import LENIENT
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import JsonValue, same_json

_FORMAT = "format"
_DATA = "custom_data"
_FIELDS = (
    "role",
    "content",
    "reasoning",
    "name",
    "tool_calls",
    "tool_call_id",
    "is_error",
    "state",
    "response_metadata",
    _DATA,
    _FORMAT,
    "residual",
)
"""What the source said; not what the ledger adds: ids, positions, times, the run."""


def carry(row: Row, message: LedgerMessage) -> Row:
    """The row with all that it could not say; the same row where there is nothing of the kind."""
    bare = {**row, _DATA: _without_carried(row[_DATA])}  # a key of the same name in its own data is carried as well
    whole, plain = _said(message), _said(read(bare))
    unsaid = {name: whole[name] for name in _FIELDS if not same_json(whole[name], plain[name])}
    if unsaid.keys() <= {_FORMAT}:
        return row
    return {**bare, _DATA: {**bare[_DATA], CARRIED: unsaid}}


def unpack(message: LedgerMessage, row: Row) -> LedgerMessage | None:
    """The message that was carried in the row, or None if none was."""
    carried = (message.custom_data or {}).get(CARRIED)
    if not isinstance(carried, dict) or _FORMAT not in carried or not carried.keys() <= set(_FIELDS):
        return None
    data = _without_carried(message.custom_data or {})
    said = {**_said(message), "run_id": message.run_id, _DATA: data or None, **carried}
    try:
        whole = LedgerMessage.model_validate(said, context=LENIENT)
    except ValidationError:
        return None
    return whole if same_json(carry(write(whole), whole), row) else None


def _without_carried(data: Row) -> Row:
    return {key: value for key, value in data.items() if key != CARRIED}


def _said(message: LedgerMessage) -> Row:
    return {name: _plain(getattr(message, name)) for name in _FIELDS}


def _plain(value: Any) -> JsonValue:
    """Parts and calls as JSON. Free JSON is left as it is: it may nest deeper than Pydantic dumps."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, list) and all(isinstance(item, BaseModel) for item in value):
        return [_plain(item) for item in value]
    return value
