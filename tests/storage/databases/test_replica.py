"""A read replica, real and streaming, whose replay stops and starts: nothing older than asked for is ever read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import InvalidArgument, Ledger, Newest, PostgreSQL, ThreadNotFound
from chatledger.admin import migrate
from chatledger.errors import InvalidCursor
from chatledger.storage.databases.postgresql import replica as replica_module
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.proxy import Proxy, proxied
from tests.postgres import Server, own_server, standby
from tests.windows import read as read_window

START = "0/0"


@dataclass(frozen=True)
class Pair:
    primary: str
    standby: str


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    with own_server() as primary, standby(primary) as replica:
        yield primary, replica


@pytest.fixture
def pair(servers: tuple[Server, Server]) -> Iterator[Pair]:
    primary, replica = servers
    with primary.database() as url:
        migrate(url)
        behind = replica.url.rpartition("/")[0] + "/" + url.rpartition("/")[2]
        asyncio.run(caught_up(primary.url, replica.url))
        try:
            yield Pair(url, behind)
        finally:
            asyncio.run(replay(replica.url, on=True))


async def caught_up(primary: str, behind: str) -> None:
    """Waits till the standby is where the primary is now."""
    writer, reader = await asyncpg.connect(primary), await asyncpg.connect(behind)
    position = await writer.fetchval("SELECT pg_current_wal_insert_lsn()::text")
    async with asyncio.timeout(30):
        while not await reader.fetchval("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await writer.close()
    await reader.close()


async def replay(behind: str, *, on: bool) -> None:
    """Start it, or stop it and wait till it has stopped."""
    connection = await asyncpg.connect(behind)
    await connection.execute(f"SELECT pg_wal_replay_{'resume' if on else 'pause'}()")
    async with asyncio.timeout(30):
        state = "not paused" if on else "paused"
        while await connection.fetchval("SELECT pg_get_wal_replay_pause_state()") != state:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await connection.close()


@pytest.fixture
async def line(pair: Pair) -> AsyncIterator[Proxy]:
    """The line to the standby, which counts what is asked there."""
    async with proxied(pair.standby) as proxy:
        yield proxy


async def asked(ledger: Ledger, line: Proxy, position: str | None, thread: str = "t") -> tuple[int, int]:
    """The version that a history gives, and the round trips to the standby that it took."""
    before = line.round_trips
    reader = ledger if position is None else ledger.replica(position)
    version = (await reader.messages.history(thread, Newest(10))).last_seq
    return version, line.round_trips - before


async def test_the_standby_answers_once_it_has_replayed_that_far(pair: Pair, line: Proxy) -> None:
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=line.url)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        first = await ledger.position()
        await caught_up(pair.primary, pair.standby)
        await ledger.replica(first).messages.history("t", Newest(10))  # connects, and prepares its statements
        assert await asked(ledger, line, first) == (5, 2)
        await replay(pair.standby, on=False)
        await ledger.messages.append("t", turn())
        second = await ledger.position()
        assert await asked(ledger, line, second) == (10, 1)  # asked how far it is, and the primary read
        assert await asked(ledger, line, first) == (5, 2)  # as old as was asked for
        assert await asked(ledger, line, None) == (10, 0)
        await replay(pair.standby, on=True)
        await caught_up(pair.primary, pair.standby)
        assert await asked(ledger, line, second) == (10, 2)


async def test_a_replica_answers_whole_histories_and_formats_too(pair: Pair, line: Proxy) -> None:
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=line.url)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        position = await ledger.position()
        await caught_up(pair.primary, pair.standby)
        direct = await ledger.messages.history("t")
        assert line.round_trips == 0
        assert await ledger.replica(position).messages.history("t") == direct
        assert line.round_trips > 0
        before = line.round_trips
        prompt = await ledger.replica(position).messages.prompt("t", "openai-chat")
        assert line.round_trips > before
        assert prompt.history == direct
        with pytest.raises(ThreadNotFound):
            await ledger.replica(position).messages.history("nobody's")


async def test_no_read_ever_lacks_what_was_stored_before_its_position(pair: Pair) -> None:
    """While replay stops and starts under a writer."""
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=pair.standby)) as ledger:
        await ledger.threads.create("t")
        for number in range(40):
            version = (await ledger.messages.append("t", turn())).last_seq
            position = await ledger.position()
            if number % 10 in (3, 6):
                await replay(pair.standby, on=number % 10 == 6)
            for window in ({"newest": 5}, {}, {"last_turns": 1}):
                read = await read_window(ledger.replica(position), "t", **window)
                assert read.last_seq >= version, "the standby answered with an older state"


async def test_without_the_position_check_old_states_are_read(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation check."""
    monkeypatch.setattr(replica_module, "_CAUGHT_UP", "SELECT true OR :position::text IS NULL")
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=pair.standby)) as ledger:
        await ledger.threads.create("t")
        await caught_up(pair.primary, pair.standby)
        await replay(pair.standby, on=False)
        await ledger.messages.append("t", turn())
        assert (await ledger.replica(await ledger.position()).messages.history("t", Newest(5))).last_seq == 0


