"""`make sbom`: writes dist/NAME.cdx.json, the SBOM (CycloneDX) of the wheel in dist/ with what it depends on: core, and
each extra that a program can install. The versions are those that the suite passed with.

The wheel is installed in a new environment that has nothing else, and cyclonedx-py reads that environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from hashlib import sha256
from pathlib import Path
from typing import Any

from release.extras import OF_DEVELOPERS, ROOT, extras, write_constraints


def main() -> int:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        python = install(wheel, Path(folder))
        bill = without_places(json.loads(described(python)))
    bill["metadata"]["component"]["hashes"] = [{"alg": "SHA-256", "content": sha256(wheel.read_bytes()).hexdigest()}]
    target = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    target.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    print(f"{target.relative_to(ROOT)}: {bill['metadata']['component']['name']} and {len(bill['components'])} packages")
    return 0


def install(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment with the wheel and its extras, without pip."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    asked = f"{wheel}[{extras(without=OF_DEVELOPERS)}]"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--constraint", str(write_constraints(folder)), asked], check=True)
    return python


def described(python: Path) -> str:
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
    asked = [*tool, "--mc-type", "library", "--output-reproducible", "--output-format", "JSON", str(python)]
    return subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout


def without_places(bill: Any) -> Any:
    """The same without references to files of this machine: the wheel was installed from one."""
    if isinstance(bill, list):
        return [without_places(one) for one in bill if not _is_file(one)]
    if isinstance(bill, dict):
        return {name: without_places(one) for name, one in bill.items()}
    return bill


def _is_file(reference: Any) -> bool:
    return isinstance(reference, dict) and str(reference.get("url", "")).startswith("file:")


if __name__ == "__main__":
    sys.exit(main())
