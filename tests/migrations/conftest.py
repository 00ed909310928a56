"""Databases without our schema: an empty one, on each of the two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.postgres import Server


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> Database:
    return Database("sqlite", str(tmp_path / "empty.db"))


@pytest.fixture
def empty_postgresql(pg_url: str) -> Database:
    return Database("postgresql", pg_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"empty_{request.param}")
    return found


@pytest.fixture
def other(empty: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A second one of the same kind, to compare with."""
    if empty.kind == "sqlite":
        yield Database("sqlite", str(tmp_path / "other.db"))
        return
    server: Server = request.getfixturevalue("pg_server")
    with server.database() as url:
        yield Database("postgresql", url)
