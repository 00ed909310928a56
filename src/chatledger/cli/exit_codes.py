"""Exit codes, and `finish`, which reports an error as one line on stderr and an exit code."""

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
    "Exit codes: 0 done; 1 done, with findings (a broken rule, a bad record, a schema that does not match); "
    "2 usage error: unknown option, bad value, unknown format or missing file; "
    "3 failed (database error, unknown thread, file of unknown format); 130 interrupted."
)


class UsageError(Exception):
    """The arguments are wrong. The message says what to give instead."""


_USAGE = (UsageError, InvalidArgument, InvalidCursor, FileNotFoundError, NotADirectoryError, IsADirectoryError)


def _code_of(error: Exception) -> ExitCode:
    """The exit code of an error, the same in every command."""
    asked_for = isinstance(error, UnknownFormat) and error.format is not None  # None: the format of a file is unknown
    return ExitCode.USAGE if asked_for or isinstance(error, _USAGE) else ExitCode.FAILED


MOST = 4_096
"""The characters of a line that are shown. An error may quote what somebody else sent."""
_PASSWORD = re.compile(r"(://[^:/\s]{0,256}):[^\s]{0,1024}@")
_CUT_OFF = re.compile(r"(://[^:/\s]{0,256}):[^\s]{0,1024}\Z")
"""The beginning of a password whose end was cut off."""
_PARAMETER = re.compile(r"([?&]\w*password=)[^&\s'\"]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """The text with the passwords of URLs masked, and its lines cut."""
    return "\n".join(map(_line, text.split("\n")))


def _line(text: str) -> str:
    shown = _PASSWORD.sub(r"\1:***@", text[:MOST])
    if len(text) > MOST:
        shown = _CUT_OFF.sub(r"\1:***", shown) + f"… ({len(text):,} characters)"
    return _PARAMETER.sub(r"\1***", shown)


def finish(command: Callable[[], int], *, debug: bool = False) -> int:
    """Run a command and return its exit code. An error is reported in one line, with a traceback only if `debug`."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the program that reads our output, such as `head`, closed the pipe
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
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    if type(error).__name__ == "ValidationError":  # Pydantic's; its name avoids an import
        problems = error.errors()  # type: ignore[attr-defined]
        return "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in problems
        )
    return f"unexpected {type(error).__name__}: {error} (--debug prints a traceback)"


def say(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"chatledger: {without_passwords(one_line(text))}\n")
    sys.stderr.flush()
