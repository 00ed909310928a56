"""How adapters write, and what they say without their framework. The adapters' own tests are in tests/adapters."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from chatledger import ChatLedgerError, ChatMessage, Ledger, Limits, StorageError, Transaction, VersionConflict
from chatledger.adapters.write import ATTEMPTS, append, in_transaction, settled
from tests.conftest import Database
from tests.faults.proxy import proxied

HI = ChatMessage(role="user", content="Hi")


async def texts(ledger: Ledger) -> list[str]:
    return [message.text for message in await ledger.messages.history("t")]


@pytest.mark.parametrize(
    "failure", [VersionConflict("branch", 1, 2, thread_id="t", branch=0), StorageError("away", retryable=True)]
)
async def test_a_retryable_failure_begins_the_transaction_again(ledger: Ledger, failure: ChatLedgerError) -> None:
    await ledger.threads.create("t")
    failures = 0

    async def work(transaction: Transaction) -> str:
        nonlocal failures
        await transaction.messages.append("t", [HI])
        if failures < 2:
            failures += 1
            raise failure
        return "done"

    assert await in_transaction(ledger, work) == "done"
    assert await texts(ledger) == ["Hi"]

    async def fails(transaction: Transaction) -> None:
        nonlocal failures
        failures += 1
        raise failure

    failures = 0
    with pytest.raises(type(failure)):
        await in_transaction(ledger, fails)
    assert failures == ATTEMPTS


@pytest.mark.parametrize("failure", [StorageError("broken"), KeyError("a mistake")])
async def test_a_failure_that_will_not_pass_ends_the_transaction(ledger: Ledger, failure: Exception) -> None:
    await ledger.threads.create("t")
    times = 0

    async def work(transaction: Transaction) -> None:
        nonlocal times
        times += 1
        await transaction.messages.append("t", [HI])
        raise failure

    with pytest.raises(type(failure)):
        await in_transaction(ledger, work)
    assert (times, await texts(ledger)) == (1, [])


async def test_an_append_makes_the_thread_and_takes_any_number(database: Database) -> None:
    async with database.open(limits=Limits(messages=3, bytes=10_000)) as ledger:
        many = [ChatMessage(role="user", content=str(number)) for number in range(8)]
        appended = await append(ledger, "t", many, rules="lenient")
        assert (appended.last_seq, await texts(ledger)) == (8, [str(number) for number in range(8)])
        await append(ledger, "u", many[:1], rules="lenient")
        assert [(await ledger.threads.get(thread_id)).rules for thread_id in "tu"] == ["lenient", "lenient"]
        with pytest.raises(ChatLedgerError, match="bytes of an append"):
            await append(ledger, "t", [*many, ChatMessage(role="user", content="x" * 20_000)], rules="lenient")
        assert len(await texts(ledger)) == 8


@pytest.mark.parametrize("size", [1, 8])
async def test_an_append_that_expects_another_state_writes_nothing(database: Database, size: int) -> None:
    async with database.open(limits=Limits(messages=3)) as ledger:
        many = [HI] * size
        made = await append(ledger, "t", many, rules="lenient", expected=0)
        with pytest.raises(VersionConflict):
            await append(ledger, "t", many, rules="lenient", expected=0)
        await append(ledger, "t", many, rules="lenient", expected=made.mark)
        with pytest.raises(VersionConflict):
            await append(ledger, "t", many, rules="lenient", expected=made.mark)
        assert len(await texts(ledger)) == 2 * size
        await ledger.threads.delete("t")
        with pytest.raises(VersionConflict):
            await append(ledger, "t", many, rules="lenient", expected=made.mark)
        assert await ledger.threads.find("t") is None


async def test_the_first_append_costs_as_much_as_a_later_one(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        trips = []
        for number in range(3):
            for _ in range(2):
                before = proxy.round_trips
                await append(ledger, f"t{number}", [HI], rules="lenient")
                trips.append(proxy.round_trips - before)
        assert trips[2:] == [1, 1, 1, 1]  # the first two connect and prepare their statements


async def test_first_writers_make_one_thread(database: Database) -> None:
    async with database.open() as one, database.open() as other, asyncio.timeout(60):
        writes = [append((one, other)[number % 2], "t", [HI, HI], rules="lenient") for number in range(8)]
        appended = await asyncio.gather(*writes)
        assert sorted(one.last_seq for one in appended) == list(range(2, 17, 2))


async def test_a_write_that_fails_tells_a_caller_that_stays() -> None:
    async def fails() -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        await settled(fails())


async def test_a_caller_that_is_cancelled_waits_and_is_cancelled() -> None:
    gate, done = asyncio.Event(), False

    async def write() -> None:
        nonlocal done
        await gate.wait()
        done = True
        raise KeyError("told as the cause")

    caller = asyncio.ensure_future(settled(write()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    assert not caller.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await caller
    assert done
    assert caller.cancelled()
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, KeyError)


MISSING = """
import sys
sys.modules[{missing!r}] = None
import chatledger
import chatledger.errors
try:
    import chatledger.adapters.openai_agents
except chatledger.errors.MissingExtra as error:
    print(error)
except ModuleNotFoundError as error:
    print("no", error.name)
"""


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("agents", "the adapter of the OpenAI Agents SDK needs an extra: pip install 'chatledger[openai-agents]'"),
        ("chatledger.adapters.write", "no chatledger.adapters.write"),
    ],
)
def test_an_adapter_without_its_framework_says_what_to_install(missing: str, said: str) -> None:
    script = MISSING.format(missing=missing)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