async def test_a_standby_that_is_away_costs_one_attempt(pair: Pair, line: Proxy) -> None:
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=line.url)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        position = await ledger.position()
        await caught_up(pair.primary, pair.standby)
        assert (await ledger.replica(position).messages.history("t")).last_seq == 5
        line.down = True
        line.cut("before", 1)
        connections = line.connections
        for _ in range(3):
            assert (await ledger.replica(position).messages.history("t")).last_seq == 5
        assert line.spare()
        assert line.connections == connections


async def test_a_primary_is_no_replica(pair: Pair) -> None:
    """Its replay stands still, if it has one: after a promotion what it says of it is no longer so."""
    async with Ledger.open(pair.primary) as ledger:
        await ledger.threads.create("t")
    async with (
        proxied(pair.primary) as line,
        Ledger.open(pair.primary, postgresql=PostgreSQL(replica=line.url)) as ledger,
    ):
        assert (await ledger.replica(START).messages.history("t", Newest(5))).last_seq == 0
        trips = line.round_trips
        await ledger.replica(START).messages.history("t", Newest(5))
        assert line.round_trips == trips + 1


async def test_an_applications_engine_may_be_the_replica(pair: Pair) -> None:
    engine = create_async_engine(pair.standby.replace("postgresql:", "postgresql+asyncpg:"))
    async with Ledger.open(pair.primary, postgresql=PostgreSQL(replica=engine)) as ledger:
        await ledger.threads.create("t")
        position = await ledger.position()
        await caught_up(pair.primary, pair.standby)
        assert (await ledger.replica(position).messages.history("t")).last_seq == 0
        assert (await ledger.tenant("b").threads.find("t")) is None
        with pytest.raises(ThreadNotFound):
            await ledger.replica(position).tenant("b").messages.history("t")
    async with engine.connect():  # which closing the ledger leaves open
        pass
    await engine.dispose()


async def test_a_position_is_reached_where_there_is_no_replica(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        position = await ledger.position()
        assert (await ledger.replica(position).messages.history("t")).last_seq == 0
        async with ledger.replica(position).begin() as tx:
            await tx.messages.append("t", turn())
            assert (await tx.messages.history("t")).last_seq == 5
        for wrong in ("", "0", "0/0; DROP", "0/g", "1/123456789"):
            with pytest.raises(InvalidCursor):
                ledger.replica(wrong)


async def test_a_file_has_no_replica(tmp_path: object) -> None:
    with pytest.raises(InvalidArgument, match="replica needs PostgreSQL"):
        await Ledger.open(f"{tmp_path}/ledger.db", postgresql=PostgreSQL(replica="postgresql://localhost/x"))


async def test_a_replica_sets_the_tenant_for_row_security(pair: Pair, line: Proxy) -> None:
    connection = await asyncpg.connect(pair.primary)
    await connection.execute("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA chatledger TO app")
    await connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA chatledger TO app")
    await asyncio.to_thread(migrate, pair.primary, rls=True)
    primary, replica = (url.replace("chatledger@", "app@") for url in (pair.primary, line.url))
    async with Ledger.open(primary, postgresql=PostgreSQL(replica=replica, rls=True)) as ledger:
        await ledger.threads.create("t")
        position = await ledger.position()
        await caught_up(pair.primary, pair.standby)
        for window in ({"newest": 5}, {}, {"last_turns": 1}):
            trips = line.round_trips
            history = await read_window(ledger.replica(position), "t", **window)
            assert (history.last_seq, line.round_trips > trips) == (0, True)
    await connection.execute("DROP OWNED BY app; DROP ROLE app")
    await connection.close()


async def test_a_view_of_a_position_is_a_view_of_the_same_user(database: Database) -> None:
    async with database.open() as ledger:
        mine = ledger.user("ada")
        await mine.threads.create("t")
        position = await ledger.position()
        for view in (ledger.user("ada").replica(position), ledger.replica(position).user("ada")):
            assert (await view.messages.history("t")).last_seq == 0
            assert await view.threads.find("t")
        with pytest.raises(ThreadNotFound):
            await ledger.user("bob").replica(position).messages.history("t")
        await ledger.replica(position).close()  # leaves the ledger open
        assert await ledger.threads.find("t")
