"""The message of an Anthropic stream.

It differs from the result of the SDK's own helper in these points. Each makes it equal to the message that a request
without streaming returns:

- A second `message_start` discards the message before it: the first attempt failed. The SDK keeps the first one.
- A null in `message_delta` erases nothing, and an absent key adds none. The SDK writes its null over a stop reason.
- A delta grows the field that its block has, whatever the type of the block. The SDK drops the deltas of most types.
- A block is found by its index even if the blocks begin in another order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.read import read_payload
from chatledger.formats.streams.base import Event, Stream, error_text, needed, parsed_input, require, some_text
from chatledger.formats.streams.base import field as field_at
from chatledger.formats.streams.tree import GrowingText, Json, Object, extend, grow, whole
from chatledger.formats.wire.residual import nested
from chatledger.models import Delta, OpaquePart, ReasoningDelta, TextDelta, ToolCallDelta

NOTHING = frozenset(
    {"ping", "message_stop", "content_block_stop"}
    | {"text", "thinking", "signature", "input_json", "citation", "compaction"}
)
"""Events that add nothing. The SDK's helper makes those of the second line from events that it passes on too."""

_GROWS = {"text_delta": "text", "thinking_delta": "thinking"}
_DEFAULTS: dict[str, Object] = {"text": {"text": ""}, "thinking": {"thinking": ""}, "tool_use": {"input": {}}}
"""The fields that some servers leave out at the start of a block, because its deltas have them."""
_ENVELOPE = frozenset({"type", "role", "content", "usage", "delta"})
"""Keys of `message_delta` that do not change the message."""


@dataclass(slots=True)
class _Block:
    index: int
    value: Object
    input: GrowingText = field(default_factory=GrowingText)

    def whole(self) -> Object:
        value: Object = whole(self.value)
        return value | {"input": parsed_input(str(self.input))} if self.input else value


class AnthropicStream(Stream):
    def __init__(self) -> None:
        super().__init__(AnthropicDeltas())
        self._message: Object | None = None
        self._blocks: list[_Block] = []

    def payload(self) -> list[Object]:
        if self._message is None and not self._blocks:
            return []
        blocks = [block.whole() for block in sorted(self._blocks, key=lambda block: block.index)]
        return [whole(self._message or {"role": "assistant"}) | {"content": blocks}]

    def _take(self, event: Event) -> None:
        kind = needed(event, "type", str)
        if kind == "message_start":
            self._start(needed(event, "message", dict))
        elif kind == "message_delta":
            self._add(event)
        elif kind == "content_block_start":
            self._begin(needed(event, "index", int), needed(event, "content_block", dict))
        elif kind == "content_block_delta":
            self._grow(needed(event, "index", int), needed(event, "delta", dict))
        elif kind == "error":
            self.failure = error_text(event.get("error") or event)
        else:
            require(kind in NOTHING, "$.type", "unknown")

    def _start(self, started: Object) -> None:
        message: Object = whole(started)
        _set(message, "role", message.get("role") or "assistant")
        require(message["role"] == "assistant", "$.message.role", "another than the assistant's")
        content = field_at(message, "content", list, "$.message") or []
        blocks = [_Block(index, _checked(block)) for index, block in enumerate(content)]
        self._message, self._blocks = message, blocks
        self.usage = message.get("usage") if isinstance(message.get("usage"), dict) else None
        self.finish_reason = _text_or_none(message.get("stop_reason"))
        self.failure = None

    def _add(self, event: Event) -> None:
        """The end of the message. The counts of the usage are totals, so the last ones replace earlier ones."""
        delta = field_at(event, "delta", dict) or {}
        usage = field_at(event, "usage", dict)
        message = self._made()
        for key, value in [*delta.items(), *event.items()]:
            if key not in _ENVELOPE:
                _set(message, key, whole(value))
        if usage is not None:
            held = message.get("usage")
            message["usage"] = held if isinstance(held, dict) else {}
            for key, value in usage.items():
                _set(message["usage"], key, whole(value))
            self.usage = message["usage"]
        self.finish_reason = _text_or_none(message.get("stop_reason"))

    def _begin(self, index: int, started: Object) -> None:
        block = _Block(index, _checked(whole(started)))
        message = self._made()
        if block.value["type"] == "fallback" and "model" in message:  # another model continues the message
            _set(message, "model", nested(block.value, "to", "model"))
        self._blocks.append(block)

    def _grow(self, index: int, delta: Object) -> None:
        kind = needed(delta, "type", str, "$.delta")
        block = next((block for block in reversed(self._blocks) if block.index == index), None)
        if block is None:
            self._begin_unannounced(index, kind, delta)
        elif kind in _GROWS:
            key = _GROWS[kind]
            require(isinstance(block.value.get(key), (str, GrowingText)), "$.delta.type", "the block has no such field")
            grow(block.value, key, needed(delta, key, str, "$.delta"))
        elif kind == "input_json_delta":
            require("input" in block.value, "$.delta.type", "the block has no input")
            block.input.add(needed(delta, "partial_json", str, "$.delta"))
        else:
            _set_field(block.value, kind, delta)

    def _begin_unannounced(self, index: int, kind: str, delta: Object) -> None:
        """A block without a start: some servers leave it out, or the stream is read from its middle."""
        require(kind in _GROWS, "$.index", "no such block")
        key = _GROWS[kind]
        text = needed(delta, key, str, "$.delta")
        self._made()
        self._blocks.append(_Block(index, {"type": key, key: GrowingText(text)}))

    def _made(self) -> Object:
        if self._message is None:
            self._message = {"role": "assistant"}
        return self._message


