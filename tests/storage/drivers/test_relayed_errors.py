"""A distributed PostgreSQL relays what another of its servers refused as an internal error, XX000.

The errors here are real ones of PostgreSQL: a block or a trigger raises them with the words that Citus relays.
"""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from chatledger import Ledger, PostgreSQL, StorageError
from chatledger.errors import OutcomeUnknown, RunConflict
from chatledger.storage.drivers.errors import BRANCHES_KEY, Kind, foreign_run, is_key, read_failure, translate
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import query

UNIQUE = "duplicate key value violates unique constraint"
FOREIGN = 'insert or update on table "messages_102008" violates foreign key constraint'


async def relayed(url: str, words: str, detail: str = "") -> asyncpg.PostgresError:
    """The error as it reaches the driver."""
    connection = await asyncpg.connect(url)
    using = f", DETAIL = '{detail}'" if detail else ""
    with pytest.raises(asyncpg.PostgresError) as caught:
        await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION '{words}' USING ERRCODE = 'XX000'{using}; END $$")
    await connection.close()
    assert caught.value.sqlstate == "XX000"
    return caught.value


@pytest.mark.parametrize(
    ("words", "kind", "columns"),
    [
        (f'{UNIQUE} "messages_message_id_key_102008"', Kind.UNIQUE, ("message_id",)),
        (f'{UNIQUE} "messages_message_id_key_1020080"', Kind.UNIQUE, ("message_id",)),
        (f'{UNIQUE} "branches_pkey_102040"', Kind.UNIQUE, BRANCHES_KEY),
        (f'{UNIQUE} "messages_pkey_102008"', Kind.UNIQUE, ()),
        (f'{FOREIGN} "messages_tenant_id_thread_id_run_id_fkey_102008"', Kind.FOREIGN_KEY, ("run_id",)),
        (f'{FOREIGN} "messages_tenant_id_thread_id_branch_fkey_102008"', Kind.FOREIGN_KEY, ()),
    ],
)
async def test_a_relayed_violation_is_read_by_the_name_of_the_shards_constraint(
    pg_url: str, words: str, kind: Kind, columns: tuple[str, ...]
) -> None:
    error = await relayed(pg_url, words)
    failure = read_failure(error)
    assert failure is not None
    assert (failure.kind, failure.columns) == (kind, columns)
    assert is_key(error)
    refused = translate(error)
    assert isinstance(refused, StorageError)
    assert not refused.retryable


async def test_a_relayed_detail_names_the_columns_and_the_run(pg_url: str) -> None:
    words = f'{FOREIGN} "messages_tenant_id_thread_id_run_id_fkey_102008"'
    detail = 'Key (tenant_id, thread_id, run_id)=(default, t, b) is not present in table "runs_102009".'
    error = await relayed(pg_url, words, detail)
    failure = read_failure(error)
    assert failure is not None
    assert failure.columns == ("tenant_id", "thread_id", "run_id")
    assert foreign_run(error, ["a", "b"]) == "b"
    assert foreign_run(await relayed(pg_url, words), ["a", "b"]) == "a"  # without a detail it is a guess


async def test_another_internal_error_is_no_violation(pg_url: str) -> None:
    error = await relayed(pg_url, "could not open relation with OID 7")
    failure = read_failure(error)
    assert failure is not None
    assert failure.kind is Kind.OTHER
    assert not is_key(error)


def test_the_name_of_no_constraint_is_too_long_for_the_number_of_a_shard() -> None:
    """PostgreSQL names have at most 63 bytes. Citus shortens a longer one, and its end would not be known."""
    names = [str(one.name) for table in INSERTION_ORDER for one in table.constraints]
    names += [str(one.name) for table in INSERTION_ORDER for one in table.indexes]
    assert max(map(len, names)) + len("_12345678") <= 63


RELAYING = f"""
CREATE FUNCTION relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM chatledger.messages AS m WHERE m.tenant_id = NEW.tenant_id AND m.message_id = NEW.message_id
             AND m.thread_id = NEW.thread_id) THEN
    RAISE EXCEPTION '{UNIQUE} "messages_message_id_key_102008"' USING ERRCODE = 'XX000';
  END IF;
  IF EXISTS (SELECT FROM chatledger.runs AS r WHERE r.tenant_id = NEW.tenant_id AND r.run_id = NEW.run_id
             AND r.thread_id <> NEW.thread_id) THEN
    RAISE EXCEPTION '{FOREIGN} "messages_tenant_id_thread_id_run_id_fkey_102008"' USING ERRCODE = 'XX000';
  END IF;
  RETURN NEW;
END $$
"""


