"""A whole output of the Responses API as the events in which it gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.formats.streams.reading import Cut, Object, in_halves


@dataclass(slots=True)
class Events:
    """The events of one item by what they are: any one kind but the first may be missing."""

    added: Object
    deltas: list[Object] = field(default_factory=list)
    parts_done: list[Object] = field(default_factory=list)
    done: Object = field(default_factory=dict)


def split(output: list[Object], cut: Cut = in_halves) -> list[Object]:
    """All that the API sends for a response."""
    items = [split_item(index, item, cut) for index, item in enumerate(output)]
    between = [event for one in items for event in (one.added, *one.deltas, *one.parts_done, one.done)]
    return [created(), *between, completed(output)]


def created() -> Object:
    response: Object = {"id": "resp_1", "status": "in_progress", "output": [], "usage": None}
    return {"type": "response.created", "response": response}


def completed(output: list[Object] | None, status: str = "completed") -> Object:
    response = {"id": "resp_1", "status": status, "output": output, "usage": {"total_tokens": 7}}
    return {"type": f"response.{status}", "response": response}


def split_item(index: int, item: Object, cut: Cut = in_halves) -> Events:
    at = {"output_index": index, "item_id": item.get("id")}
    events = Events({"type": "response.output_item.added", "output_index": index, "item": item})
    events.done = {"type": "response.output_item.done", "output_index": index, "item": item}
    for take, empty in _GROWERS.get(item.get("type", ""), ()):
        if _has(item, empty):
            take(events, item, at, cut)
            events.added = {**events.added, "item": {**events.added["item"], **_emptied(item, empty)}}
    return events


def _has(item: Object, empty: Object) -> bool:
    return all(isinstance(item.get(key), type(value)) for key, value in empty.items())


def _emptied(item: Object, empty: Object) -> Object:
    return {key: {**item[key], **value} if isinstance(value, dict) else value for key, value in empty.items()}


def _content(events: Events, item: Object, at: Object, cut: Cut) -> None:
    for index, part in enumerate(item["content"]):
        here = {**at, "content_index": index}
        name, key = _PARTS.get(part["type"], ("", ""))
        begun = {**part, **({key: ""} if key else {})}
        begun |= {one: [] for one in ("annotations", "logprobs") if key and part.get(one)}
        events.deltas.append({"type": "response.content_part.added", **here, "part": begun})
        if key:
            logprobs = {"logprobs": part["logprobs"]} if part.get("logprobs") else {}
            deltas: list[Object] = [{"type": f"{name}.delta", **here, "delta": piece} for piece in cut(part[key])]
            deltas[0] |= logprobs
            events.deltas += deltas
            events.deltas += _annotations(part, here)
            events.parts_done.append({"type": f"{name}.done", **here, key: part[key], **logprobs})
        events.parts_done.append({"type": "response.content_part.done", **here, "part": part})


def _annotations(part: Object, here: Object) -> Iterator[Object]:
    for index, annotation in enumerate(part.get("annotations") or ()):
        event = "response.output_text.annotation.added"
        yield {"type": event, **here, "annotation_index": index, "annotation": annotation}


def _summary(events: Events, item: Object, at: Object, cut: Cut) -> None:
    for index, part in enumerate(item["summary"]):
        here = {**at, "summary_index": index}
        name = "response.reasoning_summary_text"
        begun = {**part, "text": ""}
        events.deltas.append({"type": "response.reasoning_summary_part.added", **here, "part": begun})
        events.deltas += ({"type": f"{name}.delta", **here, "delta": piece} for piece in cut(part["text"]))
        events.parts_done.append({"type": f"{name}.done", **here, "text": part["text"]})
        events.parts_done.append({"type": "response.reasoning_summary_part.done", **here, "part": part})


def _field(name: str, key: str) -> Callable[[Events, Object, Object, Cut], None]:
    def take(events: Events, item: Object, at: Object, cut: Cut) -> None:
        events.deltas += ({"type": f"response.{name}.delta", **at, "delta": piece} for piece in cut(item[key]))
        events.parts_done.append({"type": f"response.{name}.done", **at, key: item[key]})

    return take


def _commands(events: Events, item: Object, at: Object, cut: Cut) -> None:
    for index, command in enumerate(item["action"]["commands"]):
        here = {"output_index": at["output_index"], "command_index": index}
        events.deltas.append({"type": "response.shell_call_command.added", **here, "command": ""})
        name = "response.shell_call_command"
        events.deltas += ({"type": f"{name}.delta", **here, "delta": piece} for piece in cut(command))
        events.parts_done.append({"type": f"{name}.done", **here, "command": command})


def _outputs(events: Events, item: Object, at: Object, cut: Cut) -> None:
    """The outcome comes with the end of an output alone, so that event is one of those that cannot be missing."""
    for index, output in enumerate(item["output"]):
        here = {**at, "command_index": index}
        name = "response.shell_call_output_content"
        for stream in ("stdout", "stderr"):
            events.deltas += (
                {"type": f"{name}.delta", **here, "delta": {stream: piece}} for piece in cut(output[stream])
            )
        events.deltas.append({"type": f"{name}.done", **here, "output": [output]})


def _image(events: Events, item: Object, at: Object, cut: Cut) -> None:
    """The last image that is partial looks like the whole one, and has no event of its own for its end."""
    name = "response.image_generation_call.partial_image"
    for index, image in enumerate(("rough", item["result"])):
        events.deltas.append({"type": name, **at, "partial_image_index": index, "partial_image_b64": image})
    events.parts_done.append(events.deltas[-1])


_PARTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
}
_GROWERS: dict[str, list[tuple[Callable[[Events, Object, Object, Cut], None], Object]]] = {
    "message": [(_content, {"content": []})],
    "reasoning": [(_summary, {"summary": []}), (_content, {"content": []})],
    "function_call": [(_field("function_call_arguments", "arguments"), {"arguments": ""})],
    "custom_tool_call": [(_field("custom_tool_call_input", "input"), {"input": ""})],
    "mcp_call": [(_field("mcp_call_arguments", "arguments"), {"arguments": ""})],
    "code_interpreter_call": [(_field("code_interpreter_call_code", "code"), {"code": ""})],
    "shell_call": [(_commands, {"action": {"commands": []}})],
    "shell_call_output": [(_outputs, {"output": []})],
    "image_generation_call": [(_image, {"result": ""})],
}
"""How the items of a type grow, and what they have at their start."""
