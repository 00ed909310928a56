"""A history as `ModelMessagesTypeAdapter` of pydantic-ai-slim 2.68.0 dumps it, recorded from objects of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("history.json")


def history() -> list[dict[str, Any]]:
    """A new copy: a prompt with all media, a response with all kinds of parts, results, an answer, two retries."""
    messages: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
    return messages
