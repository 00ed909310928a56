"""Processes that serve a database: `serving.py`, run by the candidate's own program or by the checkout's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from release.extras import ROOT

from tests.conftest import Database
from tests.migrations.released.candidate import candidate_environment

MORE = 4
PROGRAM = Path(__file__).with_name("serving.py")
LONGEST = 300.0
"""Seconds until what a test waits for must have come."""


class Server:
    """A process that serves, and what it wrote down."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log

    def events(self, name: str) -> list[dict[str, Any]]:
        text = self._log.read_text(encoding="utf-8") if self._log.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # the process may be writing the last line
        return [event for event in map(json.loads, whole.splitlines()) if event["event"] == name]

    def until(self, name: str, count: int = 1) -> None:
        """Wait until it wrote `count` such lines."""
        over = time.monotonic() + LONGEST
        while len(events := self.events(name)) < count:
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < over, f"{name}: {len(events)} of {count}"
            time.sleep(0.02)

    def go_on(self) -> None:
        """Wait for a few more appends and answers."""
        for name, count in [(name, len(self.events(name)) + MORE) for name in ("appended", "answered")]:
            self.until(name, count)

    def do(self, *command: str) -> Any:
        """What the command returns in the process."""
        count = len(self.events("did")) + 1
        self._tell(command)
        self.until("did", count)
        return self.events("did")[-1]["result"]

    def end(self) -> None:
        self._tell(["stop"])
        _, errors = self.process.communicate(timeout=LONGEST)
        assert self.process.returncode == 0, errors

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def acknowledged(self, name: str) -> dict[str, int]:
        """How many were, by thread."""
        return {event["thread"]: event["number"] + 1 for event in self.events(name)}

    def _tell(self, command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()


@contextmanager
def serving(database: Database, kind: str, name: str, folder: Path, *agents: str, old: bool) -> Iterator[Server]:
    """A process with traffic, which is killed at the end if it still runs."""
    log = folder / f"{name}.jsonl"
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "serve", database.url, kind, name, str(log), *agents],
        env=candidate_environment() if old else os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    server = Server(process, log)
    try:
        yield server
    finally:
        if process.poll() is None:
            server.kill()


def run_old(command: str, database: Database, kind: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of the candidate's program."""
    given = [sys.executable, str(PROGRAM), command, database.url, kind]
    return subprocess.run(given, env=candidate_environment(), capture_output=True, text=True, check=False)
