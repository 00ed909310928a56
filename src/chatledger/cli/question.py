"""A question to the person at a terminal, before a command changes what it was not told in so many words to change."""

from __future__ import annotations

import sys

from chatledger.cli.escape import one_line


def can_ask() -> bool:
    """Whether a person reads stderr and types on stdin."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Whether the answer is y or yes; the end of the input is a no. Ask outside of an event loop, which would keep
    Ctrl-C from ending the question.
    """
    sys.stdout.flush()
    sys.stderr.write(f"chatledger: {one_line(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
