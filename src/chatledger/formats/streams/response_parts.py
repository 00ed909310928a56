"""The events that extend an output item: pieces of its texts, its parts, its arguments, its commands.

Each takes an event in two steps. It reads the fields of the event, which may raise DecodeError, and only then asks for
the item and changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from chatledger.formats.streams.base import Event, field, needed, require
from chatledger.formats.streams.response_items import checked
from chatledger.formats.streams.tree import Object, Sparse, entries, extend, grow, object_under, whole

ItemOf: TypeAlias = Callable[[str], Object]
"""Returns the item of an event, of the type that the caller names. Raises DecodeError without one."""
Take: TypeAlias = Callable[[ItemOf, Event], None]


@dataclass(frozen=True, slots=True)
class _TextPlace:
    """The place of texts of one kind: the type of the item, its list, and the part of the list with its text."""

    item: str
    list: str
    part: str
    text: str = "text"

    @property
    def index(self) -> str:
        return f"{self.list}_index"

    def empty(self) -> Object:
        more: Object = {"annotations": []} if self.part == "output_text" else {}
        return {"type": self.part, self.text: "", **more}


_TEXT = _TextPlace("message", "content", "output_text")
_REFUSAL = _TextPlace("message", "content", "refusal", "refusal")
_REASONING = _TextPlace("reasoning", "content", "reasoning_text")
_SUMMARY = _TextPlace("reasoning", "summary", "summary_text")
_PLACES = {place.part: place for place in (_TEXT, _REFUSAL, _REASONING, _SUMMARY)}


def _grow_text(place: _TextPlace, item_of: ItemOf, event: Event) -> None:
    index, piece = field(event, place.index, int), needed(event, "delta", str)
    logprobs = field(event, "logprobs", list)
    part = _part(item_of(place.item), place, index)
    grow(part, place.text, piece)
    extend(part, "logprobs", whole(logprobs or []))


def _finish_text(place: _TextPlace, item_of: ItemOf, event: Event) -> None:
    index, text = field(event, place.index, int), needed(event, place.text, str)
    logprobs = field(event, "logprobs", list)
    part = _part(item_of(place.item), place, index)
    part[place.text] = text
    if logprobs:
        part["logprobs"] = whole(logprobs)


def _set_part(list_: str, done: bool, item_of: ItemOf, event: Event) -> None:
    """A part that begins, or a whole part."""
    part: Object = whole(needed(event, "part", dict))
    kind = needed(part, "type", str, "$.part")
    place = _PLACES.get(kind) or _TextPlace("message", list_, kind)
    require(place.list == list_, "$.part.type", "a part of another list")
    index = field(event, place.index, int)
    if kind in _PLACES and part.get(place.text) is None:
        part[place.text] = ""
    checked({"type": "message", "content": [part]})
    parts = entries(item_of(place.item), place.list)
    at = (_last(parts, place.part) if done else parts.next_index) if index is None else index
    if done or at not in parts:
        parts[at] = part


def _add_annotation(item_of: ItemOf, event: Event) -> None:
    at, index = field(event, "content_index", int), field(event, "annotation_index", int)
    annotation = field(event, "annotation", dict)
    if annotation is None:
        return
    annotations = entries(_part(item_of("message"), _TEXT, at), "annotations")
    taken = index is None or annotations.get(index, annotation) != annotation
    annotations[annotations.next_index if taken else index] = whole(annotation)


def _grow_field(kind: str, key: str, item_of: ItemOf, event: Event) -> None:
    piece = needed(event, "delta", str)
    grow(item_of(kind), key, piece)


def _finish_field(kind: str, key: str, item_of: ItemOf, event: Event) -> None:
    text = needed(event, key, str)
    item_of(kind)[key] = text


def _grow_command(item_of: ItemOf, event: Event) -> None:
    index, piece = needed(event, "command_index", int), needed(event, "delta", str)
    grow(_commands(item_of), index, piece)


def _set_command(item_of: ItemOf, event: Event) -> None:
    index, command = needed(event, "command_index", int), needed(event, "command", str)
    _commands(item_of)[index] = command


def _grow_output(item_of: ItemOf, event: Event) -> None:
    index, delta = needed(event, "command_index", int), needed(event, "delta", dict)
    pieces = {key: field(delta, key, str, "$.delta") for key in ("stdout", "stderr")}
    output = _outputs(item_of).setdefault((index, 0), {"stdout": "", "stderr": ""})
    require(isinstance(output, dict), "$.output", "the output is no object")
    for key, piece in pieces.items():
        grow(output, key, piece or "")


def _set_output(item_of: ItemOf, event: Event) -> None:
    """The outputs of one command, which replace the sum of its deltas."""
    index, outputs = needed(event, "command_index", int), whole(needed(event, "output", list))
    require(all(isinstance(output, dict) for output in outputs), "$.output", "an output is no object")
    _outputs(item_of).update({(index, number): output for number, output in enumerate(outputs)})


def _show_image(item_of: ItemOf, event: Event) -> None:
    """An unfinished image, which is kept if the stream is cut off."""
    image = needed(event, "partial_image_b64", str)
    item_of("image_generation_call")["result"] = image


def _part(item: Object, place: _TextPlace, index: int | None) -> Object:
    """Find or create the part of an item at an index; without an index, take the last part of its type."""
    parts = entries(item, place.list)
    at = _last(parts, place.part) if index is None else index
    part: Object = parts[at] if at in parts else place.empty()
    require(isinstance(part, dict) and part.get("type") == place.part, f"$.{place.index}", "a part of another type")
    parts[at] = part
    return part


def _last(parts: Sparse, kind: str) -> int:
    """The index of the last part of a type, or the next one."""
    indexes = (index for index in sorted(parts, reverse=True) if isinstance(parts[index], dict))
    return next((index for index in indexes if parts[index].get("type") == kind), parts.next_index)


def _commands(item_of: ItemOf) -> Sparse:
    return entries(object_under(item_of("shell_call"), "action"), "commands")


def _outputs(item_of: ItemOf) -> Sparse:
    """The outputs of an item by their command and their number, in one list."""
    item = item_of("shell_call_output")
    held = entries(item, "output")
    if not all(isinstance(key, tuple) for key in held):
        item["output"] = held = Sparse({(index, 0): output for index, output in held.items()})
    return held


_FIELDS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
    "response.code_interpreter_call_code": ("code_interpreter_call", "code"),
}
_TEXTS = {
    "response.output_text": _TEXT,
    "response.refusal": _REFUSAL,
    "response.reasoning_text": _REASONING,
    "response.reasoning_summary_text": _SUMMARY,
}
_PARTS = {"response.content_part": "content", "response.reasoning_summary_part": "summary"}

TAKES: dict[str, Take] = {
    **{f"{event}.delta": partial(_grow_text, place) for event, place in _TEXTS.items()},
    **{f"{event}.done": partial(_finish_text, place) for event, place in _TEXTS.items()},
    **{f"{event}.added": partial(_set_part, list_, False) for event, list_ in _PARTS.items()},
    **{f"{event}.done": partial(_set_part, list_, True) for event, list_ in _PARTS.items()},
    **{f"{event}.delta": partial(_grow_field, *place) for event, place in _FIELDS.items()},
    **{f"{event}.done": partial(_finish_field, *place) for event, place in _FIELDS.items()},
    "response.output_text.annotation.added": _add_annotation,
    "response.shell_call_command.added": _set_command,
    "response.shell_call_command.delta": _grow_command,
    "response.shell_call_command.done": _set_command,
    "response.shell_call_output_content.delta": _grow_output,
    "response.shell_call_output_content.done": _set_output,
    "response.image_generation_call.partial_image": _show_image,
}
