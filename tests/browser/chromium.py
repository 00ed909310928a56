"""The Chromium of this machine: on PATH, or installed with apt.

`python -m tests.browser.chromium` prints its path, and fails with what to install if there is none.
"""

from __future__ import annotations

import sys

from tests import programs

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
PACKAGES = ("chromium-headless-shell", "chromium")
"""Debian's headless Chromium, or the whole one where there is no such package."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def find() -> str | None:
    return programs.find(NAMES)


if __name__ == "__main__":
    path = programs.find_or_install(NAMES, PACKAGES)
    if path is None:
        sys.exit(f"there is no browser to test with: install Chromium, so that one of {', '.join(NAMES)} is on PATH")
    print(path)
