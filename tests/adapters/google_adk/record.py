"""Write the samples of the format again: what ADK's classes dump, in both spellings of keys."""

from __future__ import annotations

import json
from typing import Any

from tests.adapters.google_adk.events import EVENTS
from tests.formats.google_adk.samples import PATH


def recorded() -> dict[str, Any]:
    return {
        "stored": {name: [_dumped(event, by_alias=False) for event in events] for name, events in EVENTS.items()},
        "by alias": {name: [_dumped(event, by_alias=True) for event in events] for name, events in EVENTS.items()},
    }


def _dumped(event: Any, *, by_alias: bool) -> Any:
    return event.model_dump(mode="json", exclude_none=True, by_alias=by_alias)


if __name__ == "__main__":
    PATH.write_text(json.dumps(recorded(), indent=1) + "\n")
