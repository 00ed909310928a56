"""What is being measured right now, and since when the run goes on: on stderr, beside the tables."""

from __future__ import annotations

import sys
import time

_START = time.monotonic()


def say(what: str) -> None:
    print(f"[{time.monotonic() - _START:5.0f} s] {what}", file=sys.stderr, flush=True)
