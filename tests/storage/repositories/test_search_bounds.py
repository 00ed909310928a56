"""The work of a search grows with the length of what it reads, and long texts are not the event loop's work."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from typing import Literal
from unicodedata import combining, normalize

import pytest

from chatledger import ChatMessage, Ledger
from chatledger.storage.repositories import folding, search_text
from chatledger.storage.repositories.search_text import MOST_PARSED, Query, plain
from tests.conversations import user

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

    monkeypatch.setattr(folding, "normalize", spy)
    return seen


@pytest.mark.parametrize("marks", [ACUTE, DOT_BELOW + ACUTE, "\u0344", VOWEL_SIGN, "\uff9e", "\U0001e944"])
def test_no_long_run_of_marks_is_sorted(normalized: list[str], marks: str) -> None:
    folding.folded("zalgo" + marks * 40_000)
    assert max(map(longest_run, (text[:999] for text in normalized))) <= folding.MOST_MARKS
    assert max(map(len, normalized)) <= 2 * 32_768


@pytest.mark.parametrize("filling", ["消", "\u1161", "\u09be", "e" + ACUTE, "ａ ", "각"])
def test_a_long_text_is_folded_in_blocks_as_if_it_were_whole(normalized: list[str], filling: str) -> None:
    text = (filling * 100_000)[:100_001]
    assert folding.folded(text) == normalize("NFKC", normalize("NFKC", text).casefold())
    assert max(map(len, normalized)) <= 2 * 32_768


def test_thirty_marks_are_left_as_they_are() -> None:
    text = "a" + (DOT_BELOW + ACUTE) * 15
    assert folding.folded(text) == normalize("NFKC", text)
    assert folding.folded("\u1ea1" + ACUTE * 30).count("\u034f") == 1  # a letter that is a letter and a mark


def test_blanks_of_a_long_text_are_one_blank() -> None:
    text = ("to \u3000 be" + "\t" * 70_000 + "or\n") * 3
    assert folding.one_blank(text) == " ".join(text.split())


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
