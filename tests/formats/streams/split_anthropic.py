"""A whole message of Anthropic as the events in which its API gives it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.formats.streams.reading import Cut, Json, Object, in_halves

_END = ("stop_reason", "stop_sequence", "stop_details", "container")
_AROUND = ("context_management", "input_transformations")


def split(message: Object, cut: Cut = in_halves) -> list[Object]:
    blocks = [event for index, block in enumerate(message["content"]) for event in split_block(index, block, cut)]
    return [start(message), *blocks, *end(message)]


def start(message: Object) -> Object:
    later = {key: None for key in (*_END, *_AROUND) if key in message}
    counts = {key: 1 if isinstance(value, int) else value for key, value in message.get("usage", {}).items()}
    usage = {"usage": counts} if "usage" in message else {}
    return {"type": "message_start", "message": {**message, "content": [], **later, **usage}}


def end(message: Object) -> list[Object]:
    delta = {key: message[key] for key in _END if key in message}
    around = {key: message[key] for key in _AROUND if key in message}
    usage = {"usage": message["usage"]} if "usage" in message else {}
    return [{"type": "message_delta", "delta": delta, **usage, **around}, {"type": "message_stop"}]


def split_block(index: int, block: Object, cut: Cut = in_halves) -> list[Object]:
    deltas, empty = list(_deltas(block, cut)), _EMPTIED.get(block["type"], {})
    grown = {key: value for key, value in empty.items() if value is None or isinstance(block.get(key), type(value))}
    begun = {**block, **{key: value for key, value in grown.items() if key in block}}
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _deltas(block: Object, cut: Cut) -> Iterator[Object]:
    kind = block["type"]
    if kind in ("text", "thinking"):
        yield from ({"type": f"{kind}_delta", kind: piece} for piece in cut(block[kind]))
    if kind == "text":
        yield from ({"type": "citations_delta", "citation": citation} for citation in block.get("citations") or ())
    if kind == "thinking" and block.get("signature"):
        yield {"type": "signature_delta", "signature": block["signature"]}
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use") and isinstance(block.get("input"), dict):
        pieces = cut(json.dumps(block["input"], ensure_ascii=False))
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    if kind == "compaction":
        given: Object = {key: block[key] for key in ("content", "encrypted_content") if key in block}
        yield {"type": "compaction_delta", **given}


_INPUT: dict[str, Json] = {"input": {}}
_EMPTIED: dict[str, Object] = {
    "text": {"text": "", "citations": []},
    "thinking": {"thinking": "", "signature": ""},
    "compaction": {"content": None, "encrypted_content": None},
    "tool_use": _INPUT,
    "server_tool_use": _INPUT,
    "mcp_tool_use": _INPUT,
}
"""What a block has at its start."""
