"""Runs the tests of core without each annex: in a copy of the tree that has neither the annex nor its tests.

`make test-core` collects all tests of core and runs the quick ones, which need no server. `make test-core PART=whole`
runs all of them, and `ANNEXES="chatledger.cli all"` names the annexes: `all` deletes every annex at once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.core import ANNEXES, ROOT

_MARKS = {"quick": "core and quick", "whole": "core"}
_ALL = "all"
_CHECK = """
import sys
from importlib.util import find_spec
assert find_spec("chatledger").origin.startswith(sys.argv[1]), find_spec("chatledger")
assert not [annex for annex in sys.argv[2:] if find_spec(annex)]
"""


def run_without(part: str, name: str) -> bool:
    """Whether the tests pass. Prints pytest's last line, and all that it says if they do not."""
    annexes = ANNEXES if name == _ALL else [name]
    with tempfile.TemporaryDirectory(prefix="chatledger-core-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "site", "dist", "build", "*.db"))
        for annex in annexes:
            delete(copy, annex)
        run = partial(
            subprocess.run,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        run([sys.executable, "-c", _CHECK, str(copy), *annexes], check=True)
        workers = ["-n", "2"] if part == "whole" else []
        done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", _MARKS[part], *workers])
    said = done.stdout.rstrip().splitlines()
    print(f"without {name}: {said[-1]}", flush=True)
    if done.returncode:
        print(*said[-60:], sep="\n", flush=True)
    return done.returncode == 0


def delete(tree: Path, annex: str) -> None:
    """The annex, and the folder of its tests if there is one: an annex without has its tests among the other ones."""
    place = Path(*annex.split(".")[1:])
    for path in (tree / "src" / "chatledger" / place, tree / "tests" / place):
        if path.is_dir():
            shutil.rmtree(path)
    (tree / "src" / "chatledger" / place).with_suffix(".py").unlink(missing_ok=True)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.without_annexes", description=__doc__)
    parser.add_argument("--part", choices=sorted(_MARKS), default="quick")
    parser.add_argument("annexes", nargs="*", help="by default each, and all at once")
    given = parser.parse_args(arguments)
    known = [*ANNEXES, _ALL]
    if not set(given.annexes) <= set(known):
        parser.error(f"known annexes: {', '.join(known)}")
    given.annexes = given.annexes or known
    return given


def main() -> int:
    given = options()
    at_once = 2 if given.part == "quick" else 1
    with ThreadPoolExecutor(at_once) as pool:
        passed = list(pool.map(partial(run_without, given.part), given.annexes))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
