"""What is appended in a format is read in it, at every level, on both databases: alone and as one batch.

One database for all examples of a test, and a tenant for each: a run belongs to one thread of its tenant.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger import Ledger, Payload
from chatledger.formats import get_codec
from chatledger.models.json import same_json
from tests.conftest import Database
from tests.formats.round_trips import ROUND_TRIPS, RoundTrip, dumped

EXAMPLES = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the store is for all examples, on purpose
)


class Store:
    """A ledger that stays open, on an event loop of its own, over the examples of a test."""

    def __init__(self, runner: asyncio.Runner, ledger: Ledger) -> None:
        self._runner = runner
        self._ledger = ledger
        self._tenants = (f"tenant-{number}" for number in count())

    def back(self, payload: Any, named: str | None, read_as: RoundTrip) -> tuple[Any, Any]:
        """The payload as dicts and as objects (None where the format has none), after it rested in the database."""
        return self._runner.run(_back(self._ledger.tenant(next(self._tenants)), payload, named, read_as))


async def _back(ledger: Ledger, payload: Any, named: str | None, read_as: RoundTrip) -> tuple[Any, Any]:
    thread_id = (await ledger.threads.create(rules="lenient")).thread_id
    await ledger.messages.append(thread_id, Payload(payload, named), rules="lenient")
    dicts = (await ledger.messages.history(thread_id)).encode(read_as.format, as_="dicts")
    assert list(dicts.losses) == []
    if read_as.levels is None:
        return dicts.payload, None
    return dicts.payload, (await ledger.messages.history(thread_id)).encode(read_as.format, as_="models").payload


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    async def opened() -> Ledger:
        ledger: Ledger = await database.open()
        return ledger

    with asyncio.Runner() as runner:
        ledger = runner.run(opened())
        yield Store(runner, ledger)
        runner.run(ledger.close())


def name_of(case: RoundTrip) -> str:
    return case.format


def alone_and_together(messages: list[Any]) -> list[list[Any]]:
    return [*([message] for message in messages), messages]


def batches(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(messages, min_size=1, max_size=3)


def assert_back(case: RoundTrip, messages: list[Any], dicts: Any, models: Any) -> None:
    """Whatever came in reads as the same dicts; and as the same objects where it came in as some."""
    written = case.around([dumped(message) for message in messages])
    assert same_json(dicts, written)
    assert json.dumps(dicts) == json.dumps(written)
    if case.levels is not None and not isinstance(messages[0], dict):
        assert [case.levels(model) for model in case.inside(models)] == [case.levels(message) for message in messages]


@pytest.mark.parametrize("case", ROUND_TRIPS, ids=name_of)
def test_stored_messages_come_back_alone_and_as_one_batch(store: Store, case: RoundTrip) -> None:
    @EXAMPLES
    @given(batches(case.messages))
    def each(messages: list[Any]) -> None:
        for payload in alone_and_together(messages):
            assert_back(case, payload, *store.back(payload, case.format, case))

    each()


@pytest.mark.parametrize("case", [case for case in ROUND_TRIPS if case.rows is not None], ids=name_of)
def test_dicts_come_back_with_their_unknown_keys_in_order(store: Store, case: RoundTrip) -> None:
    @EXAMPLES
    @given(batches(case.rows if case.rows is not None else st.nothing()))
    def each(rows: list[Any]) -> None:
        for payload in alone_and_together(rows):
            assert_back(case, payload, *store.back(payload, case.format, case))

    each()


@pytest.mark.parametrize("case", ROUND_TRIPS, ids=name_of)
def test_a_recognised_payload_comes_back_without_naming_the_format(store: Store, case: RoundTrip) -> None:
    @EXAMPLES
    @given(batches(case.messages).filter(get_codec(case.format).recognises))
    def each(messages: list[Any]) -> None:
        assert_back(case, messages, *store.back(messages, None, case))

    each()


@pytest.mark.parametrize("case", [case for case in ROUND_TRIPS if case.whole is not None], ids=name_of)
def test_a_payload_of_another_shape_comes_back(store: Store, case: RoundTrip) -> None:
    @settings(EXAMPLES, max_examples=40)
    @given(st.nothing() if case.whole is None else case.whole)
    def each(payload: Any) -> None:
        dicts, _ = store.back(payload, case.format, case)
        assert same_json(dicts, case.written(payload))

    each()
