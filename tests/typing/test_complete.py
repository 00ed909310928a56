"""A type checker of a program knows the type of each public name, and of each public member of it.

`make types-complete` prints what it does not know. What is private counts as far as a public signature names it.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.typing.pyright import run_pyright

ROOT = Path(__file__).parents[2]
MODULES = ("chatledger", "chatledger.types", "chatledger.errors", "chatledger.admin", "chatledger.blocking")
Symbols = Mapping[str, Mapping[str, Any]]


def symbols(folder: Path) -> Symbols:
    """What pyright says of each symbol of the installed wheel, by its full name."""
    build = ["build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    _python(*build)
    (wheel,) = folder.glob("*.whl")
    _python("pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(wheel))
    said = run_pyright("--outputjson", "--ignoreexternal", "--verifytypes", "chatledger", paths=[folder / "site"])
    return {one["name"]: one for one in json.loads(said)["typeCompleteness"]["symbols"]}


def _python(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def homes() -> Iterator[str]:
    """Where each public name is defined, and the name itself."""
    for name in MODULES:
        module = importlib.import_module(name)
        for one in module.__all__:
            yield f"{name}.{one}"
            value = getattr(module, one)
            if isinstance(value, type) and name != "chatledger.blocking":  # whose types are those of its stub
                yield f"{value.__module__}.{value.__qualname__}"


def unknown(found: Symbols) -> list[str]:
    """The public names and members whose type pyright does not know, or that checkers may infer differently."""
    public = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(set(homes()))))})(?:\.(?!_)\w+)*")
    return [
        f"{name}: {'; '.join(one['message'] for one in symbol['diagnostics'])}"
        for name, symbol in found.items()
        if public.fullmatch(name) and not (symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"])
    ]


def test_the_type_of_each_public_name_is_known(tmp_path: Path) -> None:
    found = symbols(tmp_path)
    missing = [name for name in homes() if name not in found and not name.startswith(("builtins.", "typing."))]
    assert missing == []
    assert unknown(found) == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(unknown(symbols(Path(folder)))) or "complete")
