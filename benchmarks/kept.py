"""What the parts of a long run gave, kept in a folder, so that a run that was ended goes on where it was.

Kept for the code that was measured: where a line of it has changed since, nothing of before is taken.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path

from benchmarks.cases import Outcome
from benchmarks.progress import say

_ROOT = Path(__file__).parents[1]


class Kept:
    def __init__(self, folder: Path | None, extent: str) -> None:
        self._folder = None if folder is None else folder / f"{extent}-{_digest()}"

    def or_run(self, name: str, run: Callable[[], Outcome]) -> Outcome:
        if self._folder is None:
            return run()
        path = self._folder / f"{name.replace(' ', '-')}.pickle"
        if path.exists():
            say(f"{name}: taken from the run before")
            outcome: Outcome = pickle.loads(path.read_bytes())
            return outcome
        outcome = run()
        self._folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(outcome))
        return outcome

    def forget(self) -> None:
        """The run has come to its end; the next one measures anew."""
        if self._folder is not None and self._folder.exists():
            for path in self._folder.glob("*.pickle"):
                path.unlink()
            self._folder.rmdir()


def _digest() -> str:
    """Of all code that a figure depends on."""
    found = hashlib.sha256()
    for folder in ("src", "benchmarks", "migrations"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
