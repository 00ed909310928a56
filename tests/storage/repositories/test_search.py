"""Search finds what a plain scan of all messages finds, page by page, and says where."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unicodedata import normalize

import pytest

from chatledger import ChatMessage, InvalidArgument, Ledger, NewThread, TextPart, ThinkPart, ThreadNotFound
from chatledger.errors import DamagedCell, InvalidCursor, LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.lists.search import search
from chatledger.storage.lists.search_scan import SearchRequest
from chatledger.storage.lists.search_text import MOST_CHARACTERS, Query
from chatledger.types import Hit, Page
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, user
from tests.places import at

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCRIPTS = (
    "How is the Weather in TOKYO, tomorrow?\n\n  Sunny, and   warm.",
    "Die Straße nach Gießen ist gesperrt. \ufb01nnisch: Äiti söi pullaa.",
    "消防署はどこですか。ＡＢＣ１２３\u3000全角の空白と ｶﾀｶﾅ",
    "안녕하세요 세계, 오늘 날씨가 어떻습니까",
    "नमस्ते दुनिया, आज मौसम कैसा है",
    "مرحبا بالعالم، كيف الطقس اليوم",
    "Καλημέρα κόσμε, ΟΔΟΣ και οδός",
    "Привет, МИР! Какая сегодня погода",
    "สวัสดีชาวโลก วันนี้อากาศเป็นอย่างไร",
    "e\u0301le\u0300ve caf\u00e9 \u0130stanbul \U0001f469\u200d\U0001f467 ok \ud800 \x00 \ue000 end",
)


def plainly_folded(text: str) -> str:
    """Written anew here, so that a mistake in the other one shows."""
    return " ".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())


def searched(message: ChatMessage) -> Iterator[str]:
    yield message.text
    if message.role == "tool" and "\\u" in message.text:
        yield " ".join(str(value) for value in json.loads(message.text).values())
    for one in message.tool_calls or ():
        yield one.name
        arguments = one.arguments if isinstance(one.arguments, dict) else json.loads(one.arguments or "{}")
        yield "\n".join(f"{name}: {value}" for name, value in arguments.items())


async def scan(ledger: Ledger, query: str) -> list[tuple[str, int]]:
    """The places of the messages that hold the query, in the order of a search, by reading everything."""
    found: list[tuple[str, int]] = []
    for thread in await ledger.threads.list(archived=None, limit=1000):
        messages = [message async for message in ledger.messages.iterate(thread.thread_id)]
        found += [
            (thread.thread_id, message.seq or 0)
            for message in reversed(messages)
            if any(plainly_folded(query) in plainly_folded(text) for text in searched(message))
        ]
    return found


async def pages(ledger: Ledger, query: str, **options: Any) -> AsyncIterator[Page[Hit]]:
    cursor = None
    while True:
        page = await ledger.messages.search(query, cursor=cursor, **options)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


async def places(ledger: Ledger, query: str, **options: Any) -> list[tuple[str, int]]:
    return [(hit.thread_id, hit.seq or 0) async for page in pages(ledger, query, **options) for hit in page]


@pytest.fixture(params=["sqlite", "postgresql", "encrypted"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue("pg_database" if kind == "postgresql" else "sqlite_database")
    return found


@pytest.fixture
async def ledger(kind: str, database: Database) -> AsyncIterator[Ledger]:
    async with database.open(**({"encryption": KEYS} if kind == "encrypted" else {})) as opened:
        yield opened


async def test_a_hit_says_where_it_is_and_shows_the_words_around_it(ledger: Ledger) -> None:
    messages = [
        user("x" * 50 + " Is the Refund for order 17 done? " + "y" * 50, message_id="q", created_at=NOON),
        assistant(calls=[call("c", "get_REFUND", {"order": 17, "names": ["M\u00fcller", "消防署"], "paid": None})]),
        result("c", json.dumps({"消": "ｒｅｆｕｎｄ"})),
        assistant("Done."),
    ]
    await ledger.user("ada").messages.append("t", messages, create=NewThread(title="Money back"))
    page = await ledger.messages.search("refund")
    assert [(hit.seq, hit.field, hit.match) for hit in page] == [
        (3, "result", "ｒｅｆｕｎｄ"),
        (2, "tool_name", "REFUND"),
        (1, "text", "Refund"),
    ]
    assert (page.next_cursor, page.complete, list(page.damaged)) == (None, True, [])
    last = page.items[-1]
    assert (last.thread_id, last.title, last.branch, last.message_id, last.role) == ("t", "Money back", 0, "q", "user")
    assert (last.before, last.after) == ("x" * 32 + " Is the ", " for order 17 done? " + "y" * 20)
    assert (last.created_at, last.snippet) == (NOON, last.before + last.match + last.after)
    for query in ("order: 17", "muller".replace("u", "ü"), "消防", "paid: null"):
        (hit,) = await ledger.messages.search(query)
        assert (hit.seq, hit.field) == (2, "arguments")


async def test_every_substring_is_found_and_nothing_else(ledger: Ledger) -> None:
    chance = random.Random(7)
    for number, text in enumerate(SCRIPTS):
        content: Any = [TextPart(text=text[:9]), ThinkPart(text="hidden"), TextPart(text=text[9:])]
        messages = [user(text), assistant(content), user("nothing of that kind")]
        await ledger.messages.append(f"t{number}", messages, create=NewThread(title="hidden"))
    for text in SCRIPTS:
        for length in (1, 2, 3, 7, 20):
            start = chance.randrange(len(text) - length)
            query = text[start : start + length]
            if not query.strip():
                continue
            assert await places(ledger, query, limit=3) == await scan(ledger, query), query
            for hit in await ledger.messages.search(query):
                assert plainly_folded(query) in plainly_folded(hit.match)
    assert await places(ledger, "hidden") == []


async def test_pages_follow_each_other_through_many_threads(ledger: Ledger) -> None:
    for number in range(30):
        said = [user(f"Question {n} about {'apples' if n % 3 else 'pears'}") for n in range(20)]
        owner = "ada" if number % 2 else "bob"
        await ledger.user(owner).messages.append(f"t{number:02}", said, create=NewThread(kind=f"k{number % 3}"))
    expected = await scan(ledger, "PEARS")
    assert len(expected) == 30 * 7
    for limit in (1, 10, 211):
        found = [[(hit.thread_id, hit.seq) for hit in page] async for page in pages(ledger, "pears", limit=limit)]
        assert [place for page in found for place in page] == expected
        assert {len(page) for page in found[:-1]} <= {limit}
        assert len(found) <= len(expected) // limit + 1
    ada = [place for place in expected if int(place[0][1:]) % 2]
    assert await places(ledger.user("ada"), "pears", limit=50) == ada
    assert await places(ledger, "pears", kind="k1") == [place for place in expected if int(place[0][1:]) % 3 == 1]
    assert await places(ledger, "pears", thread_id="t07", limit=3) == [place for place in expected if place[0] == "t07"]
    assert await places(ledger.tenant("other"), "pears") == []
    assert await places(ledger.user("eve"), "pears") == []
    with pytest.raises(ThreadNotFound):
        await ledger.user("ada").messages.search("pears", thread_id="t06")


async def test_roles_and_times_choose_messages(ledger: Ledger) -> None:
    said = [
        ChatMessage(role=role, content="the same", created_at=NOON + timedelta(hours=n))
        for n, role in enumerate(("user", "assistant", "user", "assistant"))
    ]
    await ledger.messages.append("t", said, create=True)
    assert [seq for _, seq in await places(ledger, "same", roles=["user"])] == [3, 1]
    assert await places(ledger, "same", roles=[]) == []
    hour = timedelta(hours=1)
    assert [seq for _, seq in await places(ledger, "same", since=NOON + hour, until=NOON + 3 * hour)] == [3, 2]
    without_zone = datetime(2026, 1, 1)  # noqa: DTZ001 - it is refused
    with pytest.raises(InvalidArgument, match="since"):
        await ledger.messages.search("same", since=without_zone)
    with pytest.raises(InvalidArgument, match="until"):
        await ledger.messages.search("same", until=without_zone)


async def test_only_the_active_branch_is_searched_and_its_changes_count(ledger: Ledger) -> None:
    said = [user("one", message_id="1"), assistant("two apples", message_id="2"), user("three", message_id="3")]
    await ledger.messages.append("t", said, create=True)
    await ledger.messages.append("t", [assistant("two pears", message_id="2b")], reply_to=at(1))
    assert await places(ledger, "apples") == []
    assert await places(ledger, "pears") == [("t", 2)]
    await ledger.branches.activate("t", 0)
    assert await places(ledger, "apples") == [("t", 2)]
    await ledger.messages.revise("t", "2", assistant("two plums"))
    assert (await places(ledger, "apples"), await places(ledger, "plums")) == ([], [("t", 2)])
    await erase_at(scope_of(ledger), "t", 1)
    assert await places(ledger, "one") == []
    await ledger.messages.pop("t")
    assert await places(ledger, "three") == []
    await ledger.threads.update("t", archived=True)
    assert await places(ledger, "plums") == [("t", 2)]
    await ledger.erasures.erase(("thread", "t"))
    assert await places(ledger, "plums") == []


async def test_threads_are_found_by_title_or_by_their_newest_message(ledger: Ledger) -> None:
    await ledger.threads.create("empty", title="Plans for Rome", created_at=NOON)
    for number in range(5):
        said = [user(f"Rome {n}") for n in range(3)]
        await (ledger.user("ada") if number else ledger).messages.append(f"t{number}", said, create=True)
    await ledger.threads.update("t4", title="About ROME")
    found: list[Hit] = []
    cursor = None
    while True:
        page = await ledger.threads.search("rome", limit=2, cursor=cursor)
        found += page
        if (cursor := page.next_cursor) is None:
            break
    order = [thread.thread_id for thread in await ledger.threads.list()]
    assert [hit.thread_id for hit in found] == order
    by_thread = {hit.thread_id: hit for hit in found}
    assert (by_thread["t4"].field, by_thread["t4"].seq, by_thread["t4"].match) == ("title", None, "ROME")
    assert (by_thread["t3"].field, by_thread["t3"].seq) == ("text", 3)
    assert (by_thread["empty"].field, by_thread["empty"].created_at) == ("title", NOON)
    assert {hit.thread_id for hit in await ledger.user("ada").threads.search("rome")} == {"t1", "t2", "t3", "t4"}


async def test_a_page_reads_a_bounded_number_of_messages(ledger: Ledger) -> None:
    for thread in ("a", "b", "c"):
        said = [user(f"{thread} {n}{' needle' if n == 0 else ''}") for n in range(600)]
        await ledger.messages.append(thread, said, create=True)
    plain = SearchRequest(ledger._scope.tenant, Query("needle"), 10)
    found, incomplete = [], 0
    for request in (replace(plain, most_messages=400), replace(plain, most_work=1_000)):
        cursor = None
        for _ in range(20):
            page = await ledger._scope.read(partial(search, request=request, cursor=cursor))
            found += [(hit.thread_id, hit.seq) for hit in page]
            incomplete += not page.complete
            if (cursor := page.next_cursor) is None:
                break
    assert found == [(thread, 1) for thread in "cba"] * 2
    assert incomplete > 6


async def test_a_page_goes_on_where_its_thread_stood_if_that_moved(ledger: Ledger) -> None:
    for thread in ("old", "new"):
        await ledger.messages.append(thread, [user(f"apple {n}") for n in range(4)], create=True)
    first = await ledger.messages.search("apple", limit=6)
    assert first.items[-1].thread_id == "old"
    assert first.items[-1].seq == 3
    await ledger.messages.append("old", [user("apple 5")])
    rest = await ledger.messages.search("apple", limit=6, cursor=first.next_cursor)
    assert [(hit.thread_id, hit.seq) for hit in rest] == [("old", 2), ("old", 1)]


async def test_a_cursor_goes_with_its_search_only(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("apple"), user("apple")], create=True)
    cursor = (await ledger.messages.search("apple", limit=1)).next_cursor
    for query, options in (("pear", {}), ("apple", {"roles": ["user"]}), ("apple", {"thread_id": "t"})):
        with pytest.raises(InvalidCursor, match="another search"):
            await ledger.messages.search(query, cursor=cursor, **options)
    with pytest.raises(InvalidCursor):
        await ledger.threads.search("apple", cursor=cursor)
    with pytest.raises(InvalidCursor):
        await ledger.messages.search("apple", cursor="nonsense")


@pytest.mark.parametrize("blank", ["", "  ", "\u3000\n"])
async def test_a_query_of_blanks_is_refused(ledger: Ledger, blank: str) -> None:
    with pytest.raises(InvalidArgument, match="query"):
        await ledger.messages.search(blank)


async def test_a_query_or_a_page_that_is_too_large_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LimitExceeded, match="characters of query"):
        await ledger.threads.search("x" * (MOST_CHARACTERS + 1))
    with pytest.raises(LimitExceeded, match="limit"):
        await ledger.messages.search("x", limit=1_001)


async def test_a_damaged_message_hides_no_other(sqlite_database: Database) -> None:
    async with sqlite_database.open() as ledger:
        await ledger.messages.append("t", [user("apple") for _ in range(3)], create=True)
        with closing(sqlite3.connect(sqlite_database.url)) as connection, connection:
            connection.execute("UPDATE messages SET created_at = 'never' WHERE seq = 2")
            connection.execute("UPDATE messages SET text = ? WHERE seq = 3", ("\ue000\\ux",))
        page = await ledger.messages.search("apple")
        assert [hit.seq for hit in page] == [1]
        places = [(error.column, error.key["seq"]) for error in page.damaged if isinstance(error, DamagedCell)]
        assert places == [("created_at", 2)]


async def test_the_match_is_shown_as_it_is_stored() -> None:
    for text in SCRIPTS:
        long = "lorem ipsum " * 500 + text + " dolor sit" * 500
        for start in range(0, len(text) - 5, 3):
            query = Query(long[6000 + start : 6000 + start + 5])
            before, match, after = query.cut(long)
            assert before + match + after in long
            assert query.is_in(match)
