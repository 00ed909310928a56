"""Each statement of an append, a draft, a history, a list, a follower and a search stands as text in a file beside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.storage.statements.files import COMMAND, stored, written
from tests.storage.statements.scene import KINDS

WALK = Path(__file__).parents[3] / "docs" / "contribute" / "append-and-history.md"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue("sqlite_database" if kind == "sqlite" else "pg_database")
    return found


async def test_the_files_have_what_is_sent(kind: str, database: Database) -> None:
    sent, files = await written(kind, database.url), stored(kind)
    differ = {name: sent.get(name) for name in sent.keys() | files.keys() if sent.get(name) != files.get(name)}
    assert differ == {}, f"run {COMMAND}"


def test_the_walk_through_the_statements_names_files_and_what_they_have() -> None:
    walk = WALK.read_text(encoding="utf-8").partition("## The statements")[2].partition("\n## ")[0]
    names = set(re.findall(r"`(\w+)\.sql`", walk))
    assert len(names) > 5
    assert names - stored("postgresql").keys() == set()
    assert len(walk.split()) < 700
    for name, quoted in (
        ("append_tool_result", ("WITH tip AS", "UPDATE", "stamp = ", "NOT EXISTS", "tool_results", "FROM tip")),
        ("append_branch_moved_on", ("FOR UPDATE",)),
        ("append_repeat_of_ids", ("given (id)",)),
        ("history_whole", ("t.user_id", "OFFSET 0", "WITH b AS", "s AS (")),
        ("history_long", ("REPEATABLE READ",)),
    ):
        assert [one for one in quoted if one not in stored("postgresql")[name]] == []
