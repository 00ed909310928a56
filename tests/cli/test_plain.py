"""A plain install: typer and rich are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from chatledger import __version__
from chatledger.cli.outcome import EXIT_CODES
from chatledger.storage.upgrade.versions import HEAD
from tests.cli.commands import SOURCE

WITHOUT = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("typer", "rich") else find(name, *rest)
from chatledger.cli import main
sys.exit(main())
"""


def plain(*words: object) -> tuple[int, str, str]:
    call = [sys.executable, "-c", WITHOUT, *map(str, words)]
    done = subprocess.run(call, capture_output=True, env={"PYTHONPATH": str(SOURCE)}, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_migrate_and_schema_answer(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    mend = f"run: chatledger migrate --url {path}"
    assert plain("schema", "--url", path) == (1, f"{path}: found none, expected {HEAD}; {mend}\n", "")
    assert plain("migrate", "--url", path) == (0, f"{path} is at schema {HEAD}\n", "")
    assert plain("schema", "--url", path) == (0, f"{path}: found {HEAD}, expected {HEAD}\n", "")


def test_other_commands_name_the_extra() -> None:
    said = "chatledger: `chatledger threads` needs an extra: pip install 'chatledger[cli]'\n"
    assert plain("threads", "--json") == (2, "", said)


def test_help_names_the_extra_and_the_exit_codes() -> None:
    code, out, _ = plain("--help")
    assert (code, "pip install 'chatledger[cli]'" in out) == (0, True)
    assert EXIT_CODES in " ".join(out.split())


def test_the_version_is_told() -> None:
    assert plain("--version") == (0, f"chatledger {__version__}\n", "")


def test_unknown_option_is_a_usage_error() -> None:
    assert plain("migrate", "--bogus")[0] == 2


def test_failure_is_one_line() -> None:
    code, out, err = plain("schema", "--url", "mysql://u:secret@h/d")
    assert (code, out) == (3, "")
    assert err == "chatledger: mysql is not supported; use a path, sqlite:///… or postgresql://…\n"


def test_row_level_security_is_postgresqls(tmp_path: Path) -> None:
    code, out, err = plain("migrate", "--rls", "--url", tmp_path / "l.db")
    assert (code, out, "PostgreSQL" in err) == (3, "", True)
