"""A message of the ledger as the dict that `message_to_dict` returns for LangChain's message.

The dict has every field of its class, in the order of the class. The residual has the differences of the source:

    keys, extra      of the outer object, `type` and `data`, as in `wire.residual`
    type             the type of the message, if it is not the usual one of its role
    data             of the object `data` without its blocks and calls, as `wire.residual.keep_deep` makes it
    parts            the residuals of content blocks, by index
    calls            the residuals of calls, by index; `form` is `invalid` for one of `invalid_tool_calls`
"""

from __future__ import annotations

from chatledger.formats.langchain.parts import write_block
from chatledger.formats.wire.parts import signed_by
from chatledger.formats.wire.residual import FORM, keep_deep, nested, restore, restore_deep
from chatledger.models import ChatMessage, Part, ThinkPart, ToolCall
from chatledger.models.json import MAX_DEPTH, JsonObject, JsonValue, json_problem, read_text

NAME = "langchain"

TYPE = "type"
DATA = "data"
PARTS = "parts"
CALLS = "calls"
INVALID = "invalid"

AI_TYPES = ("ai", "AIMessageChunk")
TOOL_TYPES = ("tool", "ToolMessageChunk")
CHAT_TYPES = ("chat", "ChatMessageChunk")
SYSTEM_TYPES = ("system", "SystemMessageChunk")
_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    **dict.fromkeys(AI_TYPES, "assistant"),
    **dict.fromkeys(SYSTEM_TYPES, "system"),
    **dict.fromkeys(TOOL_TYPES, "tool"),
    "function": "tool",
    "FunctionMessageChunk": "tool",
}
_TYPES = {"user": "human", "assistant": "ai", "system": "system", "developer": "system", "tool": "tool"}
_CHAT_ROLES = ("user", "assistant", "system", "developer")
"""The roles that a `chat` message may have here. With any other role it is a custom message."""
_OPENAI_ROLE = "__openai_role__"
"""The key of `additional_kwargs` with which langchain-core marks a system message as one of role developer."""
_KWARGS = "additional_kwargs"
_PROVIDER = "model_provider"
"""The key of `response_metadata` with the provider of a message."""
REASONING = "reasoning_content"
"""The key of `additional_kwargs` in which several integrations put reasoning as text."""

_DEPTH = MAX_DEPTH - 8
"""The maximum depth of arguments, which are a few levels down in a message."""


def role_of(type_: str, data: JsonObject) -> str:
    """The role of a message with this type; custom for types that are not sent to a model and for unknown types."""
    if type_ in CHAT_TYPES:
        role = data.get("role")
        return role if isinstance(role, str) and role in _CHAT_ROLES else "custom"
    if type_ in SYSTEM_TYPES and nested(data.get(_KWARGS), _OPENAI_ROLE) == "developer":
        return "developer"
    return _ROLES.get(type_, "custom")


def write_message(message: ChatMessage) -> JsonObject:
    """The dict that the message was read from; without a residual, the dict of its typed fields."""
    residual = message.residual if message.format == NAME and isinstance(message.residual, dict) else {}
    type_ = type_of(message, residual)
    wire = write_data(message, type_, _content(message, residual), *_calls(message, residual))
    data = _with_typed(restore_deep(wire, residual.get(DATA)), wire)
    return restore({TYPE: type_, DATA: data}, residual)


def type_of(message: ChatMessage, residual: JsonObject) -> str:
    """The type in the residual, unless the role was changed later; else the usual type of the role."""
    type_ = residual.get(TYPE)
    if isinstance(type_, str) and (type_ in CHAT_TYPES or _ROLES.get(type_, "custom") == message.role):
        return type_
    return _TYPES.get(message.role, "chat")


