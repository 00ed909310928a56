"""Events of Anthropic messages.

Text, thinking with its signature, and tool use grow. A block of any other type becomes a separate part when it ends.
Citations are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.streams.events import Event, field, parsed_input, some_text
from chatledger.models import Delta, OpaquePart, ReasoningDelta, TextDelta, ToolCallDelta

_GROWING = frozenset({"text", "thinking", "tool_use"})


class AnthropicDeltas:
    def __init__(self) -> None:
        self._blocks: dict[int, Event] = {}  # the open blocks, by index
        self._input: dict[int, str] = {}  # the input that each has received

    def __call__(self, event: Event) -> Sequence[Delta]:
        kind = event.get("type")
        if kind == "content_block_start":
            return self._start(_index(event), field(event, "content_block", dict, "$") or {})
        if kind == "content_block_delta":
            return self._grow(_index(event), field(event, "delta", dict, "$") or {})
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
            return [TextDelta(text=field(delta, "text", str, path) or "")]
        if kind == "thinking_delta":
            return [ReasoningDelta(text=field(delta, "thinking", str, path) or "")]
        if kind == "signature_delta":
            signature = some_text(delta, "signature", path)
            return () if signature is None else [ReasoningDelta(signature=signature)]
        if kind != "input_json_delta":
            return ()
        fragment = field(delta, "partial_json", str, path) or ""
        self._input[index] = self._input.get(index, "") + fragment
        grows = fragment and self._blocks.get(index, {}).get("type") == "tool_use"
        return [ToolCallDelta(index=index, arguments=fragment)] if grows else ()

    def _stop(self, index: int) -> Sequence[Delta]:
        block, given = self._blocks.pop(index, {}), self._input.pop(index, "")
        kind = block.get("type")
        if kind == "tool_use" and not given:  # the start of the block has the input: nothing, or all of it
            return [ToolCallDelta(index=index, arguments=json.dumps(block.get("input") or {}, ensure_ascii=False))]
        if kind is None or kind in _GROWING:
            return ()
        value: dict[str, Any] = block | {"input": parsed_input(given)} if given else block
        return [OpaquePart(type=str(kind), value=value)]


def _index(event: Event) -> int:
    index = field(event, "index", int, "$")
    if index is None:
        raise DecodeError("$.index", "an event of a block without its index")
    return index
