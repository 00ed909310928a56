"""Recorded HTTP requests: `{"endpoint": …, "request": body, "response": …}`, alone or many in a recording.

A recording is one JSON object whose `interactions` are such requests. Each becomes a thread of its own, since a
recording may hold requests to several providers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chatledger.models.json import JsonValue
from chatledger.transfer.records import BadRecord, Record

INTERACTIONS, REQUEST = "interactions", "request"
_BESIDE_A_REQUEST = frozenset({"endpoint", "response", "url", "path"})


def request_path(record: JsonValue) -> list[str]:
    """The path to the body of a recorded request; empty for a plain body."""
    return [REQUEST] if _is_interaction(record) else []


def request_body(record: JsonValue) -> JsonValue:
    return record[REQUEST] if _is_interaction(record) else record


_ENDPOINTS = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/responses/compact": "openai-responses",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
}


def spoken_by(record: JsonValue) -> str | None:
    """The format of a recorded request, by its endpoint: "" for an unknown endpoint, None without an endpoint."""
    value = record.get("endpoint") if _is_interaction(record) else None
    if not isinstance(value, str):
        return None
    endpoint = value.partition("?")[0].rstrip("/")
    return next((name for ending, name in _ENDPOINTS.items() if endpoint.endswith(ending)), "")


def _is_interaction(record: JsonValue) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get(REQUEST), dict):
        return False
    return bool(_BESIDE_A_REQUEST & record.keys())


def _is_recording(value: JsonValue) -> bool:
    requests = value.get(INTERACTIONS) if isinstance(value, dict) else None
    return isinstance(requests, list) and any(map(_is_interaction, requests))


def each_request(record: Record | BadRecord) -> Iterator[Record | BadRecord]:
    """The record, or each request of a recording as a record of its own."""
    if isinstance(record, BadRecord) or not _is_recording(record.value):
        yield record
        return
    around = {key: value for key, value in record.value.items() if key != INTERACTIONS}
    for number, request in enumerate(record.value[INTERACTIONS]):
        yield replace(record, value=request, item=number, around=around)
