"""The output items of a stream of the Responses API.

The last complete form of an item wins: the item in the output at the end of the response, else the finished item, else
its finished part, else the sum of the deltas. So the stream reads servers that send no deltas, and servers that send
only deltas.

The SDK's own helper returns only the response of `response.completed`, or the finished items if that response has no
output. It returns nothing for a response that was cut off or failed, and raises an error for a delta without its item.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chatledger.formats.streams.base import Event, Stream, error_text, field, needed, require, some_text
from chatledger.formats.streams.response_items import ResponseItems, checked
from chatledger.formats.streams.response_parts import TAKES
from chatledger.formats.streams.tree import Json, Object, whole
from chatledger.formats.wire.residual import nested
from chatledger.models import Delta, ReasoningDelta, TextDelta, ToolCallDelta

_PROGRESS = {
    "response.code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "response.compaction": ("compacting",),
    "response.file_search_call": ("in_progress", "searching", "completed"),
    "response.image_generation_call": ("in_progress", "generating", "completed"),
    "response.mcp_call": ("in_progress", "completed", "failed"),
    "response.mcp_list_tools": ("in_progress", "completed", "failed"),
    "response.web_search_call": ("in_progress", "searching", "completed"),
}
NOTHING = frozenset(f"{item}.{step}" for item, steps in _PROGRESS.items() for step in steps) | {"keepalive"}
"""Events that add nothing: the finished item has the same values."""
UNPLACED = frozenset(f"response.audio.{step}" for step in ("delta", "done", "transcript.delta", "transcript.done"))
"""Known events that no output item can hold. They count as not understood, so that nothing gets lost."""
_ENDS = {f"response.{status}": status for status in ("completed", "failed", "incomplete")}


class OpenaiResponsesStream(Stream):
    def __init__(self) -> None:
        super().__init__(read_responses_deltas)
        self._before: list[Object] = []  # the items of the responses that this response continues
        self._items = ResponseItems()
        self._id: Json = None
        self._ended = False

    def payload(self) -> list[Object]:
        return [*whole(self._before), *self._items.whole()]

    def _take(self, event: Event) -> None:
        kind = needed(event, "type", str)
        if kind in TAKES:
            TAKES[kind](partial(self._item_of, event), event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._take_item(event, done=kind.endswith("done"))
        elif kind == "response.created":
            self._begin(needed(event, "response", dict))
        elif kind in ("response.queued", "response.in_progress"):
            self._note(needed(event, "response", dict))
        elif kind in _ENDS:
            self._end(needed(event, "response", dict), _ENDS[kind])
        elif kind == "error":
            self.failure = error_text(event.get("error") or {key: event[key] for key in event if key != "type"})
        else:
            require(kind in NOTHING, "$.type", "no output item can hold it" if kind in UNPLACED else "unknown")

    def _item_of(self, event: Event, kind: str) -> Object:
        """The item that an event extends; a temporary copy if the item is complete already."""
        item = self._items.of(kind, field(event, "output_index", int), field(event, "item_id", str))
        return whole(item.value) if item.done or self._ended else item.value

    def _take_item(self, event: Event, *, done: bool) -> None:
        if event.get("item") is None:  # servers send that for an item that they do not show
            return
        index, item = field(event, "output_index", int), checked(event["item"])
        if not self._ended:
            (self._items.finish if done else self._items.add)(index, item)

    def _begin(self, response: Object) -> None:
        """A response begins. The one before it is kept if it ended and has a successor, and otherwise discarded."""
        output = [checked(item) for item in field(response, "output", list, "$.response") or ()]
        goes_on = self._ended and self.finish_reason != "failed" and response.get("id") != self._id
        self._note(response)
        self.usage, self.finish_reason = whole(response.get("usage")), response.get("status")
        self._before = self.payload() if goes_on else []
        self._items, self._id, self._ended, self.failure = ResponseItems(), response.get("id"), False, None
        for index, item in enumerate(output):
            self._items.add(index, item)

    def _note(self, response: Object) -> None:
        usage, status = field(response, "usage", dict, "$.response"), field(response, "status", str, "$.response")
        self.usage = whole(usage) or self.usage
        self.finish_reason = status or self.finish_reason

    def _end(self, response: Object, status: str) -> None:
        """A response ends. An output with an item that the codec cannot read is ignored; earlier items are kept."""
        output = field(response, "output", list, "$.response") or []
        self._note({"status": status} | {key: value for key, value in response.items() if value is not None})
        self._ended = True
        if status != "completed":
            self.failure = _reason(response, status)
        items = [checked(item) for item in output]
        if items and status == "completed":
            self._items = ResponseItems(items)
        else:
            self._items.replace_first(items)


def _reason(response: Object, status: str) -> str:
    reason = nested(response, "incomplete_details", "reason")
    if response.get("error"):
        return error_text(response["error"])
    return f"{status}: {reason}" if reason else status


# --- Pieces of a draft ------------------------------------------------------------------------------------------------
# Events of OpenAI responses: text and refusals, reasoning and its summaries, and calls of functions and custom tools.
#
# Items of other kinds are left out. Encrypted reasoning is the signature of the reasoning before it.

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
