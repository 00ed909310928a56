"""`make candidate`: builds the program of the release candidate, for tests that need the old program itself.

It is built from the candidate's tag, or without that tag from the commit that release/candidate.toml names, once, into
`.candidate`.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from io import BytesIO
from pathlib import Path

from release.extras import ROOT

KEPT = ROOT / ".candidate"
NAMED = ROOT / "release" / "candidate.toml"


class NoCandidate(Exception):
    """Why its program cannot be built, and what to do about it."""


def main() -> int:
    try:
        folder = build()
    except NoCandidate as error:
        print(f"no candidate: {error}", file=sys.stderr)
        return 1
    print(folder.relative_to(ROOT))
    return 0


def build() -> Path:
    """The folder with its wheel and, in `site`, its package, which a PYTHONPATH can name. It takes half a minute, once.
    Raises NoCandidate.
    """
    commit = candidate_commit()
    kept = KEPT / commit
    if kept.is_dir():
        return kept
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT, prefix="building-", ignore_cleanup_errors=True) as folder:
        source, made = Path(folder) / "source", Path(folder) / "made"
        with tarfile.open(fileobj=BytesIO(call("git", "archive", commit))) as archive:
            archive.extractall(source, filter="data")
        call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), str(source))
        (wheel,) = made.glob("*.whl")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        call(*pip, "--target", str(made / "site"), str(wheel))
        with contextlib.suppress(OSError):  # another process was first
            made.rename(kept)
    return kept


def candidate_commit() -> str:
    """Raises NoCandidate if the clone does not have it."""
    named = tomllib.loads(NAMED.read_text(encoding="utf-8"))
    for name in (f"v{named['version']}", named["commit"]):
        with contextlib.suppress(NoCandidate):
            return call("git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    raise NoCandidate(
        f"the clone has no tag v{named['version']} and no commit {named['commit']}; run git fetch --unshallow"
    )


def call(*command: str) -> bytes:
    """What the command prints. Raises NoCandidate."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise NoCandidate(f"{' '.join(command)}: {done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
