"""Names that several modules of the format share: of keys, of parts, of residual sections."""

from __future__ import annotations

from chatledger.formats.wire.residual import nested
from chatledger.models.json import JsonValue, same_json

NAME = "pydantic-ai"
Source = dict[str, JsonValue]

REQUEST = "request"
RESPONSE = "response"
PART_KIND = "part_kind"

SYSTEM = "system-prompt"
USER = "user-prompt"
RETURN = "tool-return"
RETRY = "retry-prompt"
FEEDBACK = "retry-feedback"
TEXT = "text"
THINKING = "thinking"
FILE = "file"
CALL = "tool-call"

DIGESTS = "content_file_digests"
"""The key of a tool result that lists which objects in its content are files and not data of the tool."""

# The sections of a residual, besides `keys` and `extra` of `wire.residual` in each of them.
HEAD = "head"
"""Of the message around its parts; on the first row of each message."""
PART = "part"
"""Of the part that a row of a request is."""
PARTS = "parts"
"""Of the items of a prompt or of a result, or of the parts of a response, by index."""
CALLS = "calls"
"""Of the calls of a response, by index."""
CALLS_AT = "calls_at"
"""The positions of the calls of a response, if they were not after all its other parts."""
WHOLE = "whole"
"""True: the row is a whole message that only lenient rules accept, and its content is that message."""
EMPTY = "empty"
"""True: the row is a request without parts."""
GIVEN = "given"
"""Inside a section: the values of keys that the framework generates if they are absent."""
KIND = "kind"
"""Inside a section: the kind of a part or an item, if its row or its type does not determine it."""
AS_JSON = "json"
"""Inside a section: true if the text is the JSON of the content."""
SINGLE = "single"
"""Inside a section: true if the content of a result is a file and not a list with one."""
STANDARD = "standard"
"""Inside a section: true if the data was in standard base64. The framework writes URL-safe base64."""

METADATA = (
    "usage",
    "model_name",
    "model_id",
    "provider_name",
    "provider_url",
    "canonical_system",
    "provider_details",
    "provider_response_id",
    "finish_reason",
    "metadata",
    "workspace_ref",
    "history_digest",
    "failed_attempts",
)
"""The keys of a response that are its `response_metadata`, where they are not the framework's defaults."""

_NO_USAGE: Source = {
    "input_tokens": 0,
    "cache_write_tokens": 0,
    "cache_write_1h_tokens": 0,
    "cache_read_tokens": 0,
    "output_tokens": 0,
    "output_reasoning_tokens": 0,
    "input_audio_tokens": 0,
    "cache_audio_read_tokens": 0,
    "output_audio_tokens": 0,
    "audio_seconds": 0.0,
    "details": {},
    "cost": None,
}


def original(residual: JsonValue, key: str) -> Source:
    """The key with the value of the source, to be spread into the encoded object; empty if the source had none."""
    values = nested(residual, GIVEN)
    return {key: values[key]} if isinstance(values, dict) and key in values else {}


def with_given(source: Source, *keys: str) -> Source:
    """The beginning of a residual: the values of keys that the writer could not generate again."""
    values = {key: source[key] for key in keys if key in source}
    return {GIVEN: values} if values else {}


def request_head(parts: list[JsonValue]) -> Source:
    return {
        "parts": parts,
        "timestamp": None,
        "instructions": None,
        "kind": REQUEST,
        "run_id": None,
        "conversation_id": None,
        "metadata": None,
        "state": "complete",
    }


def response_head(residual: JsonValue, parts: list[JsonValue], metadata: Source) -> Source:
    fields = {key: metadata.get(key) for key in METADATA}
    return {
        "parts": parts,
        "usage": metadata.get("usage", {**_NO_USAGE, "details": {}}),
        "model_name": fields["model_name"],
        "model_id": fields["model_id"],
        **original(residual, "timestamp"),
        "kind": RESPONSE,
        **{key: fields[key] for key in METADATA[3:9]},
        "run_id": None,
        "conversation_id": None,
        **{key: fields[key] for key in METADATA[9:]},
        "state": "complete",
    }


def metadata_of(source: Source) -> Source | None:
    """The metadata of a response, without default values."""
    fields = {key: source[key] for key in METADATA if key in source and is_metadata(key, source[key])}
    return fields or None


def is_metadata(key: str, value: JsonValue) -> bool:
    """Whether reading a response returns the value as metadata."""
    return value is not None and not (key == "usage" and same_json(value, _NO_USAGE)) and key in METADATA
