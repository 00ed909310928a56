"""Clients in processes of their own: they append, stream or follow until they are killed, and say what they do
and are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import chatledger
from chatledger import Cursor, Ledger
from tests.faults.recording import Recorder, Recording
from tests.faults.streamer import say_words


async def append_for_ever(recorder: Recorder, name: str, threads: Sequence[str]) -> None:
    chance = random.Random(name)
    for number in itertools.count():
        await recorder.work(f"{name}.{number}", chance.choice(threads), chance)


async def work(url: str, name: str, tasks: int, threads: Sequence[str]) -> None:
    async with Ledger.open(url) as ledger:
        recorder = Recorder(ledger, Recording(), tell=lambda line: print(line, flush=True))
        await asyncio.gather(*(append_for_ever(recorder, f"{name}-{task}", threads) for task in range(tasks)))


async def say_changes(url: str, thread: str, after: str, notify: bool) -> None:
    async with Ledger.open(url, notify=notify) as ledger:
        async for change in ledger.messages.follow(thread, cursor=Cursor(after)):
            print(json.dumps(change.model_dump(mode="json")), flush=True)  # a text may have lone surrogates


PROGRAMS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "append": work,
    "stream": say_words,
    "follow": say_changes,
}


@dataclass(frozen=True)
class Client:
    pid: int
    said: IO[str]

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """A process that has imported what a client needs, and forks one in a moment whenever it is asked."""

    def __init__(self, folder: Path) -> None:
        here, source = Path(__file__).parents[2], Path(chatledger.__file__).parents[1]
        self._folder = folder
        self._born: list[Client] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=here,
            env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{here}"},
        )

    def append(self, url: str, name: str, *, tasks: int, threads: Sequence[str]) -> Client:
        return self._start("append", url, name, tasks, threads)

    def stream(self, url: str, run: str, *, interval: float, size: int, lease: float) -> Client:
        return self._start("stream", url, run, interval, size, lease)

    def follow(self, url: str, thread: str, after: str, *, notify: bool) -> Client:
        return self._start("follow", url, thread, after, notify)

    def _start(self, program: str, *arguments: Any) -> Client:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = self._folder / f"{len(self._born)}.said"
        os.mkfifo(said)
        self._process.stdin.write(json.dumps([str(said), program, *arguments]) + "\n")
        self._process.stdin.flush()
        self._born.append(Client(int(self._process.stdout.readline()), said.open()))
        return self._born[-1]

    def close(self) -> None:
        for client in self._born:
            client.kill()
            client.said.close()
        self._process.communicate()


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    with tempfile.TemporaryDirectory(prefix="chatledger-clients-") as folder:
        opened = Nursery(Path(folder))
        try:
            yield opened
        finally:
            opened.close()


def main() -> None:
    """Fork a client for each line of stdin, and print its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are nobody's to wait for
    for line in sys.stdin:
        said, program, *wanted = json.loads(line)
        pid = os.fork()
        if not pid:
            sys.stdin.close()
            sys.stdout = open(said, "w")  # noqa: SIM115 - for the rest of its life
            asyncio.run(PROGRAMS[program](*wanted))
            os._exit(1)  # a client ends when it is killed
        print(pid, flush=True)


if __name__ == "__main__":
    main()
