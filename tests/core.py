"""The core and its annexes: which modules they are, by the contracts of import-linter."""

from __future__ import annotations

import re
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


def is_core(module: str) -> bool:
    return module in SHARED or any(is_in(module, own) for own in OWN)


def modules() -> dict[str, Path]:
    """Every module of the library, and its file."""
    source = ROOT / "src"
    files = {path.relative_to(source).with_suffix(""): path for path in (source / "chatledger").rglob("*.py")}
    return {".".join(part for part in name.parts if part != "__init__"): path for name, path in files.items()}


# --- Tests ------------------------------------------------------------------------------------------------------------


def _pattern(entry: str) -> re.Pattern[str]:
    text = ".*".join(map(re.escape, entry.split("*")))
    return re.compile(rf"tests/{text}($|[/:[])")


_PATTERNS = {name: [_pattern(entry) for entry in entries] for name, entries in TABLE["tests"].items()}


def is_of_core(test: str) -> bool:
    """Whether a test is one of core's, by its name in pytest: `tests/file.py::test[case]`, or only its file."""
    return is_among("core", test) and not is_among("of_annexes", test)


def holds_core(folder: str) -> bool:
    """Whether a folder has tests of core, or is within one that has."""
    entries = [f"tests/{entry}/" for entry in TABLE["tests"]["core"]]
    return any(entry.startswith(f"{folder}/") or f"{folder}/".startswith(entry) for entry in entries)


def is_among(entries: str, test: str) -> bool:
    return any(pattern.match(test) for pattern in _PATTERNS[entries])
