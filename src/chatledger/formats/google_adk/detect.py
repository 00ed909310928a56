"""Whether a payload is surely a list of ADK's events: objects, or dicts of an author and what only events have."""

from __future__ import annotations

from typing import Any

_TELLING = frozenset({"invocation_id", "invocationId", "actions", "node_info", "nodeInfo"})


def is_google_adk(payload: object) -> bool:
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(event) or _is_event(event) for event in payload)


def is_object(value: object) -> bool:
    """Whether the value is an Event of ADK, or of a class that inherits from it."""
    return any(cls.__name__ == "Event" and cls.__module__ == "google.adk.events.event" for cls in type(value).__mro__)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("author"), str) or _TELLING.isdisjoint(event):
        return False
    content = event.get("content")
    if content is None:
        return "role" not in event
    return isinstance(content, dict) and isinstance(content.get("parts"), (list, type(None)))
