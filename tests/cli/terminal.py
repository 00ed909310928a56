"""A command at a terminal, as a person runs it: a process whose streams are a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import signal

from tests.cli.commands import start


def at_terminal(*words: object, prompt: str, typed: str) -> tuple[int, str]:
    """The exit code and all that the terminal showed. Once `prompt` is shown, `typed` is typed; ^C is Ctrl-C."""
    ours, theirs = pty.openpty()
    # A terminal's process hears Ctrl-C, even if the tests run in the background of a shell, where it is ignored.
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = start(*words, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=hear)
    os.close(theirs)
    shown, waiting = "", True
    try:
        while piece := _read(ours):
            shown += piece
            if waiting and prompt in shown:
                waiting = False
                process.send_signal(signal.SIGINT) if typed == "^C" else os.write(ours, typed.encode())
        return process.wait(60), shown.replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65_536).decode()
    except OSError:  # Linux says so when the last process has closed the other end
        return ""
