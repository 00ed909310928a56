"""The files under migrations/versions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from alembic.script import Script

from chatledger.storage.upgrade.revisions import scripts_folder
from chatledger.storage.upgrade.versions import HEAD
from tests.migrations.released.kept import released
from tests.migrations.revisions import FILE_NAME, revisions, scripts


def each() -> list[object]:
    return [pytest.param(script, id=script.revision) for script in scripts()]


def test_file_names_parse_and_count_up_without_a_gap() -> None:
    names = sorted(path.name for path in (scripts_folder() / "versions").glob("*.py"))
    numbers = [match[1] for name in names if (match := FILE_NAME.fullmatch(name))]
    assert numbers == [f"{number:04}" for number in range(1, len(names) + 1)]
    assert numbers == revisions()


def test_revisions_are_one_line_that_ends_at_head() -> None:
    assert [script.down_revision for script in scripts()] == [None, *revisions()[:-1]]
    assert revisions()[-1] == HEAD


@pytest.mark.parametrize("script", each())
def test_a_revision_says_what_it_does_under_its_own_number(script: Script) -> None:
    assert Path(script.path).name.startswith(f"{script.revision}_")
    assert (script.module.__doc__ or "").strip()


@pytest.mark.parametrize("script", each())
def test_a_revision_imports_nothing_of_the_package(script: Script) -> None:
    assert imported(Path(script.path)) <= {"__future__", "sqlalchemy", "alembic", "json", "re", "time", "uuid"}


def test_env_imports_nothing_of_the_package() -> None:
    assert "chatledger" not in imported(scripts_folder() / "env.py")


def test_a_database_of_every_released_schema_is_kept() -> None:
    """Which is every one but, until its release, the newest."""
    assert released() in (revisions(), revisions()[:-1] or revisions())


def imported(path: Path) -> set[str]:
    """The packages that a file imports anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}
