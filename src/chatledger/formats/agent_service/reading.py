"""A row as a message of the ledger: what the typed fields can hold of it.

An empty list or object is this format's default and says nothing, so it becomes None; whether it stood there is kept
with the residual. Values that no valid row has are left to the residual as well, and reach here only leniently.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.models import ChatMessage
from chatledger.formats.agent_service.sources import Row
from chatledger.formats.agent_service.words import NAME, ROLE_OF_TYPE
from chatledger.models import LENIENT, RulesLevel, ToolCall
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import JsonValue, dumps


def check(row: Row, path: str, rules: RulesLevel) -> None:
    """Raise DecodeError with the path of the first thing that is not of the format; leniently only for no type."""
    if rules == "lenient":
        if not isinstance(row.get("type"), str):
            raise DecodeError(f"{path}.type", "a message says of which type it is")
        return
    try:
        ChatMessage.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DecodeError(path + "".join(_step(step) for step in first["loc"]), first["msg"]) from error


def _step(step: int | str) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def read(row: Row, *, lenient: bool = False) -> LedgerMessage:
    """The message of a checked row, without its residual.

    Lenient leaves to it what is valid here and which the store refuses: a call without a name, a run without an id.
    """
    fields = {
        "role": ROLE_OF_TYPE.get(row["type"], row["type"]),
        "content": _text(row.get("content")),
        "tool_calls": _calls(row.get("tool_calls"), lenient),
        "tool_call_id": _text(row.get("tool_call_id")),
        "run_id": _run_id(row.get("run_id"), lenient),
        "response_metadata": _object(row.get("response_metadata")),
        "custom_data": _object(row.get("custom_data")),
        "format": NAME,
    }
    return LedgerMessage.model_validate(fields, context=LENIENT)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _run_id(value: JsonValue, lenient: bool) -> str | None:
    return None if lenient and value == "" else _text(value)


def _object(value: JsonValue) -> dict[str, Any] | None:
    return value if value and isinstance(value, dict) else None


def _calls(value: JsonValue, lenient: bool) -> list[ToolCall] | None:
    """The calls, if each is one: a call without a name is nothing that could be told from another."""
    if not value or not isinstance(value, list):
        return None
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in value):
        return None
    if lenient and not all(call["name"] for call in value):
        return None
    return [_call(call) for call in value]


def _call(call: Row) -> ToolCall:
    return ToolCall(id=_text(call.get("id")), name=call["name"], arguments=_arguments(call.get("args")))


def _arguments(args: JsonValue) -> str | dict[str, JsonValue] | None:
    return args if args is None or isinstance(args, (str, dict)) else dumps(args)
