"""The gate before a pool: who gets a place, and what becomes of the place of a caller that is cancelled."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from chatledger.storage.drivers.errors import NoPlace, NoSecondPlace
from chatledger.storage.drivers.gate import PoolGate

CONNECTION: Any = object()


def full(places: int = 1) -> PoolGate:
    gate = PoolGate(places, lambda: False)
    while gate.enter():
        pass
    return gate


async def wait(gate: PoolGate, *, limit: float = 60) -> asyncio.Task[Any]:
    """A caller that stands in line."""
    waiting = asyncio.create_task(gate.wait(limit))
    await asyncio.sleep(0)
    return waiting


async def test_places_are_given_in_turn_and_none_is_left_for_a_newcomer() -> None:
    gate = full()
    first, second = await wait(gate), await wait(gate)
    gate.leave()
    assert not gate.enter()
    assert await first is None
    assert not second.done()
    gate.leave(CONNECTION)
    assert await second is CONNECTION
    gate.leave()
    assert gate.enter()
    assert gate.free == 0


async def test_a_connection_that_nobody_waits_for_stays_idle_in_its_place() -> None:
    gate = full()
    gate.leave(CONNECTION)
    assert (gate.idle, gate.free) == ([CONNECTION], 0)


@pytest.mark.parametrize("place", [None, CONNECTION], ids=["a place", "a connection"])
async def test_a_caller_that_is_cancelled_when_it_has_its_place_passes_it_on(place: Any) -> None:
    gate = full()
    first, second = await wait(gate), await wait(gate)
    gate.leave(place)
    first.cancel()
    assert await asyncio.wait_for(second, 10) is place
    assert first.cancelled()
    gate.leave(place)
    assert gate.free + len(gate.idle) == 1


async def test_a_caller_that_is_cancelled_in_line_gets_no_place() -> None:
    gate = full()
    first, second = await wait(gate), await wait(gate)
    first.cancel()
    gate.leave()  # before the caller has left the line
    assert await asyncio.wait_for(second, 10) is None
    assert first.cancelled()
    assert not gate.line


async def test_a_caller_waits_no_longer_than_its_limit() -> None:
    gate = full(20)
    with pytest.raises(NoPlace, match=r"^all 20 were in use for 0\.01 seconds"):
        await gate.wait(0.01)
    assert not gate.line


async def test_callers_that_hold_a_connection_go_first_in_their_order() -> None:
    holding = ContextVar("holding", default=False)
    gate = PoolGate(0, holding.get)
    order: list[str] = []

    async def enter(name: str) -> None:
        holding.set(name.startswith("holds"))
        await gate.wait(60)
        order.append(name)

    waiting = [asyncio.create_task(enter(name)) for name in ("a", "holds 1", "b", "holds 2")]
    await asyncio.sleep(0)
    for _ in waiting:
        gate.leave()
    await asyncio.gather(*waiting)
    assert order == ["holds 1", "holds 2", "a", "b"]


async def test_a_closed_gate_sends_all_away() -> None:
    gate = full()
    waiting = [await wait(gate) for _ in range(3)]
    gate.close()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, ConnectionError)
    assert not gate.line


async def test_a_caller_that_holds_a_connection_says_so() -> None:
    gate = PoolGate(0, lambda: True)
    with pytest.raises(NoSecondPlace, match="a transaction that is open here"):
        await gate.wait(0.01)
