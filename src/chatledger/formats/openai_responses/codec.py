"""The codec of `format="openai-responses"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded, Written
from chatledger.formats.openai_responses.foreign import fit
from chatledger.formats.openai_responses.items import ROLES, Source, read_item
from chatledger.formats.openai_responses.read import grouped, read_payload
from chatledger.formats.openai_responses.write import NAME, PAYLOAD, shape_payload, write_message
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.formats.wire.plain import dump_given, plain_value
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The input or the output of a response, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_responses(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for consecutive items of the assistant up to its calls, and one for each other item.

        Lenient rules keep an unknown role as its text, and a malformed item or part whole.
        """
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of items, or the shape of the source. `carry` has no effect: no item has a free field."""
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The input: messages of the format as they came in, others fitted to the format."""
    items: list[Source] = []
    owners: list[int] = []
    own_indexes: list[int] = []
    for index, (message, (own, fitted)) in enumerate(zip(messages, _each_written(messages), strict=True)):
        written = fitted if own is None else own
        if own is not None or _needs_no_items(message):
            own_indexes.append(index)
        items += written
        owners += [index] * len(written)
    payload = shape_payload(messages[0], items) if messages else items
    return Written(payload, lambda: _origins(items, owners), own_indexes)


def _each_written(messages: Sequence[ChatMessage]) -> Iterator[tuple[list[Source] | None, list[Source]]]:
    """For each message the items that it was read from, or None and its fitted items."""
    pairing = Pairing()
    for position, message in enumerate(messages, 1):
        answered = pairing.follow(message, position)
        own = write_message(message)
        yield own, fit(message, position, answered) if own is None else []


def _origins(items: Sequence[Source], owners: Sequence[int]) -> list[tuple[int, ...]]:
    """The messages of each group of items: reading may join the items of several assistant messages."""
    owner = iter(owners)
    groups = grouped(read_item(item, "", lenient=True) for item in items)
    return [tuple(sorted({next(owner) for _ in group})) for group in groups]


def _needs_no_items(message: ChatMessage) -> bool:
    """Whether it is a message of the format whose residual, if any, describes its payload and not its items."""
    if message.format != NAME:
        return False
    return message.residual is None or (isinstance(message.residual, dict) and message.residual.keys() == {PAYLOAD})


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely a list of Responses items, alone or with instructions.
#
# Every item must be of a type that the API has. At least one must be more than a plain message: a list of plain
# messages is read as `openai-chat`.

_MESSAGE_KEYS = frozenset({"type", "role", "content", "id", "status", "phase"})
_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})
_PART_TYPES = _OWN_PARTS | {"input_audio", "refusal"}
_ITEM_KEYS = {
    "reasoning": "summary",
    "function_call": "call_id",
    "function_call_output": "call_id",
    "custom_tool_call": "call_id",
    "custom_tool_call_output": "call_id",
    "computer_call": "call_id",
    "computer_call_output": "call_id",
    "local_shell_call": "call_id",
    "local_shell_call_output": "output",
    "shell_call": "call_id",
    "shell_call_output": "call_id",
    "apply_patch_call": "call_id",
    "apply_patch_call_output": "call_id",
    "web_search_call": "id",
    "file_search_call": "id",
    "code_interpreter_call": "id",
    "image_generation_call": "id",
    "mcp_call": "server_label",
    "mcp_list_tools": "server_label",
    "mcp_approval_request": "server_label",
    "mcp_approval_response": "approval_request_id",
    "compaction": "encrypted_content",
    "item_reference": "id",
}
"""The types of items, each with a key that it always has."""


def is_openai_responses(payload: object) -> bool:
    try:
        source = plain_value(payload, "input", 4, dump_given)
    except DecodeError:
        return False
    if not isinstance(source, dict):
        return _are_own_items(source)
    input_ = source.get("input")
    if list(source) == ["input"]:
        return _are_own_items(input_)
    if source.keys() != {"instructions", "input"} or not isinstance(source["instructions"], str | None):
        return False
    return isinstance(input_, str) or _are_items(input_)


def _are_own_items(items: Any) -> bool:
    return _are_items(items) and any(_is_own_item(item) for item in items)


def _are_items(items: Any) -> bool:
    return isinstance(items, list) and bool(items) and all(_is_message(item) or _is_typed(item) for item in items)


def _is_own_item(item: dict[str, Any]) -> bool:
    if _is_typed(item) or item.get("type") == "message":
        return True
    content = item.get("content")
    return isinstance(content, list) and any(part["type"] in _OWN_PARTS for part in content)


def _is_typed(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, dict) else None
    return isinstance(kind, str) and kind in _ITEM_KEYS and _ITEM_KEYS[kind] in item and "role" not in item


def _is_message(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("type") not in (None, "message") or not item.keys() <= _MESSAGE_KEYS:
        return False
    role = item.get("role")
    return isinstance(role, str) and role in ROLES and _is_content(item.get("content"))


def _is_content(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(_is_part(part) for part in content))


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in _PART_TYPES


CODEC = OpenAIResponses()
