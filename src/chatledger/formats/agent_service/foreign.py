"""Carries messages of other formats: custom_data holds the fields that this format cannot express.

    carry(write_fields(message), message)    the encoded message, with the fields that reading it would not give back
    unpack(read_fields(source), source)      the original message, of its own format and with its own residual

A source is unpacked only if it equals the output of `carry` to the last value. Any other source keeps its custom_data
as plain data, so that data which only looks similar is not lost. An unpacked message has its own format: `carry` writes
the same source again, and without `carry` the source has only what this format can express.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from chatledger.formats.agent_service.read import read_fields
from chatledger.formats.agent_service.write import CARRIED, write_fields
from chatledger.models import LENIENT
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import JsonObject, JsonValue, same_json

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
"""The fields of the source, without those that the ledger adds: ids, positions, times, the run."""


def carry(encoded: JsonObject, message: LedgerMessage) -> JsonObject:
    """The encoded message with the fields that it cannot express; unchanged if there are none."""
    # A key of the same name in the message's own data is carried as well.
    bare = {**encoded, _DATA: _without_carried(encoded[_DATA])}
    whole, plain = _fields_of(message), _fields_of(read_fields(bare))
    unsaid = {name: whole[name] for name in _FIELDS if not same_json(whole[name], plain[name])}
    if unsaid.keys() <= {_FORMAT}:
        return encoded
    return {**bare, _DATA: {**bare[_DATA], CARRIED: unsaid}}


def unpack(message: LedgerMessage, source: JsonObject) -> LedgerMessage | None:
    """The message that the source carries, or None if it carries none."""
    carried = (message.custom_data or {}).get(CARRIED)
    if not isinstance(carried, dict) or _FORMAT not in carried or not carried.keys() <= set(_FIELDS):
        return None
    data = _without_carried(message.custom_data or {})
    fields = {**_fields_of(message), "run_id": message.run_id, _DATA: data or None, **carried}
    try:
        whole = LedgerMessage.model_validate(fields, context=LENIENT)
    except ValidationError:
        return None
    return whole if same_json(carry(write_fields(whole), whole), source) else None


def _without_carried(data: JsonObject) -> JsonObject:
    return {key: value for key, value in data.items() if key != CARRIED}


def _fields_of(message: LedgerMessage) -> JsonObject:
    return {name: _plain(getattr(message, name)) for name in _FIELDS}


def _plain(value: Any) -> JsonValue:
    """Parts and calls as JSON. Free JSON is not dumped: it may nest deeper than Pydantic dumps."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, list) and all(isinstance(item, BaseModel) for item in value):
        return [_plain(item) for item in value]
    return value
