from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatledger.cli.escape import escape, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 🥞 日本", "plain é 🥞 日本"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("\x9b31m\x00\x7f\b", r"\x9b31m\x00\x7f\x08"),
        ("a\u202eb\u2066c\u200e", r"a\u202eb\u2066c\u200e"),
        ("a\ud800b\U000e0041", r"a\ud800b\U000e0041"),
        ("a\r\nb\rc\td", "a\nb\\rc    d"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
    ],
)
def test_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_one_line() -> None:
    assert one_line("a\nb\tc\r\n") == r"a\nb\tc\r\n"


@given(st.text(st.characters(), max_size=20))
def test_nothing_shown_is_a_control(text: str) -> None:
    kinds = {unicodedata.category(character) for character in escape(text) if character not in "\n"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert {unicodedata.bidirectional(character) for character in escape(text)}.isdisjoint(
        {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    )
