"""PostgreSQL's row-level security: without the library's own filter, a tenant still sees no row of another one.

One role owns the tables, and another one is the application's. Neither is a superuser. The policies hold for the owner
too because they are forced.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import InvalidArgument, Ledger, Newest, PostgreSQL, StorageError, Transaction
from chatledger.admin import migrate, schema_status
from chatledger.errors import IdConflict, RunConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.row_security import begin_as, set_tenant
from chatledger.storage.schema.tables import INSERTION_ORDER, run_leases
from chatledger.storage.schema.views import VIEWS
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import proxied
from tests.faults.test_outcome import until
from tests.migrations.partitions import create_partitioned_schema
from tests.storage.databases.test_scope import (
    CALLS,
    NOBODYS,
    NOON,
    THEIRS,
    fill,
    in_ledger,
    in_transaction,
    outcome,
    rows_of,
    tell,
)
from tests.storage.durable import make_durable
from tests.storage.history.test_drafts import compare, store

OWNER, APP = "chatledger_owner", "chatledger_app"


def as_role(url: str, role: str) -> str:
    address = urlsplit(url)
    return address._replace(netloc=f"{role}@{address.hostname}:{address.port}").geturl()


def as_owner(url: str) -> str:
    return as_role(url, OWNER)


def as_app(url: str) -> str:
    return as_role(url, APP)


RIGHTS = f"""
GRANT USAGE ON SCHEMA chatledger TO {APP};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA chatledger TO {APP};
ALTER DEFAULT PRIVILEGES IN SCHEMA chatledger GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP};
"""


@pytest.fixture
def owned(pg_url: str) -> Iterator[str]:
    """The URL of an empty database, for a role that may only create a schema in it."""
    name = urlsplit(pg_url).path[1:]
    asyncio.run(
        execute(
            pg_url, f'CREATE ROLE {OWNER} LOGIN; CREATE ROLE {APP} LOGIN; GRANT CREATE ON DATABASE "{name}" TO {OWNER}'
        )
    )
    yield as_owner(pg_url)
    for role in (APP, OWNER):
        asyncio.run(execute(pg_url, f"DROP OWNED BY {role} CASCADE"))
    asyncio.run(execute(pg_url, f"DROP ROLE {APP}, {OWNER}"))


@pytest.fixture
def secured(owned: str) -> str:
    """The URL of a database with policies, for the role of an application."""
    assert migrate(owned, rls=True).rls
    asyncio.run(execute(owned, RIGHTS))
    return as_app(owned)


async def execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


def without_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement as if its author had forgotten the tenant, in conditions and in joins."""
    prepared = asyncpg.Connection._get_statement

    async def unfiltered(self: Any, text: str, *args: Any, **named: Any) -> Any:
        text = re.sub(r'[\w."]*tenant_id = [\w."]*tenant_id', "true", text)
        return await prepared(
            self, re.sub(r'[\w."]*tenant_id = (\$\d+)(::\w+)?', r"\1::text <> ''", text), *args, **named
        )

    monkeypatch.setattr(asyncpg.Connection, "_get_statement", unfiltered)


