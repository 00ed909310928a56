"""What an export leaves out, as a line on stderr, so that nobody takes the file for a copy of the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from chatledger.cli.exit_codes import say

_WORDS = {"branches": "branch", "runs": "run", "scores": "score", "values": "value"}


def say_left_out(counts: Mapping[str, int]) -> None:
    """Nothing is said of a count of 0, or of one that is not given."""
    known = {name: counts.get(name, 0) for name in _WORDS}
    parts = [f"{count:,} {_WORDS[name] if count == 1 else name}" for name, count in known.items() if count]
    if parts:
        say(f"left out, because an export has no place for it: {', '.join(parts)}")
