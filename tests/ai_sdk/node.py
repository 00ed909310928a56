"""The Node of this machine, on PATH or installed with apt together with npm, which must reach its packages.

`python -m tests.ai_sdk.node` prints its path, and fails with what is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import programs

NODE = ("node", "nodejs")
NPM = ("npm",)
OLDEST = 20
PACKAGES = json.loads(Path(__file__).with_name("package.json").read_text(encoding="utf-8"))["dependencies"]
LONGEST = 120
"""Seconds until npm has answered."""


def missing() -> str | None:
    """What to install, or why it does not do; None if all is there."""
    node, npm = programs.find_or_install(NODE, ["nodejs"]), programs.find_or_install(NPM, ["npm"])
    if node is None or npm is None:
        return "there is no Node to test with: install it, so that node and npm are on PATH"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST:
        return f"{node} is {version}, and the tests need {OLDEST} or newer"
    try:
        asked = [npm, "view", f"ai@{PACKAGES['ai']}", "version"]
        subprocess.run(asked, capture_output=True, timeout=LONGEST, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return "npm does not reach its packages"
    return None


if __name__ == "__main__":
    reason = missing()
    if reason is not None:
        sys.exit(reason)
    print(programs.find(NODE))
