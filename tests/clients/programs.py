"""The curl, Node and Go of this machine: on PATH, or installed with apt.

`python -m tests.clients.programs` prints their paths, and fails with what to install if one is missing.
"""

from __future__ import annotations

import sys

from tests import programs

PACKAGES = {"curl": "curl", "node": "nodejs", "go": "golang-go"}

if __name__ == "__main__":
    found = {name: programs.find_or_install([name], [package]) for name, package in PACKAGES.items()}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        sys.exit(f"install {', '.join(missing)}, so that each is on PATH")
    print(*found.values())
