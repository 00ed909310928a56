"""A payload is read at the level that judges its messages, and the result names what could not be stored as it came."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import Ledger, Oldest, Payload, ThreadNotFound
from chatledger.errors import DecodeError
from chatledger.types import Loss
from tests.conftest import Database

ODD_ROLE = [{"role": "critic", "content": "No."}]
LIVE = [{"role": "user", "content": "Hi", "extra": {"pair": (1, 2)}}]
KEPT = [{"role": "user", "content": "Hi", "extra": {"pair": [1, 2]}}]
COERCED = (Loss("coerced", None, "[0].extra.pair"),)

# The levels of the ledger, of the thread and of the call, and whether the payload is read leniently.
LEVELS: list[tuple[Any, Any, Any, bool]] = [
    ("strict", None, None, False),
    ("strict", "lenient", None, True),
    ("strict", "lenient", "strict", False),
    ("strict", "strict", "lenient", True),
    ("lenient", None, None, True),
    ("lenient", "strict", None, False),
    ("lenient", "ordered", None, False),
    ("lenient", None, "ordered", False),
]


@pytest.mark.parametrize(("of_ledger", "of_thread", "of_call", "lenient"), LEVELS)
async def test_the_level_that_judges_decides_how_a_payload_is_read(
    database: Database, of_ledger: Any, of_thread: Any, of_call: Any, lenient: bool
) -> None:
    async with database.open(rules=of_ledger) as ledger:
        await ledger.threads.create("t", rules=of_thread)
        if not lenient:
            with pytest.raises(DecodeError, match="unknown role 'critic'"):
                await ledger.messages.append("t", Payload(ODD_ROLE, "openai-chat"), rules=of_call)
            with pytest.raises(DecodeError, match=r"extra\.pair: tuple is not JSON"):
                await ledger.messages.append("t", Payload(LIVE, "qwen-agent"), rules=of_call)
            assert (await ledger.messages.history("t")).last_seq == 0
            return
        kept = await ledger.messages.append("t", Payload(ODD_ROLE, "openai-chat"), rules=of_call)
        assert [violation.rule for violation in kept.messages[0].violations] == ["R3"]
        assert kept.losses == ()
        assert (await ledger.messages.append("t", Payload(LIVE, "qwen-agent"), rules=of_call)).losses == COERCED
        stored = (await ledger.messages.history("t", Oldest(1_000, after=1), branch=0)).encode("qwen-agent")
        assert stored.payload == KEPT


async def test_a_transaction_reads_at_the_threads_level_too(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.threads.create("t", rules="lenient")
        assert (await tx.messages.append("t", Payload(LIVE, "qwen-agent"))).losses == COERCED
    async with ledger.begin() as tx:
        await tx.threads.create("u")
        with pytest.raises(DecodeError):
            await tx.messages.append("u", Payload(LIVE, "qwen-agent"))


async def test_a_repeat_names_the_same_losses(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    first, again = [
        await ledger.messages.append("t", Payload(LIVE, "qwen-agent"), idempotency_key="k") for _ in range(2)
    ]
    assert (again.replayed, again.losses) == (True, first.losses)


async def test_the_level_of_a_thread_that_is_not_there_cannot_be_read(ledger: Ledger) -> None:
    for payload in (LIVE, KEPT):
        with pytest.raises(ThreadNotFound):
            await ledger.messages.append("nowhere", Payload(payload, "qwen-agent"))


async def test_a_payload_that_lenient_rules_refuse_too_is_refused(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    with pytest.raises(DecodeError, match="missing or not text"):
        await ledger.messages.append("t", Payload([{"content": "Hi"}], "qwen-agent"))
