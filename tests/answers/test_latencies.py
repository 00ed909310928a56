"""The measurement of kills and stops works, for one round; `make latencies` holds its bounds."""

from __future__ import annotations

import pytest

from chatledger import Ledger
from tests.answers.latencies import AGENTS, EACH, figures, measure
from tests.conftest import Database


@pytest.mark.plain
async def test_a_kill_and_stops_are_measured(database: Database, ledger: Ledger) -> None:
    seconds = await measure(database.url, 1)
    assert len(seconds.goes_on) >= EACH
    assert len(seconds.stop) == len(seconds.told) == EACH * len(AGENTS)
    assert all(min(measured) > 0 for _, measured, _ in figures(seconds))
    assert [checked.findings async for checked in ledger.check()] == [[]] * EACH * len(AGENTS)
