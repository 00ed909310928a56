"""Generated mutants: small faults in core, each run against the tests that cover its line.

    python -m tests.faults.generated [--tests PATH…] [--most N]

`generated.jsonl` holds the mutants, each with its outcome in the first run. A run without the file draws them. It keeps
the contexts of coverage.py and its outcomes in `.mutants` and resumes from there; delete the folder to begin again.

The first run of a mutant takes up to 20 tests. A later one takes all tests of the line, and exits 1 if a mutant is not
killed that was killed at first. `reason` in its row excuses it: why the program is equal, or why the line is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import coverage

from tests import VARIABLE
from tests.core import is_of_core
from tests.faults.drawn import draw
from tests.faults.mutant import ROOT, Fault, change, path_of
from tests.postgres import URL_VARIABLE, server

FAULTS = Path(__file__).with_name("generated.jsonl")
KEPT = ROOT / ".mutants"
TESTS = 20
SECONDS = 20  # a test
AT_ONCE = 2
KILLED = ("killed", "timed out")


@dataclass(frozen=True)
class Row:
    """A line of the file. `first`: the outcome of the first run."""

    fault: Fault
    first: str | None = None
    reason: str | None = None


Covered = Mapping[str, Mapping[int, Sequence[str]]]
"""By file and line, the tests that run the line."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="only the tests below these, and what they cover")
    parser.add_argument("--most", type=int, metavar="N", help="run this many mutants")
    asked = parser.parse_args()
    with server() as running:
        os.environ[URL_VARIABLE] = running.url
        covered = gather(asked.tests or ["tests/"])
        rows = read() or [Row(fault) for fault in draw()]
        write(rows)
        tests = [covered.get(row.fault.file, {}).get(row.fault.line, []) for row in rows]
        wanted = [place for place, found in enumerate(tests) if found or not asked.tests]
        log = KEPT / ("outcomes-of-some-tests.jsonl" if asked.tests else "outcomes.jsonl")
        outcomes = _run(rows, tests, wanted, asked.most, log)
    # That some of the tests let a mutant live says nothing of all.
    firsts = {place: found for place, found in outcomes.items() if found in KILLED or not asked.tests}
    write([replace(row, first=row.first or firsts.get(place)) for place, row in enumerate(rows)])
    return report(rows, outcomes)


# --- The tests that cover a line --------------------------------------------------------------------------------------


def gather(below: Sequence[str]) -> Covered:
    """Run the tests of core, a folder at a time, with a context for each test, unless this was done before."""
    KEPT.mkdir(exist_ok=True)
    folders: dict[str, list[str]] = {}
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        name = test.relative_to(ROOT).as_posix()
        if is_of_core(name) and name.startswith(tuple(below)):
            folders.setdefault(name.rpartition("/")[0], []).append(name)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        databases = list(pool.map(_measured, folders, folders.values()))
    covered: dict[str, dict[int, list[str]]] = {}
    for database in databases:
        contexts = coverage.CoverageData(str(database))
        contexts.read()
        for path in contexts.measured_files():
            lines = covered.setdefault(Path(path).relative_to(path_of("")).as_posix(), {})
            for line, tests in contexts.contexts_by_lineno(path).items():
                if named := set(tests) - {""}:
                    lines.setdefault(line, []).extend(named)
    return covered


def _measured(folder: str, files: Sequence[str]) -> Path:
    database = KEPT / f"{folder.replace('/', '.')}.coverage"
    if not database.exists():
        began = time.monotonic()
        unfinished = database.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        selected = ["-p", "tests.faults.contexts", "-m", "core and not old_program", *files]
        code, output = _pytest(selected, {"CHATLEDGER_COVERAGE": str(unfinished)}, None)
        if code:
            raise SystemExit(f"{folder}: these tests fail without a mutant\n{output[-3_000:]}")
        unfinished.rename(database)
        print(f"{folder:40} measured in {time.monotonic() - began:.0f} s", flush=True)
    return database


def choose(tests: Sequence[str], lines: Mapping[str, int]) -> Sequence[str]:
    """The tests in their order: first a case of each function. `lines`: how many lines with a mutant a test covers."""
    cases: Counter[str] = Counter()
    ranked: list[tuple[int, int, str]] = []
    for test in sorted(tests, key=lambda test: (lines[test], "postgresql" in test, test)):
        function = test.partition("[")[0]
        ranked.append((cases[function], len(ranked), test))
        cases[function] += 1
    return [test for *_, test in sorted(ranked)]


