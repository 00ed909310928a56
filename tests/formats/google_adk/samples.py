"""Events as ADK's own classes dump them. `python -m tests.adapters.google_adk.record` records them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("events.json")
RECORDED: dict[str, Any] = json.loads(PATH.read_text())
SAMPLES: dict[str, list[Any]] = {
    f"{name}, {spelling}": events for spelling, kinds in RECORDED.items() for name, events in kinds.items()
}
"""Each kind of event in both spellings of keys: as ADK's stores have it, and dumped by alias."""
