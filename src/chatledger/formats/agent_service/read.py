"""A message of this format as a message of the ledger.

An empty list or object is this format's default, so it becomes None. The residual records whether it was there. It also
keeps invalid values, which only lenient rules accept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.models import ChatMessage
from chatledger.formats.agent_service.write import (
    CALLS,
    GIVEN,
    NAME,
    ROLE_OF_TYPE,
    TOOL_CALLS,
    with_calls,
    write_fields,
)
from chatledger.formats.wire.fields import nameless, step_of
from chatledger.formats.wire.plain import as_json
from chatledger.formats.wire.residual import keep
from chatledger.models import LENIENT, Loss, RulesLevel, ToolCall
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import JsonObject, JsonValue, dumps

# Each message of a payload as the dict that its class would dump, for dicts and objects.
#
# Objects are read by their fields and never imported, so any class with these fields works: a service's own, a fork's,
# a newer class with unknown fields. Their attributes are read rather than their dump, which would hide a live object
# inside a free dict.

MESSAGES = "messages"
_NAMES = re.compile(r"\.(type|tool_call_id|run_id)|\.tool_calls\[\d+\]\.(id|name)")
"""The paths of ids and names in a message."""


@dataclass(frozen=True, slots=True)
class ServiceSource:
    """A message that came in, and its path. `set_names`: the fields that were set on an object, if not all were."""

    fields: JsonObject
    path: str
    set_names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A payload taken apart. `around` is the history that holds the messages, without them; None for a bare list."""

    around: JsonObject | None
    sources: list[ServiceSource]
    losses: list[Loss]


def open_payload(payload: object, rules: RulesLevel) -> Opened:
    """The messages of a list or of a ChatHistory. Raises DecodeError for anything else."""
    losses: list[Loss] = []
    if isinstance(payload, (list, tuple)):
        return Opened(None, _sources(payload, "$", rules, losses), losses)
    history = fields_of(payload)
    messages = None if history is None else history.get(MESSAGES)
    if history is None or not isinstance(messages, (list, tuple)):
        raise DecodeError("$", "expected a list of messages or a chat history")
    around = as_json({**history, MESSAGES: []}, "$", _NAMES, losses, lenient=rules == "lenient")
    return Opened(around, _sources(messages, f"$.{MESSAGES}", rules, losses), losses)


def fields_of(value: object) -> dict[str, Any] | None:
    """A dict unchanged, a model object as a dict of its fields in order, None for anything else."""
    if isinstance(value, dict):
        return value
    fields = getattr(type(value), "model_fields", None)
    if not isinstance(fields, dict):
        return None
    held = {name: vars(value)[name] for name in fields if name in vars(value)}
    return {**held, **(getattr(value, "model_extra", None) or {})}


def _sources(messages: Sequence[object], path: str, rules: RulesLevel, losses: list[Loss]) -> list[ServiceSource]:
    return [_source(message, f"{path}[{index}]", rules, losses) for index, message in enumerate(messages)]


def _source(message: object, path: str, rules: RulesLevel, losses: list[Loss]) -> ServiceSource:
    fields = fields_of(message)
    if fields is None:
        raise DecodeError(path, f"expected a message object, not {type(message).__name__}")
    checked = as_json(fields, path, _NAMES, losses, lenient=rules == "lenient")
    return ServiceSource(checked, path, _given(message, fields))


def _given(message: object, fields: dict[str, Any]) -> list[str] | None:
    if isinstance(message, dict):
        return None
    set_names = [name for name in fields if name in getattr(message, "model_fields_set", fields)]
    return None if len(set_names) == len(fields) else set_names


def check(fields: JsonObject, path: str, rules: RulesLevel) -> None:
    """Raise DecodeError with the path of the first invalid value; lenient requires only a type."""
    if rules == "lenient":
        if not isinstance(fields.get("type"), str):
            raise DecodeError(f"{path}.type", "missing or not text: a message needs a type")
        return
    try:
        ChatMessage.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DecodeError(path + "".join(map(step_of, first["loc"])), first["msg"]) from error
    for index, call in enumerate(fields.get(TOOL_CALLS) or ()):
        if not call["name"]:
            raise nameless(f"{path}.{TOOL_CALLS}[{index}].name")
    if fields.get("run_id") == "":
        raise DecodeError(f"{path}.run_id", "must not be empty; rules='lenient' stores the message without a run")


def read_fields(source: JsonObject, *, lenient: bool = False) -> LedgerMessage:
    """The message of checked fields, without its residual.

    Lenient keeps in the residual what is valid here but not in the store: a call without a name, a run without an id.
    """
    fields = {
        "role": ROLE_OF_TYPE.get(source["type"], source["type"]),
        "content": _text(source.get("content")),
        "tool_calls": _calls(source.get("tool_calls"), lenient),
        "tool_call_id": _text(source.get("tool_call_id")),
        "run_id": _run_id(source.get("run_id"), lenient),
        "response_metadata": _object(source.get("response_metadata")),
        "custom_data": _object(source.get("custom_data")),
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
    """The calls, if all of them have names."""
    if not value or not isinstance(value, list):
        return None
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in value):
        return None
    if lenient and not all(call["name"] for call in value):
        return None
    return [_call(call) for call in value]


def _call(call: JsonObject) -> ToolCall:
    return ToolCall(id=_text(call.get("id")), name=call["name"], arguments=_arguments(call.get("args")))


def _arguments(args: JsonValue) -> str | dict[str, JsonValue] | None:
    return args if args is None or isinstance(args, (str, dict)) else dumps(args)


def keep_difference(source: JsonObject, message: LedgerMessage, set_names: list[str] | None) -> JsonObject | None:
    """The residual with which `write_message` gives the source again."""
    written = write_fields(message)
    residual: JsonObject = {}
    calls = _keep_calls(source.get(TOOL_CALLS), written[TOOL_CALLS])
    if any(calls):
        residual[CALLS] = calls
    if set_names is not None:
        residual[GIVEN] = set_names
    return {**residual, **(keep(source, with_calls(written, calls)) or {})} or None


def _keep_calls(source: JsonValue, written: list[JsonObject]) -> list[JsonObject | None]:
    """The residuals of the calls. Empty if the source has other calls: then the message's residual keeps them."""
    if not isinstance(source, list) or len(source) != len(written):
        return []
    return [keep(call, own) for call, own in zip(source, written, strict=True)]


def keep_around(around: JsonObject) -> JsonObject | None:
    """The residual of a history's other keys, or None if it has only messages."""
    return keep(around, {MESSAGES: []})
