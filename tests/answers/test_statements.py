"""How many statements an answer costs on PostgreSQL."""

from __future__ import annotations

import pytest

from chatledger import Ledger
from tests.answers.agents import Model, Tools, agent_of
from tests.answers.test_answers import soon
from tests.conftest import Database
from tests.storage.sent import record


@pytest.mark.plain
@pytest.mark.one_statement
async def test_an_answer_costs_few_statements(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question, a call with its result, and the text, none of which is written on the way."""
    counts = []
    async with (
        Ledger.open(pg_database.url) as ledger,
        ledger.answers.serve({"weather": agent_of(Model(), Tools())}, lease=600),
    ):
        await soon((await ledger.answers.start("warm", "Tokyo?", create=True)).wait())
        sent = record(monkeypatch)

        def count() -> None:
            counts.append(len([text for text in sent if not text.startswith(("BEGIN", "COMMIT"))]))
            sent.clear()

        answer = await ledger.answers.start("t", "Tokyo?", idempotency_key="k", create=True)
        count()
        await soon(answer.wait())
        count()
        again = await ledger.answers.start("t", "Tokyo?", idempotency_key="k", create=True)
        count()
        await ledger.answers.stop(again.run.run_id)
        count()
    start, made, retried, stopped = counts
    assert start <= 10
    assert made <= 30
    assert retried <= 7
    assert stopped <= 3
