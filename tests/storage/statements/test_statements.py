"""Each statement of an append, a draft, a history, a list, a follower and a search stands as text in a file beside."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.storage.statements.files import COMMAND, stored, written
from tests.storage.statements.scene import KINDS


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
