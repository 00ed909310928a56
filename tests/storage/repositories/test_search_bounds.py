"""The work of a search grows with the length of what it reads, and long texts are not the event loop's work."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, Literal
from unicodedata import combining, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatledger import ChatMessage, Ledger, TextPart
from chatledger.errors import InvalidArgument
from chatledger.storage.lists import bounded, fold_text, pieces, search, search_rows, search_text
from chatledger.storage.lists.search_scan import SearchRequest
from chatledger.storage.lists.search_text import MOST_PARSED, Query, plain
from chatledger.storage.schema.columns import Ciphertext
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, user

ACUTE, DOT_BELOW, VOWEL_SIGN = "\u0301", "\u0323", "\u0f73"


def longest_run(text: str) -> int:
    runs = itertools.groupby(normalize("NFKD", text) if len(text) < 1_000 else text, key=lambda one: combining(one) > 0)
    return max((len(list(run)) for is_mark, run in runs if is_mark), default=0)


@pytest.fixture
def normalized(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are normalized, which is square in a run of marks."""
    seen: list[str] = []

    def spy(form: Literal["NFKC", "NFKD"], text: str) -> str:
        seen.append(text)
        return normalize(form, text)

    monkeypatch.setattr(fold_text, "normalize", spy)
    return seen


@pytest.mark.parametrize("marks", [ACUTE, DOT_BELOW + ACUTE, "\u0344", VOWEL_SIGN, "\uff9e", "\U0001e944"])
def test_no_long_run_of_marks_is_sorted(normalized: list[str], marks: str) -> None:
    fold_text.folded("zalgo" + marks * 40_000)
    assert max(map(longest_run, (text[:999] for text in normalized))) <= fold_text.MOST_MARKS
    assert max(map(len, normalized)) <= 3 * 2 * 4_096  # a mark may be two, and there are breaks


@pytest.mark.parametrize("filling", ["消", "\u1161", "\u09be", "e" + ACUTE, "ａ ", "각"])
def test_a_long_text_is_folded_in_blocks_as_if_it_were_whole(normalized: list[str], filling: str) -> None:
    text = (filling * 100_000)[:100_001]
    assert fold_text.folded(text) == normalize("NFKC", normalize("NFKC", text).casefold())
    assert max(map(len, normalized)) <= 2 * 4_096


def test_thirty_marks_are_left_as_they_are() -> None:
    text = "a" + (DOT_BELOW + ACUTE) * 15
    assert fold_text.folded(text) == normalize("NFKC", text)
    assert fold_text.folded("\u1ea1" + ACUTE * 30).count("\u034f") == 1  # a letter that is a letter and a mark


def test_blanks_of_a_long_text_are_one_blank() -> None:
    text = ("to \u3000 be" + "\t" * 70_000 + "or\n") * 3
    assert fold_text.one_blank(text).strip() == " ".join(text.split())


async def test_words_beside_thousands_of_marks_are_found(ledger: Ledger) -> None:
    text = "before " + "e" + ACUTE * 160_000 + " after the marks"
    await ledger.threads.create("marks")
    await ledger.messages.append("marks", [ChatMessage(role="user", content=text)])
    for query in ("before e" + ACUTE * 60, "after the", "E" + ACUTE * 200):
        assert len(await ledger.messages.search(query)) == 1, query[:20]
    assert len(await ledger.messages.search(ACUTE + "x")) == 0


def test_deep_arguments_take_a_step_for_each_value() -> None:
    deep = "[" * 900 + ",".join(["1"] * 20_000) + "]" * 900
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        found = plain(f'{{"name": {deep}}}')
    finally:
        sys.setprofile(None)
    assert found.count("\n") == 19_999
    assert steps < 50 * 20_000  # level by level it would be 900 for each


def test_a_long_name_is_not_repeated_for_each_element() -> None:
    name = "n" * 50_000
    found = plain(json.dumps({name: list(range(50_000)), "other": ["a", "b"]}))
    assert len(found) < 1_000_000
    assert name in found
    assert found.endswith("other: a\nb")
    assert plain('{"a": [1, [2], {"b": null}]}') == "a: 1\na: 2\nb: null"


def test_very_long_arguments_are_searched_as_they_are_stored() -> None:
    arguments = json.dumps({"file": "x" * MOST_PARSED})
    assert plain(arguments) is arguments


async def test_the_event_loop_does_not_compare_long_texts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: dict[int, int] = {}
    is_in = Query.is_in

    def spy(query: Query, text: str) -> bool:
        compared[len(text)] = threading.get_ident()
        return is_in(query, text)

    monkeypatch.setattr(search_text.Query, "is_in", spy)
    await ledger.threads.create("long")
    long = "ä" * 2_000_000
    await ledger.messages.append("long", [user("short"), user(long)])
    await ledger.messages.search("needle")
    assert compared[len(long)] != threading.get_ident()


