"""Tool calls, both ways: the `tool_use` blocks of an assistant's message."""

from __future__ import annotations

from chatledger.formats.anthropic.names import TOOL_USE
from chatledger.formats.wire.fields import text_at, wrong
from chatledger.formats.wire.residual import keep, put_back
from chatledger.models import ToolCall
from chatledger.models.json import JsonValue


def read_call(block: dict[str, JsonValue], path: str) -> tuple[ToolCall, JsonValue]:
    """A call and its residual. Raises DecodeError. A text for the object is what a cut-off stream leaves."""
    arguments = block.get("input")
    if not isinstance(arguments, (dict, str)):
        raise wrong(f"{path}.input", "an object", arguments)
    call = ToolCall(id=text_at(block, "id", path), name=text_at(block, "name", path), arguments=arguments)
    return call, keep(block, _encoded(call, ""))


def write_call(call: ToolCall, made_id: str, residual: JsonValue = None) -> dict[str, JsonValue]:
    """The block. A call without an id gets the one that was made for it."""
    return put_back(_encoded(call, made_id), residual)


def _encoded(call: ToolCall, made_id: str) -> dict[str, JsonValue]:
    return {
        "type": TOOL_USE,
        "id": made_id if call.id is None else call.id,
        "name": call.name,
        "input": {} if call.arguments is None else call.arguments,
    }