def write_data(
    message: ChatMessage, type_: str, content: JsonValue, calls: JsonValue, invalid_calls: JsonValue
) -> JsonObject:
    """The fields of the message's class, without the residual."""
    data: JsonObject = {
        "content": content,
        _KWARGS: _kwargs(message, type_),
        "response_metadata": message.response_metadata or {},
        TYPE: type_,
        "name": message.name,
        "id": None,
    }
    if type_ in AI_TYPES:
        data |= {"tool_calls": calls, "invalid_tool_calls": invalid_calls, "usage_metadata": None}
    elif type_ in TOOL_TYPES:
        status = "error" if message.is_error else "success"
        data |= {"tool_call_id": message.tool_call_id, "artifact": None, "status": status}
    elif type_ in CHAT_TYPES:
        data["role"] = message.role
    return data


def _kwargs(message: ChatMessage, type_: str) -> JsonObject:
    if type_ in SYSTEM_TYPES and message.role == "developer":
        return {_OPENAI_ROLE: "developer"}
    if type_ in AI_TYPES and isinstance(message.reasoning, str):
        return {REASONING: message.reasoning}
    return {}


def _content(message: ChatMessage, residual: JsonObject) -> JsonValue:
    if not isinstance(message.content, list):
        return message.content or ""
    blocks = (write_block(part, nested(residual, PARTS, str(idx))) for idx, part in enumerate(message.content))
    return [block for block in blocks if block is not None]


def _calls(message: ChatMessage, residual: JsonObject) -> tuple[list[JsonValue], list[JsonValue]]:
    """The calls with an object as arguments, and those without."""
    valid: list[JsonValue] = []
    invalid: list[JsonValue] = []
    for idx, call in enumerate(message.tool_calls or ()):
        call_residual = nested(residual, CALLS, str(idx))
        written, is_valid = write_call(call, nested(call_residual, FORM) == INVALID)
        (valid if is_valid else invalid).append(restore_deep(written, call_residual))
    return valid, invalid


def write_call(call: ToolCall, was_invalid: bool = False) -> tuple[JsonObject, bool]:
    """The call without its residual, and whether it is valid."""
    arguments = call.arguments
    if was_invalid and not isinstance(arguments, dict):
        args = None
    else:
        args = parse_object(arguments) if isinstance(arguments, str) else arguments or {}
    if args is not None:
        return {"name": call.name, "args": args, "id": call.id, TYPE: "tool_call"}, True
    return {TYPE: "invalid_tool_call", "id": call.id, "name": call.name, "args": arguments, "error": None}, False


def parse_object(text: str) -> JsonObject | None:
    """The JSON object of a text; None for any other text, and for an object that is too deep or has too many values."""
    try:
        value = read_text(text)
    except (ValueError, RecursionError):
        return None
    is_kept = isinstance(value, dict) and json_problem(value, max_depth=_DEPTH) is None
    return value if is_kept else None


def _with_typed(restored: JsonObject, wire: JsonObject) -> JsonObject:
    """The restored object with the typed fields that were absent or empty in the source: a program has set them
    later.
    """
    typed = {key: wire[key] for key in _TYPED if wire.get(key) and not restored.get(key)}
    return {**restored, **typed}


_TYPED = ("content", "name", "response_metadata", "tool_calls", "invalid_tool_calls", "tool_call_id")


def reasoning_of(data: JsonObject) -> str | None:
    reasoning = nested(data.get(_KWARGS), REASONING)
    return reasoning if isinstance(reasoning, str) else None


def with_signer(part: Part, metadata: JsonValue) -> Part:
    """The part; a signed thought also names the provider of the message, which made the signature."""
    provider = nested(metadata, _PROVIDER)
    if isinstance(part, ThinkPart) and part.signature and isinstance(provider, str):
        return part.model_copy(update={"extras": signed_by(provider)})
    return part


def keep_call(source: JsonObject, call: ToolCall, *, is_valid: bool) -> JsonObject | None:
    """The residual of a call that was read."""
    written, _ = write_call(call, not is_valid)
    form: JsonObject = {} if is_valid else {FORM: INVALID}
    return {**form, **(keep_deep(source, written) or {})} or None