LONG = "x" * 3_000_000


def of_parts(*texts: str) -> ChatMessage:
    return ChatMessage(role="user", content=[TextPart(text=text) for text in texts])


LONG_MESSAGES: dict[str, Callable[[int], ChatMessage]] = {
    "a text": lambda number: user(f"{LONG} word{number}"),
    "parts": lambda number: of_parts(LONG, f"word{number}"),
    "arguments": lambda number: assistant(calls=[call(f"c{number}", arguments={"a": LONG, "b": f"word{number}"})]),
}


@pytest.mark.parametrize("kind", LONG_MESSAGES)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_a_batch_ends_before_it_has_many_bytes(
    database: Database, monkeypatch: pytest.MonkeyPatch, kind: str, *, encrypted: bool
) -> None:
    """And each message is looked at once, whatever batch it is in."""
    batches: list[int] = []

    class Counted(search_rows.BatchRows):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            texts = [row[5] for rows in (self._messages, self._calls) for found in rows.values() for row in found]
            texts += [row[6] for found in self._parts.values() for row in found]
            batches.append(sum(len(text or "") for text in texts))

    monkeypatch.setattr(search, "BatchRows", Counted)
    async with database.open(**({"encryption": KEYS} if encrypted else {})) as ledger:
        await ledger.threads.create("t", rules="lenient")
        await ledger.threads.create("other")
        await ledger.messages.append("other", [user("word in a short text")])
        messages = [LONG_MESSAGES[kind](number) for number in range(6)]
        for message in messages:
            await ledger.messages.append("t", [user("short"), message], on_open_calls="close")
        for query, count in (("word", 7), ("word3", 1), ("nothing", 0)):
            batches.clear()
            hits, cursor = list[tuple[str, int | None]](), None
            while True:
                page = await ledger.messages.search(query, limit=3, cursor=cursor)
                hits += [(hit.thread_id, hit.seq) for hit in page]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(hits) == len(set(hits)) == count
            assert max(batches) <= 8 * 1024 * 1024 + 1_000
            assert sum(batches) >= 6 * len(LONG)
        assert len(await ledger.threads.search("word")) == 2


