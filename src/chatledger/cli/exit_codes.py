"""How a command ends: its exit code, and one clear line on stderr if it failed."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

from chatledger.cli.escape import one_line
from chatledger.errors import ChatLedgerError, InvalidArgument, InvalidCursor, UnknownFormat


class ExitCode(IntEnum):
    OK = 0
    FOUND = 1
    USAGE = 2
    FAILED = 3
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done; 1 done, and something was found (a finding, a bad record, a schema that does not fit); "
    "2 the command cannot be: an option, a value, a format or a file that there is not; "
    "3 failed (the database, a thread that is not there, a file that says nothing known); 130 interrupted."
)


class UsageError(Exception):
    """The arguments do not go together; the text says what to give instead."""


_USAGE = (UsageError, InvalidArgument, InvalidCursor, FileNotFoundError, NotADirectoryError, IsADirectoryError)


def _code_of(error: Exception) -> ExitCode:
    """The same fault gives the same code, whichever command meets it."""
    asked_for = isinstance(error, UnknownFormat) and error.format is not None  # or else what a file holds
    return ExitCode.USAGE if asked_for or isinstance(error, _USAGE) else ExitCode.FAILED


_PASSWORD = re.compile(r"(://[^:/\s]*):[^\s]*@")
_PARAMETER = re.compile(r"([?&]\w*password=)[^&\s'\"]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def finish(command: Callable[[], int], *, debug: bool = False) -> int:
    """The exit code of a command; what it raises is said in one line, with a traceback only for `debug`."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        if debug:
            sys.stderr.write(without_passwords(traceback.format_exc()))
        say(_describe(error))
        return _code_of(error)


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, (ChatLedgerError, UsageError, OSError)):
        return str(error)
    if type(error).__name__ == "ValidationError":  # Pydantic's, not imported to be recognised
        problems = error.errors()  # type: ignore[attr-defined]
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems)
    return f"{type(error).__name__}: {error} (--debug shows where)"


def say(text: str) -> None:
    """A line for the person at the terminal, never part of the output."""
    sys.stderr.write(f"chatledger: {one_line(without_passwords(text))}\n")
    sys.stderr.flush()