# --- The mutants ------------------------------------------------------------------------------------------------------


def _run(
    rows: Sequence[Row], tests: Sequence[Sequence[str]], wanted: Sequence[int], most: int | None, log: Path
) -> Mapping[int, str]:
    """The outcomes by the place in the file. What an earlier run has found is not done again."""
    outcomes = dict(json.loads(line) for line in log.read_text().splitlines()) if log.exists() else {}
    lines = Counter(test for found in tests for test in found)
    left = [place for place in wanted if place not in outcomes][:most]

    def run(place: int) -> tuple[str, float]:
        began = time.monotonic()
        chosen = choose(tests[place], lines)[: None if rows[place].first else TESTS]
        found = outcome(rows[place].fault, chosen)
        if found != "unclear":
            with log.open("a") as file:
                print(json.dumps([place, found]), file=file)
        return found, time.monotonic() - began

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for place, (found, seconds) in zip(left, pool.map(run, left), strict=True):
            fault = rows[place].fault
            print(f"{place:4} {found:10} {seconds:4.0f} s   {fault.file}:{fault.line} {fault.kind}", flush=True)
            if found != "unclear":
                outcomes[place] = found
    return outcomes


def outcome(fault: Fault, tests: Sequence[str]) -> str:
    """killed, timed out, survived, uncovered, gone, or unclear: the tests do not pass without the mutant either."""
    try:
        change(path_of(fault.file).read_text(), fault)
    except ValueError as error:
        print(error)
        return "gone"
    if not tests:
        return "uncovered"
    limit = 60 + SECONDS * len(tests)
    code, output = _pytest(["-x", *tests], {VARIABLE: json.dumps(asdict(fault))}, limit)
    if code == 0:
        return "survived"
    slow = code is None or "Failed: Timeout" in output
    # A failed test has found the mutant. All else may also come of a slow machine, or of a test that is gone.
    if (code != 1 or slow) and _pytest(["-x", *tests], {}, limit)[0] != 0:
        return "unclear"
    return "timed out" if slow else "killed"


def _pytest(arguments: Sequence[str], variables: Mapping[str, str], limit: float | None) -> tuple[int | None, str]:
    """The exit code, or None after `limit` seconds, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    command += [f"--timeout={SECONDS}"] if limit else []
    with tempfile.TemporaryDirectory(prefix="chatledger-mutants-") as folder:
        settings = {"CHATLEDGER_FAILURES": folder, "CHATLEDGER_HYPOTHESIS": "first failure"}
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **settings, **variables}, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the servers that a test left
            process.wait()
    return process.returncode, output


def report(rows: Sequence[Row], outcomes: Mapping[int, str]) -> int:
    """Print the share killed by package. 1 if a mutant was killed at first, and is not now, without a reason."""
    packages: dict[str, Counter[str]] = {}
    for place in sorted(outcomes, key=lambda place: rows[place].fault.file):
        package = rows[place].fault.file.rpartition("/")[0] or "(top)"
        packages.setdefault(package, Counter())[outcomes[place]] += 1
    packages["in all"] = Counter(outcomes.values())
    for package, found in packages.items():
        killed = sum(found[kind] for kind in KILLED)
        print(f"{package:40} {killed:4} of {found.total():4} killed, {found['timed out']} of them by the time")
    lost = [place for place, found in outcomes.items() if found not in KILLED and rows[place].first in KILLED]
    lost = [place for place in lost if not rows[place].reason]
    for place in lost:
        fault = rows[place].fault
        print(f"{fault.file}:{fault.line} was killed, is {outcomes[place]}: {fault.replaced} → {fault.replacement}")
    return bool(lost)


def read() -> Sequence[Row]:
    dicts = [json.loads(line) for line in FAULTS.read_text().splitlines()] if FAULTS.exists() else []
    return [Row(Fault(**row.pop("fault")), **row) for row in dicts]


def write(rows: Sequence[Row]) -> None:
    dicts = [{name: value for name, value in asdict(row).items() if value} for row in rows]
    FAULTS.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in dicts))


if __name__ == "__main__":
    sys.exit(main())
