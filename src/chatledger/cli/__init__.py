"""The command line. Importing this module needs neither the extra `cli` nor the database code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.errors import MissingExtra


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Without the extra `cli`, print how to install it."""
    if not _has_extra():
        say(str(MissingExtra("cli", "the command line")))
        return ExitCode.USAGE
    from chatledger.cli.app import run

    return run(sys.argv[1:] if arguments is None else arguments)


def _has_extra() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("typer", "rich"))
