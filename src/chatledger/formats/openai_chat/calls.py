"""Tool calls, both ways: functions, custom tools with free text, the legacy `function_call`, and unknown types."""

from __future__ import annotations

from types import NoneType

from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.residual import FORM, keep, keep_envelope, nested, restore, restore_envelope
from chatledger.models import ToolCall
from chatledger.models.json import JsonValue
from chatledger.models.trusted import build

CUSTOM = "custom"
OTHER = "other"
"""The form of a call of an unknown type: the type serves as its name, the residual keeps the rest."""


def read_call(value: JsonValue, path: str) -> tuple[ToolCall, JsonValue]:
    """A call and its residual. A call without a `type` is a call of a function."""
    source = as_object(value, path)
    kind = optional_text_at(source, "type", path) or "function"
    if kind == "function":
        fields, form = _read_named(object_at(source, kind, path), "arguments", f"{path}.{kind}"), None
    elif kind == CUSTOM:
        fields, form = _read_named(object_at(source, kind, path), "input", f"{path}.{kind}"), CUSTOM
    else:
        fields, form = {"name": kind}, OTHER
    call = _checked({**fields, "id": optional_text_at(source, "id", path)})
    return call, keep_envelope(source, _encoded(call, form), form)


def write_call(call: ToolCall, residual: JsonValue = None) -> dict[str, JsonValue]:
    return restore_envelope(_encoded(call, nested(residual, FORM)), residual)


def read_function_call(value: JsonValue, path: str) -> tuple[ToolCall, JsonValue]:
    """The single call of a legacy message, which has no id and no envelope."""
    source = as_object(value, path)
    call = _checked(_read_named(source, "arguments", path))
    return call, keep(source, _named(call, "arguments"))


def write_function_call(call: ToolCall, residual: JsonValue = None) -> dict[str, JsonValue]:
    return restore(_named(call, "arguments"), residual)


def _read_named(source: dict[str, JsonValue], key: str, path: str) -> dict[str, JsonValue]:
    arguments = source.get(key)
    if arguments is not None and not isinstance(arguments, (str, dict)):
        raise wrong(f"{path}.{key}", "text, an object or null", arguments)
    return {"name": text_at(source, "name", path), "arguments": arguments}


def _checked(fields: dict[str, JsonValue]) -> ToolCall:
    """The call; if all fields are text or None, it needs no validation and no copy of a dict."""
    return build(ToolCall, fields) if _TEXT_OR_NONE.issuperset(map(type, fields.values())) else ToolCall(**fields)


_TEXT_OR_NONE = frozenset({str, NoneType})


def _encoded(call: ToolCall, form: JsonValue) -> dict[str, JsonValue]:
    id_: dict[str, JsonValue] = {} if call.id is None else {"id": call.id}
    if form == OTHER:
        return {**id_, "type": call.name}
    if form == CUSTOM:
        return {**id_, "type": CUSTOM, CUSTOM: _named(call, "input")}
    return {**id_, "type": "function", "function": _named(call, "arguments")}


def _named(call: ToolCall, key: str) -> dict[str, JsonValue]:
    return {"name": call.name, key: call.arguments}
