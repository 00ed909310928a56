"""Running the command line: here, in a thread (a command has a loop of its own), or in a process as a user does."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from chatledger.cli import main

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line that was said; a second one fails."""
        [line] = self.err.splitlines()
        return line


def chatledger(*words: object, url: str | None = None, cwd: Path | None = None, given: bytes = b"") -> Outcome:
    """The outcome of a command; `url` is given as CHATLEDGER_URL."""
    with _streams(given) as (out, err), _environment(url), contextlib.chdir(cwd or os.getcwd()):
        with ThreadPoolExecutor(1) as pool:
            code = pool.submit(main, [*map(str, words)]).result(timeout=60)
        out.flush()
        return Outcome(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()


@contextlib.contextmanager
def _streams(given: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    streams = [io.TextIOWrapper(io.BytesIO(content), "utf-8") for content in (given, b"", b"")]
    with mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]):
        yield streams[1], streams[2]


@contextlib.contextmanager
def _environment(url: str | None) -> Iterator[None]:
    with mock.patch.dict(os.environ, {} if url is None else {"CHATLEDGER_URL": url}):
        if url is None:
            os.environ.pop("CHATLEDGER_URL", None)
        yield


def start(*words: object, **given: Any) -> subprocess.Popen[bytes]:
    """A process of its own."""
    environment = {"PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "error"}
    return subprocess.Popen([sys.executable, "-m", "chatledger.cli", *map(str, words)], env=environment, **given)