async def differing(url: str, scope: Any) -> dict[tuple[str, int], list[str]]:
    """The calls that tell a tenant more about another tenant's ids than about unknown ids."""
    found = {}
    async with Ledger.open(url) as ledger:
        for name, calls in CALLS.items():
            for number, call in enumerate(calls):
                told = []
                for ids in (THEIRS, NOBODYS):
                    own = ledger.tenant(f"{name} {number} {ids.user}")
                    await own.threads.create("mine", created_at=NOON)
                    await own.runs.start("mine", run_id="my run")
                    async with scope(own) as repositories:
                        told.append(await outcome(repositories, call, ids))
                if told[0] != told[1]:
                    found[name, number] = told
    return found


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_without_the_librarys_filter_still_no_foreign_row(
    secured: str, pg_url: str, scope: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await fill(ledger.tenant("a"), THEIRS)
    everything = Database("postgresql", pg_url)
    before = await rows_of(everything, "a")
    without_filter(monkeypatch)
    assert await differing(secured, scope) == {}
    monkeypatch.undo()
    assert await rows_of(everything, "a") == before


async def test_without_filter_and_policies_foreign_rows_are_read_and_written(
    owned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation check: the filter really is gone, so only the policies keep the rows apart."""
    await asyncio.to_thread(migrate, owned)
    async with Ledger.open(owned) as ledger:
        await fill(ledger.tenant("a"), THEIRS)
        await ledger.tenant("b").threads.create("mine")
    without_filter(monkeypatch)
    async with Ledger.open(owned, tenant="b") as ledger:
        assert (await ledger.messages.history(THEIRS.thread)).last_seq == 8
        assert (await ledger.runs.get(THEIRS.run)).agent == THEIRS.agent
        assert (await ledger.threads.update(THEIRS.thread, title="mine now")).title == "mine now"
        assert len((await ledger.threads.list()).items) == 3


async def test_every_public_method_does_the_same_under_row_security(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        under = await tell(ledger, in_ledger, "under")
    await asyncio.to_thread(migrate, as_owner(secured), rls=False)
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=False)) as ledger:
        assert under == await tell(ledger, in_ledger, "apart")


@pytest.mark.parametrize(("pooler", "trips"), [("session", 3), ("transaction", 4)])
async def test_row_security_costs_two_round_trips_more(secured: str, pooler: Any, trips: int) -> None:
    """Each call becomes a transaction that begins by setting the tenant, which takes two more round trips."""
    async with (
        proxied(secured) as proxy,
        Ledger.open(proxy.url, postgresql=PostgreSQL(pooler=pooler, rls=True)) as ledger,
    ):
        await ledger.threads.create("t")
        for _ in range(2):
            await ledger.messages.append("t", turn(), run_id="r")
            await ledger.messages.history("t", Newest(10))
        before = proxy.round_trips
        await ledger.messages.append("t", turn(), run_id="r")
        assert proxy.round_trips - before == trips
        await ledger.messages.history("t", Newest(10))
        assert proxy.round_trips - before == 2 * trips


@pytest.mark.parametrize(
    "name", ["a", "'); DROP SCHEMA chatledger CASCADE; --", "\\", "a\0b", "\ud800", "ü'\"$$", "%s:x{}"]
)
async def test_a_tenants_name_is_data(secured: str, name: str) -> None:
    async with Ledger.open(secured, tenant=name, postgresql=PostgreSQL(rls=True)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        await ledger.messages.append("t", turn())
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
        assert (await ledger.messages.history("t")).last_seq == 15
        assert await ledger.tenant("b").threads.find("t") is None


def test_the_tenant_is_set_by_its_literal_name_and_no_character_of_it_is_sent() -> None:
    """A distributed PostgreSQL sends its other servers the text of a SET LOCAL, and not the call of a function."""
    begun = begin_as("BEGIN", "a';")
    assert begun == r"BEGIN; SET LOCAL chatledger.tenant = E'\U00000061\U00000027\U0000003b'"


@pytest.mark.parametrize("name", ["a", "\\", "E'x'", "ü'\"$$", "\U0001f600", "%s:x{}", "default; --"])
async def test_the_set_tenant_is_the_name(pg_url: str, name: str) -> None:
    connection = await asyncpg.connect(pg_url)
    async with connection.transaction():
        await connection.execute(set_tenant(name))
        assert await connection.fetchval("SELECT current_setting('chatledger.tenant')") == name
    assert await connection.fetchval("SELECT current_setting('chatledger.tenant')") == ""
    await connection.close()


WEAKER = [
    "ALTER POLICY chatledger_tenant ON chatledger.messages USING (true)",
    "ALTER POLICY chatledger_tenant ON chatledger.messages WITH CHECK (true)",
    f"ALTER POLICY chatledger_tenant ON chatledger.messages TO {APP}",
    f"ALTER POLICY chatledger_migrator ON chatledger.messages TO {APP}",
    "ALTER POLICY chatledger_migrator ON chatledger.messages USING (true)",
    (
        "DROP POLICY chatledger_tenant ON chatledger.messages; CREATE POLICY chatledger_tenant ON chatledger.messages "
        "FOR SELECT USING (tenant_id = current_setting('chatledger.tenant', true))"
    ),
    "ALTER TABLE chatledger.messages NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY chatledger_server ON chatledger.run_leases",
    "ALTER POLICY chatledger_server ON chatledger.run_leases USING (true)",
    (
        "DROP POLICY chatledger_server ON chatledger.run_leases; CREATE POLICY chatledger_server ON "
        "chatledger.run_leases USING (current_setting('chatledger.serving', true) = 'on')"
    ),
]


@pytest.mark.parametrize("weaker", WEAKER)
async def test_a_policy_that_says_something_else_is_refused_and_mended(secured: str, weaker: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)):
        pass
    await execute(as_owner(secured), weaker)
    assert not (await asyncio.to_thread(schema_status, secured)).rls
    with pytest.raises(StorageError, match="--rls"):
        await Ledger.open(secured, postgresql=PostgreSQL(rls=True))
    assert (await asyncio.to_thread(migrate, as_owner(secured), rls=True)).rls
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)):
        pass


async def test_a_policy_beside_ours_may_only_show_less(secured: str) -> None:
    await execute(as_owner(secured), f"CREATE POLICY mine ON chatledger.runs AS RESTRICTIVE TO {APP} USING (true)")
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)):
        pass
    await execute(as_owner(secured), f"CREATE POLICY reports ON chatledger.runs FOR SELECT TO {APP} USING (true)")
    with pytest.raises(StorageError, match="'reports' on table runs"):
        await Ledger.open(secured, postgresql=PostgreSQL(rls=True))


async def test_a_member_of_the_owner_is_refused(secured: str, pg_url: str) -> None:
    await execute(pg_url, f"GRANT {OWNER} TO {APP}")
    with pytest.raises(StorageError, match="the owner of the tables"):
        await Ledger.open(secured, postgresql=PostgreSQL(rls=True))


async def test_a_ledger_follows_the_database_and_can_require_row_security(
    owned: str, pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.to_thread(migrate, owned)
    with pytest.raises(StorageError, match="--rls"):
        await Ledger.open(owned, postgresql=PostgreSQL(rls=True))
    assert (await asyncio.to_thread(migrate, owned, rls=True)).rls
    assert (await asyncio.to_thread(migrate, owned)).rls
    assert (await asyncio.to_thread(schema_status, owned)).rls
    with pytest.raises(StorageError, match="rls=False"):
        await Ledger.open(owned, postgresql=PostgreSQL(rls=False))
    async with Ledger.open(owned) as ledger:
        await ledger.threads.create("t")
    with pytest.raises(StorageError, match="superuser"):
        await Ledger.open(pg_url, postgresql=PostgreSQL(rls=True))
    with pytest.raises(StorageError, match="the owner of the tables"):
        await Ledger.open(owned, postgresql=PostgreSQL(rls=True))
    assert caplog.text == ""
    async with Ledger.open(pg_url) as ledger:  # as a superuser, for whom no policy holds
        assert await ledger.threads.find("t") is not None
    assert "does not apply to a superuser" in caplog.text


async def test_row_security_is_switched_on_twice_off_and_on_again(owned: str) -> None:
    for rls in (True, True, False, False, True):
        assert (await asyncio.to_thread(migrate, owned, rls=rls)).rls == rls
    connection = await asyncpg.connect(owned)
    assert await connection.fetchval("SELECT count(*) FROM pg_policy") == 2 * len(INSERTION_ORDER) + 1
    await connection.close()
    assert not (await asyncio.to_thread(migrate, owned, rls=False)).rls
    connection = await asyncpg.connect(owned)
    assert await connection.fetchval("SELECT count(*) FROM pg_policy") == 0
    await connection.close()


async def test_a_session_without_a_tenant_sees_no_row(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await fill(ledger, THEIRS)
    connection = await asyncpg.connect(secured)
    for name in [*(table.name for table in INSERTION_ORDER), *VIEWS]:
        assert await connection.fetchval(f"SELECT count(*) FROM chatledger.{name}") == 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("INSERT INTO chatledger.erasures SELECT 'default', * FROM (SELECT 1) AS x")
    await connection.close()


async def test_a_serving_session_reads_the_leases_of_all_tenants_and_nothing_else(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        for own in (ledger, ledger.tenant("b")):
            await own.threads.create("t")
            await own.messages.append("t", turn(), run_id="r")
            await make_durable(own, "t", "r")
    connection = await asyncpg.connect(secured)
    leases = "SELECT count(*) FROM chatledger.run_leases"
    assert await connection.fetchval(leases) == 0
    async with connection.transaction():
        await connection.execute("SET LOCAL chatledger.serving = 'on'")
        assert await connection.fetchval(leases) == 2
        for name in [*(table.name for table in INSERTION_ORDER if table is not run_leases), *VIEWS]:
            assert await connection.fetchval(f"SELECT count(*) FROM chatledger.{name}") == 0, name
        assert await connection.execute("UPDATE chatledger.run_leases SET attempt = 9") == "UPDATE 0"
        assert await connection.execute("DELETE FROM chatledger.run_leases") == "DELETE 0"
        locked = await connection.fetch("SELECT 1 FROM chatledger.run_leases FOR UPDATE")
        assert locked == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute("INSERT INTO chatledger.run_leases VALUES ('b', 't', 'r2', 'a', 0, '', NULL)")
    assert await connection.fetchval(leases) == 0
    await connection.execute(f"{set_tenant('b').replace('LOCAL ', '')}; SET chatledger.serving = 'off'")
    assert await connection.fetchval(leases) == 1
    await connection.close()


async def test_serving_sessions_can_be_those_of_one_role(secured: str) -> None:
    """A narrower policy shows less, so it is not refused."""
    await execute(as_owner(secured), f"ALTER POLICY chatledger_server ON chatledger.run_leases TO {OWNER}")
    assert (await asyncio.to_thread(schema_status, secured)).rls
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)):
        pass


async def test_two_tenants_take_turns_on_a_callers_connection(secured: str) -> None:
    """Each call sets its own tenant first."""
    engine = create_async_engine(secured.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.begin() as connection:
        a, b = (Transaction(connection, tenant=name, postgresql=PostgreSQL(rls=True)) for name in ("a", "b"))
        for own in (a, b, a):
            await own.threads.create("t", exist_ok=True)
            await own.messages.append("t", turn())
        assert (await a.messages.history("t")).last_seq == 10
        assert (await b.messages.history("t")).last_seq == 5
    await engine.dispose()


async def test_a_revision_sees_every_row_and_secures_its_new_tables(
    secured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a downgrade and an upgrade, `0003` has created its tables again, with the policies of the others. The views
    work with their readers' rights all the time.
    """
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await ledger.threads.create("t")
    await asyncio.to_thread(migrate, as_owner(secured), to="0002")
    assert (await asyncio.to_thread(schema_status, secured)).rls
    assert await views_of_readers(secured) == ["scores", "transcript"]
    assert (await asyncio.to_thread(migrate, as_owner(secured))).rls
    assert await views_of_readers(secured) == sorted(VIEWS)
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        assert await ledger.threads.find("t") is not None


async def views_of_readers(url: str) -> list[str]:
    """The views that work with the rights of their reader. With those of their owner they would bypass policies."""
    connection = await asyncpg.connect(url)
    option = "reloptions @> '{security_invoker=true}'"
    rows = await connection.fetch(f"SELECT relname FROM pg_class WHERE relkind = 'v' AND {option} ORDER BY relname")
    await connection.close()
    return [row[0] for row in rows]


async def test_partitions_are_secured_too(owned: str) -> None:
    await create_partitioned(owned, 2)
    assert (await asyncio.to_thread(migrate, owned, rls=True)).rls
    await execute(owned, RIGHTS)
    async with Ledger.open(as_app(owned), tenant="a", postgresql=PostgreSQL(rls=True)) as ledger:
        await fill(ledger, THEIRS)
        assert await ledger.tenant("b").threads.find(THEIRS.thread) is None
    connection = await asyncpg.connect(owned)
    for remainder in range(2):
        assert await connection.fetchval(f"SELECT count(*) FROM chatledger.threads_tenants_{remainder}") == 0
    served = "SELECT count(*) FROM pg_policy WHERE polname = 'chatledger_server'"
    assert await connection.fetchval(served) == 3
    await connection.close()


async def test_a_file_has_no_row_security(tmp_path: Any) -> None:
    path = tmp_path / "ledger.db"
    with pytest.raises(InvalidArgument, match="rls needs PostgreSQL"):
        await Ledger.open(path, postgresql=PostgreSQL(rls=True))
    with pytest.raises(StorageError, match="PostgreSQL"):
        await asyncio.to_thread(migrate, path, rls=True)
    assert not path.exists()


@pytest.mark.parametrize("partitions", [0, 2])
async def test_an_id_that_another_client_stored_meanwhile_is_found(owned: str, partitions: int) -> None:
    """For a duplicate key PostgreSQL tells no column and no value. The append recognizes the repeat all the same."""
    if partitions:
        await create_partitioned(owned, partitions)
    await asyncio.to_thread(migrate, owned, rls=True)
    async with Ledger.open(owned) as one, Ledger.open(owned) as other:
        await one.threads.create("t")
        await one.messages.append("t", turn())
        await fork_at(scope_of(one), "t", 5, activate=False)
        await one.messages.append("t", turn(), branch=1)
        await other.messages.append("t", turn(ids="same/"), branch=0)
        with pytest.raises(IdConflict):  # on a cached tip of the other branch, so without a preflight
            await one.messages.append("t", turn(ids="same/"), branch=1)
        await other.runs.start("t", run_id="r")
        await other.threads.create("elsewhere")
        with pytest.raises(RunConflict, match="'r'"):
            await other.messages.append("elsewhere", turn(), run_id="r")


async def create_partitioned(url: str, partitions: int) -> None:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.begin() as connection:
        await connection.run_sync(create_partitioned_schema, partitions=partitions)
    await engine.dispose()


async def test_an_append_cancelled_before_the_tenant_is_set_leaves_no_coroutine_behind(secured: str) -> None:
    """The append closes the coroutine that never began: otherwise the interpreter would warn about it."""
    async with proxied(secured) as proxy, Ledger.open(proxy.url, postgresql=PostgreSQL(rls=True)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("first")])  # from here on the cached tip lets it through at once
        proxy.cut("hang", 1)
        before = proxy.round_trips
        appending = asyncio.create_task(ledger.messages.append("t", [assistant("second")]))
        await until(lambda: proxy.round_trips > before)
        appending.cancel()
        assert isinstance((await asyncio.gather(appending, return_exceptions=True))[0], asyncio.CancelledError)


async def test_a_window_does_not_count_the_draft_that_it_leaves_out(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await store(ledger.tenant("a"))
        await compare(ledger.tenant("a"))
