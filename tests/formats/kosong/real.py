"""Ours against the real kosong: `python real.py 0.23.0` (Python >= 3.13) or `python real.py newest` (>= 3.12).

Makes a virtual environment with that release, plays every golden case of its revision on the real classes, and compares
with what the case file says, with what our classes give, and with what comes back when our codec stores the real
object. `--write` puts what the real classes give into the case files instead.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
REVISIONS = {"0.23.0": ("kosong-0.23", "chatledger.formats.kosong.v0_23")}
NEWEST = ("kosong-0.30", "chatledger.formats.kosong")


def main(release: str, *options: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = ["kosong" if release == "newest" else f"kosong=={release}", *project["dependencies"]]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{HERE}"}
        inside = [python, str(HERE / "real.py"), "--inside", release, *options]
        return subprocess.run(inside, check=False, env=environment).returncode


def compare(release: str, *options: str) -> int:
    """Run inside the environment. Returns how many cases differ."""
    folder, ours = REVISIONS.get(release, NEWEST)
    real_module, our_module = importlib.import_module("kosong.message"), importlib.import_module(ours)
    failures = 0
    for path in sorted((HERE / "cases" / folder).glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if "--write" in options:
            _write(path, case, real_module)
        for problem in _problems(case, real_module, our_module):
            failures += 1
            print(f"{path.name}: {problem}")
    print(f"kosong {version('kosong')}: {failures} differences")
    return failures


def _problems(case: dict[str, Any], real_module: Any, our_module: Any) -> list[str]:
    play = importlib.import_module("play")
    real = play.play(case["make"], real_module)
    problems = [] if real == case["gives"] else [f"the real package gives {real}, the case says {case['gives']}"]
    ours = play.play(case["make"], our_module)
    if ours != case.get("ours", real):
        problems.append(f"ours gives {ours}, the real package {real}")
    if "dump" not in real:
        return problems
    codec = our_module.CODEC
    message = play.make(case["make"], real_module)
    [back] = codec.as_models(codec.encode(codec.decode([message]).messages).payload)
    if play.dumps_of(back) != real:
        problems.append(f"stored and read it gives {play.dumps_of(back)}, the real package {real}")
    return problems


def _write(path: Path, case: dict[str, Any], real_module: Any) -> None:
    case["gives"] = importlib.import_module("play").play(case["make"], real_module)
    case["package"] = version("kosong")
    path.write_text(json.dumps(case, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    inside = sys.argv[1] == "--inside"
    sys.exit(min(compare(*sys.argv[2:]) if inside else main(*sys.argv[1:]), 1))
