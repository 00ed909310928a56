"""A plain install of the built wheel, without extras and without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from chatledger.storage.upgrade.versions import HEAD

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel and its dependencies, in an otherwise empty folder."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        return subprocess.run(
            [self.folder / "venv" / "bin" / program, *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder)},
            check=False,
        )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plain")
    call(sys.executable, "-m", "venv", str(folder / "venv"))
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    call(*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return Environment(folder)


def call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_the_migrations_the_samples_and_the_page(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("migrations", "samples"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert files
        assert {f"chatledger/{path.relative_to(ROOT)}" for path in files} <= names
    assert "chatledger/py.typed" in names
    page = ROOT / "src" / "chatledger" / "server" / "page"
    files = [path for path in page.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert files
    assert {str(path.relative_to(ROOT / "src")) for path in files} <= names
    assert not {name for name in names if name.startswith(("tests/", "src/", "migrations/"))}


def test_a_plain_install_migrates_stores_and_reads(environment: Environment) -> None:
    done = environment.run("python", "-W", "error", "-c", PROGRAM)
    assert (done.stderr, done.stdout.splitlines()) == ("", [HEAD, "Tokyo?", "False"])


PROGRAM = """
import asyncio, importlib.util
import chatledger
import chatledger.admin
print(chatledger.admin.migrate("a.db").found)
async def main():
    async with chatledger.Ledger.open("a.db") as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [chatledger.ChatMessage(role="user", content="Tokyo?")])
        print((await ledger.messages.history("t")).messages[0].text)
asyncio.run(main())
print(any(importlib.util.find_spec(name) for name in ("typer", "rich", "pytest", "fastapi")))
"""


def test_a_plain_install_prints_the_statements(environment: Environment) -> None:
    program = "from chatledger import admin; print(admin.offline_sql('postgresql://nobody@127.0.0.1:1/nothing'))"
    done = environment.run("python", "-W", "error", "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CREATE TABLE chatledger.threads" in done.stdout


def test_the_script_says_which_extra_to_install(environment: Environment) -> None:
    done = environment.run("chatledger", "migrate", "--url", "b.db")
    said = "chatledger: the command line needs an extra: pip install 'chatledger[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
