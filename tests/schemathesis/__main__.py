"""Run all checks of schemathesis against `chatledger serve`, as a user and as the administrator, on both databases.

    python -m tests.schemathesis --minutes 5

Exits with 1 if a check fails. `schemathesis.toml` beside this file names the checks that contradict what the server
does on purpose, each with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx

from chatledger.server import Caller, TokenFile
from tests import postgres
from tests.schemathesis.rows import add_rows
from tests.server.conftest import serving

CONFIG = Path(__file__).with_name("schemathesis.toml")
CHECKS = Path(__file__).with_name("checks.py")
_MADE = re.compile(r"\d+ generated")
"""In the summary of a run that made requests. One that has too little time makes none, and ends well."""


@contextlib.contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    with postgres.server() as server, server.database() as url:
        yield {"sqlite": str(folder / "chat.db"), "postgresql": url}


def begin(url: str, token: str, seconds: int, folder: Path, seed: int | None) -> subprocess.Popen[str]:
    """Start schemathesis, which writes what it finds and the request that shows it to a file of the folder."""
    words = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color"),
        *("run", f"{url}/v1/openapi.json", "--header", f"Authorization: Bearer {token}", "--checks", "all"),
        *("--max-time", str(seconds), *(() if seed is None else ("--seed", str(seed)))),
    ]
    folder.mkdir()
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(CHECKS)}
    with (folder / "output").open("w") as output:
        return subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True)


def show(lines: Iterable[str]) -> None:
    """Print what the server says. Nobody else reads its pipe, and a full one would stop it."""
    with contextlib.suppress(ValueError):  # closed
        for line in lines:
            sys.stderr.write(line)


def check(kind: str, url: str, folder: Path, seconds: int, seed: int | None) -> bool:
    """Whether no check fails on a database. A user and the administrator send their requests at the same time: fewer
    than the pool has connections, so that a 503 is a failure too.
    """
    path = folder / f"{kind}.tokens"
    tokens = TokenFile.create(path)
    callers = {"user": tokens.add(Caller("ada")), "administrator": tokens.add(Caller(admin=True))}
    with serving(url, "--migrate", "--tokens", str(path)) as server:
        threading.Thread(target=show, args=[server.process.stderr], daemon=True).start()
        add_rows(server.url, callers["user"])
        # The description is made at the first request, which may take longer than schemathesis waits.
        httpx.get(f"{server.url}/v1/openapi.json", headers={"Authorization": f"Bearer {callers['user']}"}, timeout=120)
        runs = [begin(server.url, token, seconds, folder / f"{kind}-{who}", seed) for who, token in callers.items()]
        codes = [run.wait() for run in runs]
    said = [(folder / f"{kind}-{who}" / "output").read_text() for who in callers]
    for who, output in zip(callers, said, strict=True):
        print(f"--- {kind}, {who}", output, sep="\n", flush=True)
        if not _MADE.search(output):
            print(f"It made no request within {seconds} s: give it more MINUTES.", flush=True)
    return not any(codes) and all(map(_MADE.search, said))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="time for both databases together")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="run on this database only")
    parser.add_argument("--seed", type=int, help="make the requests of an earlier run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chatledger-schemathesis-") as name, databases(Path(name)) as urls:
        chosen = {kind: url for kind, url in urls.items() if asked.only in (None, kind)}
        seconds = max(1, round(asked.minutes * 60 / len(chosen)))
        passed = [check(kind, url, Path(name), seconds, asked.seed) for kind, url in chosen.items()]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
