"""`make audit`: asks an index for advisories on the versions that chatledger is tested with, core and all extras.

    exit 0: it answered, and knows no advisory
    exit 1: it knows some; they are printed
    exit 3: no index answered, so nothing is known

pip-audit says "No known vulnerabilities found" and exits 0 where an index has no advisories at all. So a version with
well-known ones is asked about too, and an index that knows none of them did not answer. Words after the name of the
module go to pip-audit, such as `-s osv --osv-url ADDRESS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from release.extras import ROOT, extras, write_constraints

PROBE = ("django", "2.0")
"""A version that has advisories in every list of them, and that nothing here depends on."""
CLEAN, FOUND, UNANSWERED = 0, 1, 3


class Verdict(NamedTuple):
    code: int
    lines: Sequence[str]


def main(options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        asked = write_requirements(Path(folder))
        verdict = UNRESOLVED if asked is None else verdict_of(*answer_for(asked, options))
    print("\n".join(verdict.lines))
    return verdict.code


def write_requirements(folder: Path) -> Path | None:
    """The packages that pip would install for the checkout with all extras, and the probe. None if pip finds them
    nowhere.
    """
    report, written = folder / "report.json", folder / "requirements.txt"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--dry-run",
        "--ignore-installed",
        "--report",
        str(report),
    ]
    done = subprocess.run([*pip, "--constraint", str(write_constraints(folder)), f"{ROOT}[{extras()}]"], check=False)
    if done.returncode != 0:
        return None
    found = [one["metadata"] for one in json.loads(report.read_text(encoding="utf-8"))["install"]]
    packages = [(one["name"], one["version"]) for one in found if one["name"] != "chatledger"]
    written.write_text("".join(f"{name}=={version}\n" for name, version in [*packages, PROBE]), encoding="utf-8")
    return written


def answer_for(requirements: Path, options: Sequence[str]) -> tuple[str, str]:
    """What pip-audit writes, JSON or nothing if it could not ask, and what it says beside it."""
    tool = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--no-deps"]
    asked = [*tool, "--disable-pip", "--requirement", str(requirements), *options]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    return done.stdout, done.stderr


def verdict_of(answer: str, said: str = "") -> Verdict:
    """What an answer of pip-audit says of all packages but the probe."""
    packages: list[dict[str, Any]] = json.loads(answer)["dependencies"] if answer.strip() else []
    if not any(one.get("vulns") for one in packages if one["name"] == PROBE[0]):
        return Verdict(UNANSWERED, ["no index answered with advisories, so nothing is known", *_reason(answer, said)])
    others = [one for one in packages if one["name"] != PROBE[0]]
    found = [_line(one, advisory) for one in others for advisory in one.get("vulns", [])]
    unknown = [
        f"{one['name']}: {one['skip_reason']}, so nothing is known of it" for one in others if "skip_reason" in one
    ]
    if found or unknown:
        return Verdict(FOUND if found else UNANSWERED, [*found, *unknown])
    return Verdict(CLEAN, [f"{len(others)} packages, and no known advisory"])


def _reason(answer: str, said: str) -> list[str]:
    """The last thing that pip-audit said before it gave up."""
    return [] if answer.strip() else said.strip().splitlines()[-1:]


def _line(package: dict[str, Any], advisory: dict[str, Any]) -> str:
    mended = ", ".join(advisory["fix_versions"]) or "no version"
    return f"{package['name']} {package['version']}: {advisory['id']}, mended in {mended}"


UNRESOLVED = Verdict(UNANSWERED, ["pip found no index with these packages, so nothing is known"])

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
