"""The core and its annexes: which modules they are, by the contracts of import-linter."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = tomllib.loads(Path(__file__).with_name("core.toml").read_text(encoding="utf-8"))
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_CONTRACTS = {contract["name"]: contract for contract in _PROJECT["tool"]["importlinter"]["contracts"]}
OWN = _CONTRACTS["Core imports no annex"]["source_modules"]
"""The modules of core, each with what it contains."""
SHARED = _CONTRACTS["Core imports no annex: the packages that core and annexes share"]["source_modules"]
"""The packages whose own module is core, though some of what they contain is not."""
ANNEXES = _CONTRACTS["Core imports no annex"]["forbidden_modules"]


def is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def modules() -> dict[str, Path]:
    """Every module of the library, and its file."""
    source = ROOT / "src"
    files = {path.relative_to(source).with_suffix(""): path for path in (source / "chatledger").rglob("*.py")}
    return {".".join(part for part in name.parts if part != "__init__"): path for name, path in files.items()}
