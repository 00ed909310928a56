"""Repairs of a single message that every provider needs: its state, its role, the names of its tools."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.provider import Provider
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.formats.wire.arguments import as_object, fit_arguments
from chatledger.models import ROLES, ChatMessage, ToolCall
from chatledger.models.base import copy_with
from chatledger.models.json import dumps, is_crowded


def repair_message(message: ChatMessage, provider: Provider, log: RepairLog) -> ChatMessage | None:
    """The message as every provider accepts it; None if it must not be sent."""
    if message.role == "custom":
        log.add(repairs.CUSTOM, message, "custom messages are for display only: left out")
        return None
    if message.state == "partial":
        log.add(repairs.PARTIAL, message, "the message is incomplete: left out")
        return None
    return _with_names(provider.prepare(_with_role(message, provider, log), log), provider, log)


def _with_role(message: ChatMessage, provider: Provider, log: RepairLog) -> ChatMessage:
    """A known role, and only the fields that the role may have.

    A field that conversion drops never reaches the provider, so that is a loss and not a repair.
    """
    if message.role not in ROLES:
        if provider.keeps(message):
            log.add(repairs.ROLE, message, f"unknown role {message.role[:80]!r}: written as user")
        message = rewritten(message, role="user")
    if message.tool_calls and message.role != "assistant":
        message = _without(message, "tool_calls", "tool calls", provider, log)
    if message.tool_call_id is not None and message.role != "tool":
        message = _without(message, "tool_call_id", "a tool_call_id", provider, log)
    return message


def _without(message: ChatMessage, field: str, called: str, provider: Provider, log: RepairLog) -> ChatMessage:
    if not (provider.keeps(message) and provider.writes_fields_of_other_roles):
        return copy_with(message, {field: None})
    log.add(repairs.ROLE, message, f"{called} on a message of role {message.role!r}: left out")
    return rewritten(message, **{field: None})


def _with_names(message: ChatMessage, provider: Provider, log: RepairLog) -> ChatMessage:
    calls = message.tool_calls or []
    if all(provider.tool_names.fullmatch(call.name) for call in calls):
        return message
    return copy_with(message, {"tool_calls": [_with_name(call, message, provider, log) for call in calls]})


def _with_name(call: ToolCall, message: ChatMessage, provider: Provider, log: RepairLog) -> ToolCall:
    if provider.tool_names.fullmatch(call.name):
        return call
    name = _spelled(call.name, provider)
    log.add(repairs.NAME, message, f"tool name {call.name[:80]!r} is not accepted: written as {name!r}")
    return call.model_copy(update={"name": name})


def _spelled(name: str, provider: Provider) -> str:
    """The name in letters that the provider accepts. The same name gives the same result each time."""
    plain = "".join(letter if provider.tool_names.fullmatch(letter) else "_" for letter in name[:64])
    return plain or "tool"


# --- Arguments --------------------------------------------------------------------------------------------------------
# The arguments of a call as OpenAI's APIs accept them: text, and for a function the text of a JSON object.
#
# A model that calls a function without arguments often gives an empty text, and one that is cut off the beginning of an
# object. Many servers parse the text when they read the history, and refuse anything but an object.


def with_objects(message: ChatMessage, are_functions: Sequence[bool], log: RepairLog) -> ChatMessage:
    """Repairs the arguments of calls of functions. The input of a custom tool may be any text."""
    calls = message.tool_calls or []
    odd = [is_one and not _is_object_text(call) for call, is_one in zip(calls, are_functions, strict=True)]
    if not any(odd):
        return message
    has_odd = any(not _is_blank(call) for call, is_odd in zip(calls, odd, strict=True) if is_odd)
    detail = "arguments that are no JSON object: written as an object" if has_odd else "no arguments: written as {}"
    log.add(repairs.ARGUMENTS, message, detail)
    repaired = [with_text(call) if is_odd else call for call, is_odd in zip(calls, odd, strict=True)]
    return copy_with(message, {"tool_calls": repaired})


def with_text(call: ToolCall) -> ToolCall:
    """The call with the JSON text of an object as its arguments: `{}` if it has none, the object that Anthropic would
    get if they are no object.
    """
    if _is_object_text(call):
        return call
    return call.model_copy(update={"arguments": dumps(fit_arguments(call.arguments))})


def _is_object_text(call: ToolCall) -> bool:
    """Whether the API gets the text as it is: an object, or a text of too many values to find out."""
    if not isinstance(call.arguments, str) or _is_blank(call):
        return False
    return is_crowded(call.arguments) or as_object(call.arguments) is not None


def _is_blank(call: ToolCall) -> bool:
    return not call.arguments or (isinstance(call.arguments, str) and not call.arguments.strip())
