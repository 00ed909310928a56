"""Packages that bring a format: real metadata with entry points, in a directory of their own."""

from __future__ import annotations

from pathlib import Path


def make_package(parent: Path, name: str, points: str, **modules: str) -> Path:
    """The directory to put on the path of modules, as an installation leaves it: modules by name, and metadata."""
    home = parent / name
    info = home / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[chatledger.formats]\n{points}\n")
    for module, source in modules.items():
        (home / f"{module}.py").write_text(source, encoding="utf-8")
    return home
