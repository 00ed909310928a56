"""The extras of the package, as pyproject.toml names them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).parents[1]
OF_DEVELOPERS = frozenset({"dev", "docs"})
"""Extras of who works on the package. No program that uses it installs them."""


def extras(*, without: Collection[str] = ()) -> str:
    """The names of the extras, as pip takes them between brackets."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return ",".join(sorted(set(project["optional-dependencies"]) - set(without)))


def write_constraints(folder: Path) -> Path:
    """The versions that the suite passed with, for all extras in one environment: one of them needs an older
    OpenTelemetry, as `make test-adapters` does.
    """
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    written = folder / "constraints.txt"
    written.write_text("\n".join(line for line in lines if not line.startswith("opentelemetry-")), encoding="utf-8")
    return written
