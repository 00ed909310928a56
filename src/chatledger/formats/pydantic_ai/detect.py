"""Whether a payload is surely of Pydantic AI: its messages have a `kind`, and their parts a `part_kind`."""

from __future__ import annotations

from typing import Any

from chatledger.formats.pydantic_ai.names import PART_KIND, REQUEST, RESPONSE
from chatledger.formats.pydantic_ai.objects import is_object


def is_pydantic_ai(payload: object) -> bool:
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(map(_is_message, payload)) and any(is_object(message) or message["parts"] for message in payload)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict):
        return is_object(message)
    kind, parts = message.get("kind"), message.get("parts")
    return (
        isinstance(kind, str) and kind in (REQUEST, RESPONSE) and isinstance(parts, list) and all(map(_is_part, parts))
    )


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get(PART_KIND), str)
