"""The Chromium of this machine: on PATH, or installed with apt.

`python -m tests.browser.chromium` prints its path, and fails with what to install if there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    """Install Debian's headless Chromium, or the whole one where there is no such package."""
    quiet = {"check": False, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)  # type: ignore[call-overload]
    for name in ("chromium-headless-shell", "chromium"):
        done = subprocess.run(["apt-get", "install", "-y", "-qq", name], stdout=subprocess.DEVNULL, **quiet)  # type: ignore[call-overload]
        if done.returncode == 0 and find() is not None:
            return


if __name__ == "__main__":
    if find() is None and shutil.which("apt-get") and os.geteuid() == 0:
        install()
    path = find()
    if path is None:
        sys.exit(f"there is no browser to test with: install Chromium, so that one of {', '.join(NAMES)} is on PATH")
    print(path)
