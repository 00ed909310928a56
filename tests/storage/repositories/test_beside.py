"""The counts of what threads have beside the messages of their active branches."""

from __future__ import annotations

from chatledger import Feedback, Ledger, PostgreSQL
from chatledger.repositories import scope_of
from chatledger.storage.repositories.beside import count_beside, count_shared_values
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, turn
from tests.storage.schema.test_row_security import owned, secured

__all__ = ["owned", "secured"]  # fixtures

EVERYTHING = {"branches": 2, "runs": 1, "scores": 1, "values": 1}


async def fill(ledger: Ledger) -> None:
    """A thread with three branches, a run, a score and a value, a thread with nothing beside its messages, and more."""
    for name in ("full", "plain", "other"):
        await ledger.threads.create(name)
        await ledger.messages.append(name, turn(f"{name} "))
    for seq in (1, 2):
        await fork_at(scope_of(ledger), "full", seq)
        await ledger.messages.append("full", [assistant(f"Or {seq}.")])
    for name in ("full", "other"):
        await ledger.runs.start(name, run_id=f"run of {name}")
        await ledger.feedback.record(Feedback(run_id=f"run of {name}", key="stars", score=4))
        await ledger.kv.put(("thread", name), "step", 1)
    await ledger.kv.put(("tenant",), "plan", "free")
    await ledger.kv.put(("user", "ada"), "theme", "dark")


async def test_only_what_belongs_to_the_threads_is_counted(ledger: Ledger) -> None:
    for tenant in (ledger, ledger.tenant("acme")):
        await fill(tenant)
    assert await count_beside(ledger._scope, ["full", "plain", "gone"]) == EVERYTHING
    assert await count_beside(ledger._scope, ["plain"]) == dict.fromkeys(EVERYTHING, 0)
    assert await count_shared_values(ledger._scope) == 2


async def test_more_threads_than_one_statement_names(ledger: Ledger) -> None:
    await fill(ledger)
    ids = [f"none {number}" for number in range(1_000)]
    assert await count_beside(ledger._scope, ["full", *ids, "other"]) == {
        "branches": 2, "runs": 2, "scores": 2, "values": 2,
    }  # fmt: skip


async def test_under_row_level_security_the_same_is_counted(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        for tenant in (ledger, ledger.tenant("acme")):
            await fill(tenant)
        assert await count_beside(ledger._scope, ["full", "plain", "gone"]) == EVERYTHING
        assert await count_shared_values(ledger._scope) == 2
