"""UI messages as `readUIMessageStream` of ai 7.0.173 builds them, recorded from streams of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("histories.json")


def histories() -> dict[str, list[dict[str, Any]]]:
    """A new copy: an answer in two steps with all kinds of parts, approvals, and a stream that was cut."""
    read: dict[str, list[dict[str, Any]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return read
