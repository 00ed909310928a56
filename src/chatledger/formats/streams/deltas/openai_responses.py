"""Events of OpenAI responses: text and refusals, reasoning and its summaries, and calls of functions and custom tools.

Items of other kinds are left out. Encrypted reasoning is the signature of the reasoning before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.streams.events import Event, field, some_text
from chatledger.models import Delta, ReasoningDelta, TextDelta, ToolCallDelta

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta"})
_ARGUMENTS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_CALLS = frozenset({"function_call", "custom_tool_call"})


def read_responses_deltas(event: Event) -> Sequence[Delta]:
    kind = event.get("type")
    if kind == "response.output_item.added":
        return _begin_call(event)
    if kind == "response.output_item.done":
        return _signature_of(field(event, "item", dict, "$") or {})
    delta = field(event, "delta", str, "$") if kind in _TEXT | _REASONING | _ARGUMENTS else None
    if not delta:
        return ()
    if kind in _ARGUMENTS:
        return [ToolCallDelta(index=field(event, "output_index", int, "$"), arguments=delta)]
    return [TextDelta(text=delta) if kind in _TEXT else ReasoningDelta(text=delta)]


def _begin_call(event: Event) -> Sequence[Delta]:
    item = field(event, "item", dict, "$") or {}
    if item.get("type") not in _CALLS:
        return ()
    id_, name = some_text(item, "call_id", "$.item"), some_text(item, "name", "$.item")
    return [ToolCallDelta(index=field(event, "output_index", int, "$"), id=id_, name=name, arguments="")]


def _signature_of(item: Event) -> Sequence[Delta]:
    encrypted = some_text(item, "encrypted_content", "$.item") if item.get("type") == "reasoning" else None
    return [] if encrypted is None else [ReasoningDelta(signature=encrypted)]
