"""Both databases, real: a PostgreSQL for the session, and for each test a database of its own on either.

The schema comes from the migrations. A test that takes `database` or `ledger` runs twice, once on each.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from chatledger import KeyRing, Ledger, PostgreSQL
from chatledger.admin import migrate
from tests.core import holds_core, is_among, is_of_core
from tests.distributed import DISTRIBUTED, Heard, hearing
from tests.postgres import Server, server
from tests.reuse import Copies

# The suite tries the same examples each time, so that it fails for what a change did and not for its luck; `explore`
# looks for new ones.
settings.register_profile("suite", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile(  # for a caller that only asks whether there is a failure
    "first failure", settings.get_profile("suite"), phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False
)
settings.load_profile(os.environ.get("CHATLEDGER_HYPOTHESIS", "suite"))
if settings.default is not None and settings.default.derandomize:
    # Hypothesis also tries constants of the modules that a process has imported by then. So the examples would differ
    # with the tests that a worker got before.
    setattr(providers, "is_local_module_file", lambda path: False)  # noqa: B010 - a private name


# They have targets of their own, since they need a web framework, other frameworks, Node or a browser, or test no part
# of the package: what a target names is collected.
collect_ignore = ["adapters", "ai_sdk", "browser", "clients", "examples", "server", "test_benchmarks.py", "wire"]


SHARE, SHARES = map(int, os.environ.get("CHATLEDGER_TEST_SHARE", "0/1").split("/"))
"""Which share of the tests this run takes, as in `2/8`: the same ones each time, whatever else there is."""

FIRST = ("tests/test_wheel.py", "tests/migrations/test_traffic.py", "tests/hostile/")
"""Begin with the longest tests, so that no worker is left with one when the others are done."""


@pytest.hookimpl(tryfirst=True)  # so that `-m` sees the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if crc32(item.nodeid.encode()) % SHARES == SHARE]
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if is_of_core(item.nodeid):
            item.add_marker("core")
        if needs_server(item):
            item.add_marker("postgresql")
        elif is_among("quick", item.nodeid):
            item.add_marker("quick")


def needs_server(item: pytest.Item) -> bool:
    return "postgresql" in item.name or "pg_server" in getattr(item, "fixturenames", ())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For `-m core`, import no other tests, and no conftest of theirs: an annex that these need may not be there."""
    name = collection_path.relative_to(config.rootpath).as_posix()
    if not str(config.option.markexpr).startswith("core"):
        return None
    return not (holds_core(name) if collection_path.is_dir() else is_of_core(name)) or None


KEYS = KeyRing({"test": bytes(range(32))})
ENCRYPTED = bool(os.environ.get("CHATLEDGER_TEST_KEYS"))
"""Whether this run asks for keys: stored texts are then about a third longer, and digests are under a secret."""


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Heard]:
    """What distributed ledgers send in the test. Each table in each of it must be bound to the tenant."""
    with hearing(monkeypatch, request.node.nodeid) as heard:
        yield heard


@dataclass(frozen=True)
class Database:
    """A database with our schema and no rows."""

    kind: Literal["sqlite", "postgresql"]
    url: str

    def open(self, **options: Any) -> Any:
        """With keys in a run that asks for them, and as a distributed database in a run that asks for that: what a test
        says of the ledger is as true of one that encrypts, and of one that writes one table a statement.
        """
        asked: dict[str, Any] = {"encryption": KEYS} if ENCRYPTED else {}
        if DISTRIBUTED and self.kind == "postgresql":
            given: PostgreSQL = options.get("postgresql") or PostgreSQL()
            options["postgresql"] = replace(given, distributed=given.distributed is not False)
        return Ledger.open(self.url, **{**asked, **options})


@pytest.fixture(scope="session")
def pg_server() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def pg_url(pg_server: Server) -> Iterator[str]:
    """A new, empty PostgreSQL database."""
    with pg_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def pg_template(pg_server: Server) -> Iterator[str]:
    """A migrated PostgreSQL database that others are copied from."""
    with pg_server.database() as url:
        migrate(url)
        yield url


@pytest.fixture(scope="session")
def pg_copies(pg_server: Server) -> Iterator[Copies]:
    with contextlib.closing(Copies(pg_server)) as copies:
        yield copies


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    migrate(path)
    return path


@pytest.fixture
def sqlite_database(sqlite_template: Path, tmp_path: Path) -> Database:
    path = tmp_path / "ledger.db"
    shutil.copyfile(sqlite_template, path)
    return Database("sqlite", str(path))


@pytest.fixture
def pg_database(pg_copies: Copies, pg_template: str) -> Iterator[Database]:
    with pg_copies.copy(pg_template) as url:
        yield Database("postgresql", url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    name = {"sqlite": "sqlite_database", "postgresql": "pg_database"}[request.param]
    found: Database = request.getfixturevalue(name)
    return found


@pytest.fixture
async def ledger(database: Database) -> AsyncIterator[Ledger]:
    async with database.open() as opened:
        yield opened
