"""The names that several modules of the format share, and the two spellings of keys.

ADK writes its keys as `function_call`, or as `functionCall` if it dumps by alias. All keys of an event have the same
spelling. The format works with the first; the residual of an event's first row records the second.
"""

from __future__ import annotations

from collections.abc import Mapping

from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

NAME = "google-adk"
Source = dict[str, JsonValue]

CAMEL = "camel"
"""The `form` of an event whose keys are spelled like `functionCall`."""

# The sections of a residual, which each hold `keys`, `extra` and `inner` as in `wire.residual`.
HEAD = "head"
"""Of the event around its parts; on the first row of each event."""
PARTS = "parts"
"""Of the parts of the content by index; on the row of a result those of the media beside the response."""
CALLS = "calls"
"""Of the calls by index."""
CALLS_AT = "calls_at"
"""The positions of the calls among the parts, if they are not the last ones."""
RESULT = "result"
"""Of the part that holds the result of a tool."""
RESPONSE = "response"
"""How the response of a tool spells the content: `json`, or `output` for the text under that key."""
REST_AT = "rest_at"
"""The positions of parts that stand in one event with results; on the row that holds them."""

AS_JSON = "json"
OUTPUT = "output"

USER = "user"
MODEL = "model"
"""The role of an assistant's content, and the author of an assistant without a name."""

METADATA = ("model_version", "finish_reason", "error_code", "error_message", "usage_metadata")
"""The keys of an event that are its `response_metadata`. All are texts but the last, which is an object."""

_KNOWN = (
    *METADATA,
    "content",
    "invocation_id",
    "author",
    "actions",
    "node_info",
    "id",
    "timestamp",
    "state_delta",
    "artifact_delta",
    "requested_auth_configs",
    "requested_tool_confirmations",
    "path",
    "parts",
    "role",
    "text",
    "thought",
    "thought_signature",
    "function_call",
    "function_response",
    "inline_data",
    "file_data",
    "args",
    "name",
    "response",
    "data",
    "mime_type",
    "display_name",
    "file_uri",
)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_CAMEL = {name: _camel(name) for name in _KNOWN}
_SNAKE = {camel: name for name, camel in _CAMEL.items()}


def spelled(encoded: Source, camel: bool) -> Source:
    """The object with its own keys in the spelling of the event. Objects inside it stay."""
    return {_CAMEL.get(key, key): value for key, value in encoded.items()} if camel else encoded


def view(source: Mapping[str, JsonValue], camel: bool) -> Mapping[str, JsonValue]:
    """The known keys of a source as the format names them."""
    return {_SNAKE[key]: value for key, value in source.items() if key in _SNAKE} if camel else source


def own_residual(message: ChatMessage) -> JsonValue:
    """The residual of a message that came in this format; None for any other message."""
    return message.residual if message.format == NAME else None


def is_metadata(key: str, value: JsonValue) -> bool:
    """Whether an event has a place for this entry of `response_metadata`."""
    return key in METADATA and isinstance(value, dict if key == "usage_metadata" else str)
