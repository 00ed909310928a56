"""A page of a list ends before it would be larger than 8 MiB, so that no caller reads more than that and one item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import Feedback, Ledger
from chatledger.storage.lists.bounded import LARGEST
from chatledger.types import Page
from tests.conftest import ENCRYPTED, KEYS, Database

LONG = "x" * 2_700_000
"""Three of these fit into 8 MiB, and two if they are encrypted, in base64."""
COUNT = 5


async def add_thread(ledger: Ledger, number: int) -> None:
    await ledger.threads.create(f"list-{number}", kind="k", title="title", metadata={"long": LONG})


async def add_run(ledger: Ledger, number: int) -> None:
    await ledger.runs.start("t", run_id=f"r{number}", input=LONG, metadata={"number": number})


async def add_score(ledger: Ledger, number: int) -> None:
    await ledger.feedback.record(Feedback(run_id="scored", key=f"k{number}", score=number, kwargs={"why": LONG}))


async def add_value(ledger: Ledger, number: int) -> None:
    await ledger.kv.put(("thread", "t"), str(number), LONG)


Read = Callable[[Ledger, str | None], Awaitable[Page[Any]]]
Add = Callable[[Ledger, int], Awaitable[None]]
LISTS: dict[str, tuple[Add, Read]] = {
    "threads": (add_thread, lambda ledger, cursor: ledger.threads.list(kind="k", limit=1_000, cursor=cursor)),
    "threads, oldest first": (
        add_thread,
        lambda ledger, cursor: ledger.threads.list(kind="k", order="created", newest_first=False, cursor=cursor),
    ),
    "runs": (add_run, lambda ledger, cursor: ledger.runs.list(limit=1_000, cursor=cursor)),
    "runs of a status": (add_run, lambda ledger, cursor: ledger.runs.list(status="running", limit=4, cursor=cursor)),
    "scores": (add_score, lambda ledger, cursor: ledger.feedback.list(events=True, limit=1_000, cursor=cursor)),
    "scores that count": (add_score, lambda ledger, cursor: ledger.feedback.list(limit=1_000, cursor=cursor)),
    "values": (add_value, lambda ledger, cursor: ledger.kv.list(("thread", "t"), limit=1_000, cursor=cursor)),
}


async def fill(ledger: Ledger, add: Add) -> None:
    await ledger.threads.create("t")
    if add is add_score:
        await ledger.runs.start("t", run_id="scored")
    for number in range(COUNT):
        await add(ledger, number)


def name_of(item: Any) -> str:
    return str(getattr(item, "key", None) or getattr(item, "run_id", None) or item.thread_id)


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_ends_before_eight_mebibytes(ledger: Ledger, name: str) -> None:
    add, read = LISTS[name]
    await fill(ledger, add)
    pages, cursor = list[list[str]](), None
    while not pages or cursor is not None:
        page = await read(ledger, cursor)
        pages.append([name_of(item) for item in page])
        cursor = page.next_cursor
    assert [len(page) for page in pages] == ([2, 2, 1] if ENCRYPTED else [3, 2])
    names = [item for page in pages for item in page]
    assert len(set(names)) == COUNT
    assert names in (sorted(names), sorted(names, reverse=True))


async def test_a_page_holds_at_least_one_item(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for number in range(2):
        await ledger.runs.start("t", run_id=f"r{number}", input="x" * LARGEST)
    first = await ledger.runs.list()
    second = await ledger.runs.list(cursor=first.next_cursor)
    assert ([one.run_id for one in first], [one.run_id for one in second]) == (["r0"], ["r1"])
    assert second.next_cursor is None


async def test_the_first_pages_of_many_scopes_share_eight_mebibytes(ledger: Ledger) -> None:
    for thread in ("a", "b", "c"):
        await ledger.threads.create(thread)
        for number in range(2 if thread == "c" else 3):
            await ledger.kv.put(("thread", thread), str(number), "x" * LARGEST if thread == "c" else LONG)
    found = await ledger.kv.list_many([("thread", "a"), ("thread", "b"), ("thread", "c"), ("user", "nobody")])
    assert {scope[1]: (len(page), page.next_cursor is not None) for scope, page in found.items()} == {
        "a": (1, True),
        "b": (1, True),
        "c": (1, True),
        "nobody": (0, False),
    }
    found = await ledger.kv.list_many([("thread", "a"), ("thread", "b")])
    assert [[one.key for one in page] for page in found.values()] == [["0"] if ENCRYPTED else ["0", "1"], ["0"]]
    rest = await ledger.kv.list(("thread", "b"), cursor=found["thread", "b"].next_cursor)
    assert [one.key for one in rest] == ["1", "2"]


@pytest.mark.parametrize("name", LISTS)
async def test_a_users_encrypted_pages_end_too(database: Database, name: str) -> None:
    async with await database.open(encryption=KEYS) as ledger:
        eve = ledger.user("eve")
        add, read = LISTS[name]
        await fill(eve, add)
        page = await read(eve, None)
        assert (len(page), page.next_cursor is not None) == (2, True)
