"""The arguments of a call as OpenAI's APIs accept them: text, and for a function text that is not blank.

A model that calls a function without arguments often gives an empty text. Servers parse it as JSON and refuse it.
"""

from __future__ import annotations

from chatledger.models import ToolCall
from chatledger.models.json import dumps


def is_blank(call: ToolCall) -> bool:
    return isinstance(call.arguments, str) and not call.arguments.strip()


def with_text(call: ToolCall) -> ToolCall:
    """The call with its arguments as JSON text, `{}` if it has none."""
    if isinstance(call.arguments, str) and call.arguments.strip():
        return call
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return call.model_copy(update={"arguments": dumps(arguments)})
