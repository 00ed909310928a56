"""The arguments of a call as OpenAI's APIs accept them: text, and for a function the text of a JSON object.

A model that calls a function without arguments often gives an empty text, and one that is cut off the beginning of an
object. Many servers parse the text when they read the history, and refuse anything but an object.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.repairs import RepairLog
from chatledger.formats.wire.arguments import as_object, fit_arguments
from chatledger.models import ChatMessage, ToolCall
from chatledger.models.json import dumps
from chatledger.models.json_scan import is_crowded
from chatledger.models.trusted import copy_with


def with_objects(message: ChatMessage, are_functions: Sequence[bool], log: RepairLog) -> ChatMessage:
    """Repairs the arguments of calls of functions. The input of a custom tool may be any text."""
    calls = message.tool_calls or []
    odd = [is_one and not _is_object_text(call) for call, is_one in zip(calls, are_functions, strict=True)]
    if not any(odd):
        return message
    said = any(not _is_blank(call) for call, is_odd in zip(calls, odd, strict=True) if is_odd)
    detail = "arguments that are no JSON object: written as an object" if said else "no arguments: written as {}"
    log.add(repairs.ARGUMENTS, message, detail)
    given = [with_text(call) if is_odd else call for call, is_odd in zip(calls, odd, strict=True)]
    return copy_with(message, {"tool_calls": given})


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