async def test_a_message_of_many_bytes_is_a_batch_of_its_own(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST", 1_000)
    await ledger.threads.create("t", title="the title")
    parts = ["x" * 900] * 3
    for number in range(4):
        await ledger.messages.append("t", [of_parts(*parts, f"word{number}"), user("word")])
    assert [hit.seq for hit in await ledger.messages.search("word")] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert len(await ledger.threads.search("title")) == 1


async def test_a_damaged_cell_behind_a_long_text_is_told_once(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "MOST", 1_000)
    async with sqlite_database.open(encryption=KEYS) as ledger:
        await ledger.threads.create("t")
        for number in range(6):
            await ledger.messages.append("t", [of_parts("x" * 900, "y")])
            await ledger.messages.append("t", [user(f"word{number}")])
    with closing(sqlite3.connect(sqlite_database.url)) as connection, connection:
        connection.execute("UPDATE messages SET text = 'plain' WHERE seq IN (2, 6)")
    async with sqlite_database.open(encryption=KEYS) as ledger:
        page = await ledger.messages.search("word")
        assert [hit.seq for hit in page] == [12, 10, 8, 4]
        assert len(page.damaged) == 2


def size_of(title: str | Ciphertext) -> int:
    return len(title.stored if isinstance(title, Ciphertext) else title)


async def test_long_titles_are_read_a_few_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    fetch = bounded.fetch_rows

    def noted(*given: Any, **named: Any) -> bounded.Rows:
        found = fetch(*given, **named)
        read.append(sum(size_of(row["title"]) for row in found.rows))
        return found

    monkeypatch.setattr(search, "fetch_rows", noted)
    for number in range(7):
        await ledger.threads.create(f"t{number}", title=f"{number} {LONG}")
    assert [hit.thread_id for hit in await ledger.threads.search("xxx")] == [
        f"t{number}" for number in reversed(range(7))
    ]
    assert len(read) == 4
    assert max(read) <= bounded.LARGEST


# --- The work of a page -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("letter", "times"), [("\ufdfa", 18), ("\u3316", 6), ("\ufb03", 3), ("x", 1)])
def test_text_that_grows_is_folded_in_short_calls_and_counted_as_it_grew(
    normalized: list[str], letter: str, times: int
) -> None:
    query = Query("needle")
    assert not query.is_in(letter * 100_000)
    assert query.work >= times * 100_000
    assert max(map(len, normalized), default=0) <= 18 * 2 * 4_096


@pytest.mark.parametrize(
    ("filling", "size"), [("消", 4_096), ("\ufdfa", 4_096), ("e" + ACUTE, 4_096), ("x", 65_536), (" ", 65_536)]
)
@pytest.mark.parametrize("query", ["needle", "needle in   HAY", "n"])
def test_a_match_across_the_border_of_blocks_is_found(filling: str, size: int, query: str) -> None:
    for at in range(size - 16, size + 3):
        assert Query(query).is_in((filling * size)[:at] + query + filling * 10), at


def test_blanks_across_the_borders_of_blocks_are_one_blank() -> None:
    assert Query("needle in hay").is_in("消 needle" + " \t" * 70_000 + "in\n HAY")
    assert not Query("needle in hay").is_in("消 needle" + " \t" * 70_000 + "in\n HA" + " " * 5_000 + "Y")


HARD: dict[str, Callable[[int], ChatMessage]] = {
    "letters that grow": lambda number: user("\ufdfa" * 60_000 + f" word{number}"),
    "runs of marks": lambda number: user("e" + ACUTE * 200_000 + f" word{number}"),
    "lone surrogates": lambda number: user("\ud800" * 100_000 + f" word{number}"),
    "many values": lambda number: assistant(
        calls=[call(f"c{number}-{n}", arguments={"a": [0] * 7_000, "b": f"word{number}\n"}) for n in range(4)]
    ),
}


@pytest.mark.parametrize("kind", HARD)
async def test_a_page_ends_after_its_work_and_the_next_goes_on(ledger: Ledger, kind: str) -> None:
    await ledger.threads.create("t", title="word", rules="lenient")
    for number in range(6):
        await ledger.messages.append("t", [HARD[kind](number)], on_open_calls="close")
    for query, limit, found in (("nothing", 200, 0), ("word", 200, 6), ("word3", 1, 1)):
        hits, pages, cursor = list[int | None](), 0, None
        while True:
            tenant = ledger._scope.tenant
            request = SearchRequest(tenant, Query(query), limit, most_work=2_000_000)
            page = await ledger._scope.read(partial(search.search, request=request, cursor=cursor))
            assert request.query.work < 12_000_000  # a message at most beyond the bound
            assert page.complete == (page.next_cursor is None or len(page.items) == limit)
            hits, pages, cursor = hits + [hit.seq for hit in page], pages + 1, page.next_cursor
            if cursor is None:
                break
        assert len(hits) == len(set(hits)) == found
        assert pages >= (3 if query == "nothing" else 2)


def test_numbers_stay_the_text_that_they_are() -> None:
    digits = "7" * 4_299
    assert plain(f'{{"a": [{digits}, -1, 1.50, 1e400, NaN]}}') == f"a: {digits}\na: -1\na: 1.50\na: 1e400\na: NaN"


words = st.text(st.sampled_from(["a", "B", ":", " ", ",", '"', "\\", "\n", "1", ".", ACUTE, "消", "ﬁ"]), max_size=5)
json_values = st.recursive(
    words | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.booleans(), st.data())
def test_arguments_that_are_not_parsed_hold_no_hit(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    shown = plain(text)
    start = data.draw(st.integers(0, len(shown)))
    part = shown[start : start + data.draw(st.integers(1, 9))]
    try:
        query = Query(part)
    except InvalidArgument:  # only blanks
        return
    assert query.may_be_in(text) or not query.is_in(shown)


async def test_arguments_without_the_words_are_not_parsed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def spy(text: str) -> str:
        parsed.append(text)
        return plain(text)

    monkeypatch.setattr(search_rows, "plain", spy)
    await ledger.threads.create("t")
    await ledger.messages.append(
        "t", [user("go"), assistant(calls=[call("c", arguments='{"city": "Oslo", "n": [1, 2]}')])]
    )
    for words, hits in {"Bergen": 0, "city: Oslo": 1, "n: 1 n: 2": 1}.items():
        assert len(await ledger.messages.search(words)) == hits
    assert len(parsed) == 2


async def test_only_some_values_of_a_message_are_parsed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def spy(text: str) -> str:
        parsed.append(text.count(","))
        return plain(text)

    monkeypatch.setattr(search_rows, "plain", spy)
    await ledger.threads.create("t", rules="lenient")
    calls = [call(f"c{n}", arguments=json.dumps({"a": [n] * 9_000, "b": "\u6d88"})) for n in range(20)]
    await ledger.messages.append("t", [assistant(calls=calls)])
    assert len(await ledger.messages.search("消")) == 1
    assert len(await ledger.messages.search("nothing")) == 0
    assert sum(parsed[1:]) <= 30_000
    assert len(await ledger.messages.search("[19, 19")) == 1  # the others are searched as they are stored
