"""Carrying a message of another origin through Qwen-Agent and back.

    extra["chatledger"] = {"rows": how many rows the message became, "fields": what they do not say}

stands in the first of its rows. Joining the rows gives a message; `fields` are those of its fields that differ from the
original's, so what the rows do say is not said twice. Rows that no longer make a message are decoded as plain ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from chatledger.formats.qwen_agent.rows import message_of
from chatledger.models import LENIENT, ChatMessage
from chatledger.models.json import JsonValue, same_json

KEY = "chatledger"

# All that is said about a message but where in the ledger it stands.
_FIELDS = (
    "role",
    "content",
    "reasoning",
    "name",
    "tool_calls",
    "tool_call_id",
    "is_error",
    "run_id",
    "state",
    "response_metadata",
    "custom_data",
    "format",
    "residual",
)


def with_carried(rows: Sequence[dict[str, JsonValue]], message: ChatMessage) -> list[dict[str, JsonValue]]:
    """The rows of a message, the first with what they do not say of it."""
    joined, original = _fields_of(_join(rows)), _fields_of(message)
    fields = {key: value for key, value in original.items() if not same_json(value, joined[key])}
    extra = {**(rows[0].get("extra") or {}), KEY: {"rows": len(rows), "fields": fields}}
    return [{**rows[0], "extra": extra}, *rows[1:]]


def carried_rows(source: Mapping[str, Any]) -> int:
    """Over how many rows a carried message stands that begins with this one; 0 if none does."""
    envelope = _envelope(source)
    rows, fields = envelope.get("rows"), envelope.get("fields")
    if type(rows) is not int or rows < 1 or not isinstance(fields, dict) or not fields.keys() <= set(_FIELDS):
        return 0
    return rows


def carried(rows: Sequence[Mapping[str, Any]]) -> ChatMessage | None:
    """The message that the rows of a carried one make; None if they do not make one any more."""
    if any(row.get("role") != rows[0].get("role") for row in rows):
        return None
    fields = {**_fields_of(_join([_without_envelope(rows[0]), *rows[1:]])), **_envelope(rows[0])["fields"]}
    try:
        return ChatMessage.model_validate(fields, context=LENIENT)
    except ValidationError:
        return None


def _join(rows: Sequence[Mapping[str, Any]]) -> ChatMessage:
    """One message of the rows: each adds what it has."""
    pieces = [message_of(row) for row in rows]
    calls = [call for piece in pieces for call in piece.tool_calls or ()]
    return pieces[0].model_copy(
        update={
            "reasoning": next((piece.reasoning for piece in pieces if piece.reasoning is not None), None),
            "content": next((piece.content for piece in pieces if piece.content), pieces[0].content),
            "tool_calls": calls or None,
        }
    )


def _fields_of(message: ChatMessage) -> dict[str, JsonValue]:
    return {field: _plain(getattr(message, field)) for field in _FIELDS}


def _plain(value: Any) -> JsonValue:
    """Parts and calls as dicts. Not by a dump, which recurses into JSON that may be deeper than Pydantic goes."""
    if isinstance(value, list):
        return [dict(item) if isinstance(item, BaseModel) else item for item in value]
    return value


def _envelope(source: Mapping[str, Any]) -> dict[str, Any]:
    extra = source.get("extra")
    envelope = extra.get(KEY) if isinstance(extra, dict) else None
    return envelope if isinstance(envelope, dict) else {}


def _without_envelope(row: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in row["extra"].items() if key != KEY}
    return {key: value for key, value in {**row, "extra": extra or None}.items() if key != "extra" or extra}