def _set_field(block: Object, kind: str, delta: Object) -> None:
    """Deltas that have a whole value."""
    if kind == "signature_delta":
        require(block["type"] == "thinking" or "signature" in block, "$.delta.type", "the block has no signature")
        block["signature"] = needed(delta, "signature", str, "$.delta")
    elif kind == "citations_delta":
        require("text" in block, "$.delta.type", "the block has no text")
        extend(block, "citations", [whole(needed(delta, "citation", dict, "$.delta"))])
    else:
        require(kind == "compaction_delta" and block["type"] == "compaction", "$.delta.type", "unknown")
        for key, value in delta.items():
            if key != "type":
                _set(block, key, whole(value))


def _checked(block: Json) -> Object:
    """The block, if the codec can read it. Raises DecodeError."""
    require(isinstance(block, dict), "$.content_block", "no object")
    kind = needed(block, "type", str, "$.content_block")
    for key, value in _DEFAULTS.get(kind, {}).items():
        _set(block, key, block.get(key) if block.get(key) is not None else whole(value))
    read_payload([{"role": "assistant", "content": [block]}], lenient=False)
    return dict(block)


def _set(holder: Object, key: str, value: Json) -> None:
    """A null erases nothing."""
    if value is not None:
        holder[key] = value
    else:
        holder.setdefault(key, None)


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


# --- Pieces of a draft ------------------------------------------------------------------------------------------------
# Events of Anthropic messages.
#
# Text, thinking with its signature, and tool use grow. A block of any other type becomes a separate part when it ends.
# Citations are left out.

_GROWING = frozenset({"text", "thinking", "tool_use"})


class AnthropicDeltas:
    def __init__(self) -> None:
        self._blocks: dict[int, Event] = {}  # the open blocks, by index
        self._input: dict[int, str] = {}  # the input that each has received

    def __call__(self, event: Event) -> Sequence[Delta]:
        kind = event.get("type")
        if kind == "content_block_start":
            return self._start(_index(event), field_at(event, "content_block", dict, "$") or {})
        if kind == "content_block_delta":
            return self._grow(_index(event), field_at(event, "delta", dict, "$") or {})
        if kind == "content_block_stop":
            return self._stop(_index(event))
        return ()

    def _start(self, index: int, block: Event) -> Sequence[Delta]:
        path = "$.content_block"
        self._blocks[index], self._input[index] = block, ""
        if block.get("type") == "tool_use":
            return [ToolCallDelta(index=index, id=some_text(block, "id", path), name=some_text(block, "name", path))]
        text, thinking = some_text(block, "text", path), some_text(block, "thinking", path)
        if block.get("type") == "text" and text is not None:
            return [TextDelta(text=text)]
        if block.get("type") == "thinking" and thinking is not None:
            return [ReasoningDelta(text=thinking)]
        return ()

    def _grow(self, index: int, delta: Event) -> Sequence[Delta]:
        path, kind = "$.delta", delta.get("type")
        if kind == "text_delta":
            return [TextDelta(text=field_at(delta, "text", str, path) or "")]
        if kind == "thinking_delta":
            return [ReasoningDelta(text=field_at(delta, "thinking", str, path) or "")]
        if kind == "signature_delta":
            signature = some_text(delta, "signature", path)
            return () if signature is None else [ReasoningDelta(signature=signature)]
        if kind != "input_json_delta":
            return ()
        fragment = field_at(delta, "partial_json", str, path) or ""
        self._input[index] = self._input.get(index, "") + fragment
        grows = fragment and self._blocks.get(index, {}).get("type") == "tool_use"
        return [ToolCallDelta(index=index, arguments=fragment)] if grows else ()

    def _stop(self, index: int) -> Sequence[Delta]:
        block, input_text = self._blocks.pop(index, {}), self._input.pop(index, "")
        kind = block.get("type")
        if kind == "tool_use" and not input_text:  # the start of the block has the input: nothing, or all of it
            return [ToolCallDelta(index=index, arguments=json.dumps(block.get("input") or {}, ensure_ascii=False))]
        if kind is None or kind in _GROWING:
            return ()
        value: dict[str, Any] = block | {"input": parsed_input(input_text)} if input_text else block
        return [OpaquePart(type=str(kind), value=value)]


def _index(event: Event) -> int:
    index = field_at(event, "index", int, "$")
    if index is None:
        raise DecodeError("$.index", "an event of a block without its index")
    return index
