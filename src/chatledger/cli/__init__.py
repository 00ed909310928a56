"""The command line. `main` needs neither the extra nor, to show its help, the database."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code: `EXIT_CODES` in outcome.py says which."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if _has_extra():
        from chatledger.cli.app import run

        return run(words)
    from chatledger.cli.plain import run_plain

    return run_plain(words)


def _has_extra() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("typer", "rich"))