@pytest.fixture
async def relaying(pg_database: Database) -> Database:
    """A database that relays its violations on messages."""
    await query(pg_database, RELAYING)
    trigger = "BEFORE INSERT ON chatledger.messages FOR EACH ROW EXECUTE FUNCTION relay()"
    await query(pg_database, f"CREATE TRIGGER relay {trigger}")
    return pg_database


async def test_a_repeat_with_a_key_is_a_replay_though_the_violation_is_relayed(relaying: Database) -> None:
    async with Ledger.open(relaying.url) as ledger:
        await ledger.threads.create("t")
        first = await ledger.messages.append("t", turn(), idempotency_key="k")
        again = await ledger.messages.append("t", turn(), idempotency_key="k")
        assert (again.replayed, again.messages) == (True, first.messages)
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_a_run_of_another_thread_is_a_conflict_though_the_violation_is_relayed(relaying: Database) -> None:
    async with Ledger.open(relaying.url) as ledger:
        for thread_id in ("t", "elsewhere"):
            await ledger.threads.create(thread_id)
            await ledger.messages.append(thread_id, turn(), run_id=f"run of {thread_id}")
        with pytest.raises(RunConflict, match="run of elsewhere"):
            await ledger.messages.append("t", turn(), run_id="run of elsewhere")
        assert (await ledger.messages.history("t")).last_seq == 5


# --- Another server is lost at COMMIT ---------------------------------------------------------------------------------

LOST = "could not commit transaction for shard 102008 on at least one active node"
LOSING = f"""
CREATE SEQUENCE commits;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('commits') <= {{times}} THEN RAISE EXCEPTION '{LOST}' USING ERRCODE = 'XX000'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER lose AFTER UPDATE ON chatledger.branches DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION lose();
"""


async def lose_commits(database: Database, times: int) -> None:
    """The next commits that change a branch fail, and nothing of them is stored."""
    connection = await asyncpg.connect(database.url)
    await connection.execute(LOSING.format(times=times))
    await connection.close()


def lose_answer(monkeypatch: pytest.MonkeyPatch, error: asyncpg.PostgresError) -> None:
    """The next COMMIT is done, and the error comes in place of its answer."""
    execute = asyncpg.Connection.execute

    async def noted(self: Any, text: str, *args: Any, **named: Any) -> Any:
        done = await execute(self, text, *args, **named)
        if text == "COMMIT":
            monkeypatch.setattr(asyncpg.Connection, "execute", execute)
            raise error
        return done

    monkeypatch.setattr(asyncpg.Connection, "execute", noted)


@pytest.mark.parametrize("words", [LOST, LOST.replace("at least one", "any")])
async def test_a_server_that_is_lost_at_commit_leaves_the_outcome_open(pg_url: str, words: str) -> None:
    failure = read_failure(await relayed(pg_url, words))
    assert failure is not None
    assert failure.kind is Kind.LOST


async def test_an_append_whose_commit_failed_on_another_server_is_tried_again(pg_database: Database) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t")
        await lose_commits(pg_database, 2)
        appended = await ledger.messages.append("t", turn())
        assert (appended.replayed, appended.last_seq) == (False, 5)
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_an_append_that_another_server_committed_unheard_finds_itself(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t")
        lose_answer(monkeypatch, await relayed(pg_database.url, LOST))
        appended = await ledger.messages.append("t", turn())
        assert (appended.replayed, appended.last_seq) == (True, 5)
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_the_outcome_of_an_append_is_unknown_if_no_commit_is_heard(pg_database: Database) -> None:
    async with pg_database.open(timeout=1, postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t")
        await lose_commits(pg_database, 1_000_000)
        with pytest.raises(OutcomeUnknown):
            await ledger.messages.append("t", turn())


async def test_another_write_says_that_it_may_be_committed(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t")
        lose_answer(monkeypatch, await relayed(pg_database.url, LOST))
        with pytest.raises(StorageError, match=r"may be committed or not.*another server.*shard 102008") as caught:
            await ledger.threads.update("t", title="Trip")
        assert not caught.value.retryable
        assert (await ledger.threads.get("t")).title == "Trip"
