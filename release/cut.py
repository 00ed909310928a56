"""`make release VERSION=…`: builds the sdist and the wheel, tries them as a user would, and tags the commit.

It ends with the two commands that publish, which a person types. Run again, it repeats no step that passed for this
commit (`dist/release.json`). An equal tag on this commit is fine; on another commit it is an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from release.extras import OF_DEVELOPERS, ROOT, extras

from release import matrix

DIST = ROOT / "dist"
STATE = DIST / "release.json"
NOTES = DIST / "notes.md"

PROOFS = {
    "": "import chatledger.admin, chatledger.blocking, chatledger.formats",
    "agent-framework": "import chatledger.adapters.agent_framework",
    "cli": "import chatledger.cli.app",
    "crypto": "from chatledger.storage.rows.derive import derive_key; derive_key(b'0' * 32, 'a label')",
    "frames": "import chatledger.reports.frames",
    "google-adk": "import chatledger.adapters.google_adk",
    "langchain": "import chatledger.adapters.langchain",
    "mcp": "import chatledger.cli.app, chatledger.mcp",
    "openai-agents": "import chatledger.adapters.openai_agents",
    "otel": "import chatledger.telemetry.otel",
    "prices": "import chatledger.reports.prices",
    "pydantic-ai": "import chatledger.adapters.pydantic_ai",
    "server": "import chatledger.server.app",
}
"""A program that needs an extra, which must run with that extra alone. Without a name: with none."""


class NotReady(Exception):
    """Why nothing can be released, and what to do about it."""


def main() -> int:
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        commit = require_commit(version)
        tag = f"v{version}"
        tagged = require_tag(tag, commit)
        for name, step in steps(version).items():
            run_once(commit, name, step)
        if not tagged:
            git("tag", "--annotate", tag, "--message", f"chatledger {version}")
    except NotReady as error:
        print(f"not released: {error}", file=sys.stderr)
        return 1
    print(f"\n{tag} is on {commit[:12]}, and dist/ has its files. To publish it:\n")
    print(f"  git push origin {tag}")
    print(f"  python -m twine upload dist/chatledger-{version}*.whl dist/chatledger-{version}.tar.gz")
    return 0


# --- What must hold before --------------------------------------------------------------------------------------------


def require_commit(version: str) -> str:
    """The commit that is released. Raises NotReady."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise NotReady(f"VERSION must be a release such as 0.1.0 or 0.1.0rc1, not {version!r}")
    if package != version:
        raise NotReady(f"pyproject.toml has version {package}; set it to {version}, and commit that")
    if notes(version) is None:
        raise NotReady(f"CHANGELOG.md has no heading '## {version}'; name the heading 'Unreleased' so, and commit that")
    if changed := git("status", "--porcelain"):
        raise NotReady(f"the tree has changes; commit or remove them:\n{changed}")
    return git("rev-parse", "HEAD")


def require_tag(tag: str, commit: str) -> bool:
    """Whether the commit has the tag. Raises NotReady if another one has it."""
    if not git("tag", "--list", tag):
        return False
    if (other := git("rev-list", "-n", "1", tag)) != commit:
        raise NotReady(f"{tag} is on {other[:12]}, and this is {commit[:12]}; take the next number")
    return True


def notes(version: str) -> str | None:
    """What CHANGELOG.md says of the version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return None if found is None else found[1].strip() + "\n"


# --- The steps --------------------------------------------------------------------------------------------------------


def steps(version: str) -> dict[str, Callable[[], None]]:
    wheel = DIST / f"chatledger-{version}-py3-none-any.whl"
    sdist = DIST / f"chatledger-{version}.tar.gz"
    return {
        "the matrix": require_matrix,  # the first, since new rows need a commit of their own
        "the sdist and the wheel": partial(build, wheel, sdist),
        "the program of the README, from the wheel": partial(try_readme, wheel),
        "the demo, from the wheel": partial(try_demo, wheel),
        "the sdist": partial(try_program, str(sdist), PROOFS[""]),
        **{
            f"the extra {name} alone": partial(try_program, f"{wheel}[{name}]", PROOFS[name])
            for name in extras(without=OF_DEVELOPERS).split(",")
        },
        "the notes": partial(write_notes, version),
    }


def run_once(commit: str, name: str, step: Callable[[], None]) -> None:
    """Run the step unless it passed for this commit. Raises NotReady."""
    state = json.loads(STATE.read_text(encoding="utf-8")) if STATE.is_file() else {}
    passed = state.get("passed", []) if state.get("commit") == commit else []
    if name in passed:
        print(f"  passed before   {name}")
        return
    begun = time.monotonic()
    try:
        step()
    except subprocess.CalledProcessError as error:
        raise NotReady(f"{name}: {error}\n{error.stdout or ''}{error.stderr or ''}") from error
    print(f"  {time.monotonic() - begun:8.1f} s      {name}", flush=True)
    DIST.mkdir(exist_ok=True)
    STATE.write_text(json.dumps({"commit": commit, "passed": [*passed, name]}, indent=1), encoding="utf-8")


def build(wheel: Path, sdist: Path) -> None:
    call("make", "--silent", "dist", cwd=ROOT, env=dict(os.environ))
    if missing := [path.name for path in (wheel, sdist) if not path.is_file()]:
        raise NotReady(f"make dist did not make {', '.join(missing)}")


def try_readme(wheel: Path) -> None:
    """The first program of the README, twice: it prints the same, and a repeat stores nothing."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = readme.partition("```python\n")[2].partition("```")[0]
    expected = readme.partition('```text title="Output"\n')[2].partition("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        python = install(str(wheel), Path(folder))
        for _ in range(2):
            if (said := call(str(python), "-c", program, cwd=Path(folder))) != expected:
                raise NotReady(f"the README's program printed\n{said}in place of\n{expected}")


def try_demo(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = install(f"{wheel}[cli]", Path(folder))
        call(str(python.with_name("chatledger")), "demo", "--url", "demo.db", cwd=Path(folder))
        call(str(python.with_name("chatledger")), "threads", "--url", "demo.db", cwd=Path(folder))


def try_program(package: str, program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        call(str(install(package, Path(folder))), "-W", "error::ImportWarning", "-c", program, cwd=Path(folder))


def require_matrix(run: Callable[[Sequence[matrix.Cell]], int] = matrix.run) -> None:
    """Runs the cells that have not passed in this state. Raises NotReady if some fail, or if their rows are new."""
    if not (lacking := matrix.unproved(matrix.hash_of_tree())):
        return
    if run(lacking):
        still = len(matrix.unproved(matrix.hash_of_tree()))
        raise NotReady(f"{still} of {len(matrix.cells())} cells of the matrix have not passed; see above")
    raise NotReady("docs/reference/support.md has new rows; commit it, and release that commit")


def write_notes(version: str) -> None:
    NOTES.write_text(notes(version) or "", encoding="utf-8")


def install(package: str, folder: Path) -> Path:
    """The Python of a new environment with the package, without pip."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    call(*pip, package, cwd=folder, env=dict(os.environ))
    return python


def call(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What the command prints. Without `env`, it knows nothing of the environment of its caller."""
    bare = {"PATH": os.defpath, "HOME": str(cwd)}
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd, env=env or bare).stdout


def git(*arguments: str) -> str:
    try:
        return call(shutil.which("git") or "git", *arguments, cwd=ROOT, env=dict(os.environ)).strip()
    except subprocess.CalledProcessError as error:
        raise NotReady(f"git {' '.join(arguments)}: {error.stderr}") from error


if __name__ == "__main__":
    sys.exit(main())
