"""ShareGPT records: `{"conversations": [{"from", "value"}, …], "system": …, "tools": …}`, as trainers read them.

The value of a `function_call` is a JSON object `{"name", "arguments"}` or a list of such objects. An `observation` is a
result. Neither has an id, so a result answers the first open call. The record's system text becomes the first message.
The definitions under `tools` are not a message: they stay with the rest of the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Written
from chatledger.formats.losses.measure import losses_between
from chatledger.formats.wire.fields import wrong
from chatledger.formats.wire.residual import keep, restore
from chatledger.models import ChatMessage, RulesLevel, ToolCall
from chatledger.models.json import JsonValue
from chatledger.models.messages import LENIENT, ROLES
from chatledger.transfer.envelope import Location
from chatledger.transfer.fields import require_path
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Measured

NAME = "sharegpt"
TURNS, SYSTEM = "conversations", "system"
FUNCTION_CALL = "function_call"
_FIELDS = (TURNS, "conversation")
_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    FUNCTION_CALL: "assistant",
    "observation": "tool",
    "tool": "tool",
    "system": "system",
}
_WORDS = {"user": "human", "assistant": "gpt", "tool": "observation", "system": "system", "developer": "system"}
OF_RECORD = "of-record"
"""The key in the residual of a system message whose text came from the record and not from its turns."""


class ShareGPT:
    name = NAME
    branching = False

    def recognises(self, record: JsonValue) -> bool:
        turns = _turns_of(record)
        return bool(turns) and all(map(_is_turn, turns))

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        if isinstance(record, list) and fieldname is None:
            return Location()
        path = require_path(record, *(_FIELDS if fieldname is None else (fieldname,)))
        if len(path) == 1 and isinstance(record.get(SYSTEM), str) and record[SYSTEM]:
            return Location((), (path[0], SYSTEM), single=False)
        return Location(path[:-1], path[-1:])

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        return payload

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        head = []
        where, turns = TURNS, payload
        if isinstance(payload, dict):  # it holds the system text and the turns
            where = next(key for key in payload if key != SYSTEM)
            turns = payload[where]
            head = [ChatMessage(role="system", content=payload[SYSTEM], format=NAME, residual={OF_RECORD: where})]
        if not isinstance(turns, list):
            raise DecodeError(where, "a list of turns is expected")
        lenient = rules == "lenient"
        read_turns = [_read(turn, f"{where}[{number}]", lenient=lenient) for number, turn in enumerate(turns)]
        return Conversation([BranchMessages([*head, *read_turns])], sources=() if head else turns)

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        messages = branches[0].messages
        written = _written(messages)
        [branch] = self.decode(written.payload, "lenient").branches
        return Measured(written.payload, losses_between(messages, branch.messages, written))


SHAPE = ShareGPT()


def _turns_of(record: JsonValue) -> list[Any]:
    turns = record if isinstance(record, list) else None
    if isinstance(record, dict):
        turns = next((record[name] for name in _FIELDS if name in record), None)
    return turns if isinstance(turns, list) else []


def _is_turn(turn: JsonValue) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("from"), str) and "value" in turn


def _beside(message: ChatMessage) -> str | None:
    """The field of the turns, if the message is the record's system text; else None."""
    known = message.format == NAME and message.role == "system" and isinstance(message.residual, dict)
    field = message.residual.get(OF_RECORD) if known else None  # type: ignore[union-attr]
    return field if isinstance(field, str) else None


def _read(turn: JsonValue, path: str, *, lenient: bool) -> ChatMessage:
    if not _is_turn(turn):
        raise DecodeError(path, "an object with 'from' and 'value' is expected")
    word, value = turn["from"], turn["value"]
    if not isinstance(value, str | None):
        raise wrong(f"{path}.value", "text", value)
    if word not in _ROLES and not lenient:
        raise DecodeError(f"{path}.from", f"unknown speaker {word[:80]!r}; use one of {', '.join(_ROLES)}")
    fields: dict[str, Any] = {"role": _ROLES.get(word, word), "content": value, "format": NAME}
    if word == FUNCTION_CALL:
        calls = _read_calls(value)
        if calls is None and not lenient:
            raise DecodeError(
                f"{path}.value", "a JSON object with a name and arguments, or a list of them, is expected"
            )
        if calls is not None:
            fields |= {"content": None, "tool_calls": calls}
    message = ChatMessage.model_validate(fields, context=LENIENT)
    residual = keep(turn, _turn(message))
    return message if residual is None else message.model_copy(update={"residual": residual})


def _read_calls(value: str | None) -> list[ToolCall] | None:
    try:
        value_read = json.loads(value or "")
        calls = [_read_call(call) for call in (value_read if isinstance(value_read, list) else [value_read])]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return calls or None


def _read_call(call: Any) -> ToolCall:
    """Raises KeyError, TypeError or ValueError if the object is not a call."""
    if not isinstance(call["name"], str) or not call["name"]:
        raise TypeError("a call has a name")
    return ToolCall(name=call["name"], arguments=call.get("arguments"))


def _written(messages: Sequence[ChatMessage]) -> Written:
    """The turns of messages from any format, each with the index of its message."""
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    indexed = [(index, turn) for index, message in enumerate(messages) for turn in _turns(message)]
    field = _beside(messages[0]) if messages else None
    payload: JsonValue = [turn for _, turn in indexed]
    if field is not None:  # the first turn is the record's system text
        payload = {field: payload[1:], SYSTEM: messages[0].text}
    return Written(payload, [(index,) for index, _ in indexed], own)


def _turns(message: ChatMessage) -> list[dict[str, JsonValue]]:
    """The turns of a message. In a message of another format, text beside calls becomes a turn of its own. A custom
    message has no turn.
    """
    if message.format == NAME:
        return [restore(_turn(message), message.residual)]
    if message.role == "custom":
        return []
    texts = [ChatMessage(role="assistant", content=message.content)] if message.tool_calls and message.text else []
    return [_turn(turn) for turn in (*texts, message)]


def _turn(message: ChatMessage) -> dict[str, JsonValue]:
    if message.tool_calls:
        calls = [{"name": call.name, "arguments": _arguments(call)} for call in message.tool_calls]
        return {"from": FUNCTION_CALL, "value": _text(calls[0] if len(calls) == 1 else calls)}
    word = _WORDS.get(message.role, message.role if message.role not in ROLES else "human")
    content = None if message.content is None else message.text
    return {"from": word, "value": content}


def _arguments(call: ToolCall) -> JsonValue:
    """The arguments as parsed JSON, or as text if they are not JSON."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        return json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
