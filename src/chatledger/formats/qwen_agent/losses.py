"""What of a message of another origin has no place in Qwen-Agent's. The code is the name of what is lost."""

from __future__ import annotations

from collections.abc import Iterator

from chatledger.formats.qwen_agent.items import item_of, part_of
from chatledger.models import ChatMessage, Loss, MediaPart, OpaquePart, Part, ThinkPart, ToolCall

_WITHOUT_PLACE = ("is_error", "run_id", "response_metadata", "custom_data", "residual")
_PART_FIELDS = ("data", "mime_type", "name", "id", "signature", "extras")


def field_losses(message: ChatMessage) -> Iterator[Loss]:
    for field in _WITHOUT_PLACE:
        if getattr(message, field) is not None:
            yield Loss(field, message.seq, field)
    if message.state != "complete":
        yield Loss("state", message.seq, "state")
    if message.tool_calls == []:
        yield Loss("tool_calls", message.seq, "tool_calls")
    for index, call in enumerate(message.tool_calls or ()):
        yield from _call_losses(call, message.seq, f"tool_calls[{index}]")


def part_losses(message: ChatMessage) -> Iterator[Loss]:
    for field, content in (("content", message.content), ("reasoning", message.reasoning)):
        for index, part in enumerate(content if isinstance(content, list) else ()):
            yield from _losses_of(part, message.seq, f"{field}[{index}]")
    if _thinks_after_speaking(message):
        yield Loss("order", message.seq, "content")


def _call_losses(call: ToolCall, seq: int | None, path: str) -> Iterator[Loss]:
    if call.arguments is None:
        yield Loss("arguments", seq, f"{path}.arguments")
    if call.extras is not None:
        yield Loss("extras", seq, f"{path}.extras")


def _losses_of(part: Part, seq: int | None, path: str) -> Iterator[Loss]:
    """The fields that do not come back from the item; the whole part if there is no item."""
    item = None if isinstance(part, OpaquePart) else item_of(part)
    if item is None:
        yield Loss("part", seq, path)
        return
    back = part_of(item)
    for field in _PART_FIELDS:
        value = getattr(part, field, None)
        if value is not None and value != getattr(back, field, None) and not _in_data_uri(part, field):
            yield Loss(field, seq, f"{path}.{field}")


def _in_data_uri(part: Part, field: str) -> bool:
    return isinstance(part, MediaPart) and not part.url and field in ("data", "mime_type")


def _thinks_after_speaking(message: ChatMessage) -> bool:
    parts = message.content if isinstance(message.content, list) else []
    thinks = [isinstance(part, ThinkPart) for part in parts]
    return thinks != sorted(thinks, reverse=True)
