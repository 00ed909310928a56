"""The round trips of all formats. Each format that is here has them in its strategies, as TRIPS."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.formats.round_trip import RoundTrip, dumped

__all__ = ["ROUND_TRIPS", "RoundTrip", "dumped"]

_FOLDERS = sorted(path.parent.name for path in Path(__file__).parent.glob("*/strategies.py"))
ROUND_TRIPS: list[RoundTrip] = [
    trip for folder in _FOLDERS for trip in import_module(f"tests.formats.{folder}.strategies").TRIPS
]
