"""Programs that tests need and no Python package brings: looked for on PATH, else installed with apt where root may."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence


def find(names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def find_or_install(names: Sequence[str], packages: Sequence[str]) -> str | None:
    """The path of one of the programs, if need be after the first of the Debian packages that brings one."""
    if find(names) is None and shutil.which("apt-get") and os.geteuid() == 0:
        _apt("update")
        for package in packages:
            if _apt("install", "-y", package) and find(names):
                break
    return find(names)


def _apt(*command: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["apt-get", "-qq", *command], stdout=subprocess.DEVNULL, env=environment, check=False)
    return done.returncode == 0
