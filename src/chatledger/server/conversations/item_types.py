"""The types of items: the beginning of their ids, and whether they have a status."""

from __future__ import annotations

from typing import NamedTuple


class ItemType(NamedTuple):
    prefix: str
    """What the ids of such items begin with, without the underscore."""
    has_status: bool = False
    """Whether every item of the type has a status. One that comes without it is completed."""


MESSAGE = "message"

ITEM_TYPES = {
    MESSAGE: ItemType("msg", has_status=True),
    "function_call": ItemType("fc", has_status=True),
    "function_call_output": ItemType("fco", has_status=True),
    "custom_tool_call": ItemType("ctc"),
    "custom_tool_call_output": ItemType("ctco"),
    "reasoning": ItemType("rs"),
    "file_search_call": ItemType("fs", has_status=True),
    "web_search_call": ItemType("ws", has_status=True),
    "image_generation_call": ItemType("ig", has_status=True),
    "computer_call": ItemType("cu", has_status=True),
    "computer_call_output": ItemType("cuo", has_status=True),
    "tool_search_call": ItemType("tsc", has_status=True),
    "tool_search_output": ItemType("tso", has_status=True),
    "additional_tools": ItemType("at"),
    "configuration_update": ItemType("cfu"),
    "program": ItemType("prog"),
    "program_output": ItemType("progo", has_status=True),
    "compaction": ItemType("cmp"),
    "code_interpreter_call": ItemType("ci", has_status=True),
    "local_shell_call": ItemType("lsh", has_status=True),
    "local_shell_call_output": ItemType("lsho"),
    "shell_call": ItemType("sh", has_status=True),
    "shell_call_output": ItemType("sho", has_status=True),
    "apply_patch_call": ItemType("apc", has_status=True),
    "apply_patch_call_output": ItemType("apco", has_status=True),
    "mcp_list_tools": ItemType("mcpl"),
    "mcp_approval_request": ItemType("mcpr"),
    "mcp_approval_response": ItemType("mcpa"),
    "mcp_call": ItemType("mcp"),
}
"""The types that OpenAI's client knows as items of a conversation."""

UNKNOWN = ItemType("item")
"""A type that OpenAI added later. Its items are kept as they came."""

NO_ITEMS = {
    "item_reference": "an item belongs to one conversation, so send the item itself and not a reference to it",
    "compaction_trigger": "it asks a model to act, and a conversation only stores items",
}
"""Types that a request to a model may hold and a conversation does not, and why."""
