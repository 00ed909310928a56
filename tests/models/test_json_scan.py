"""A text that may be JSON is parsed unless it has too many values, or too many digits in long numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chatledger.models.json import _PIECE, is_crowded, read_text, scan
from chatledger.models.limits import MOST_DIGITS, MOST_VALUES

LONG = "9" * 4_299


@pytest.mark.parametrize("number", [LONG, f"-{LONG}", f"0.{LONG}", f"1e{LONG}"])
@pytest.mark.parametrize("blank", [0, 1, _PIECE - 5, _PIECE])
def test_the_digits_of_long_numbers_count(number: str, blank: int) -> None:
    text = " " * blank + f'{{"a\\\\": "{LONG}\\"", "b": [12, {number}, {number}]}}'
    count = scan(text.encode())
    cut = 40 if blank > 1 else 0  # a number that two pieces share may lose less than 31 digits on each side
    assert 2 * 4_299 - cut <= count.digits <= 2 * 4_299
    assert count.long_number is not None
    assert 0 <= count.long_number - (text.index(number, text.index("12,")) + number.index("999")) <= cut


def test_numbers_of_30_digits_and_digits_in_strings_do_not_count() -> None:
    text = json.dumps({LONG: ["9" * 40, int("9" * 30), 0.1]})
    assert (scan(text.encode()).digits, scan(text.encode()).long_number) == (0, None)


CROWDED: dict[str, Any] = {
    "objects": '{"a":[' + "{}," * MOST_VALUES + "1]}",
    "numbers": "[" + "1," * MOST_VALUES + "1]",
    "digits": "[" + f"{LONG}," * (MOST_DIGITS // 4_299) + f"{LONG}]",
    "not json": ", " * MOST_VALUES,
}


@pytest.mark.parametrize("text", CROWDED.values(), ids=CROWDED)
def test_a_crowded_text_is_not_parsed(text: str) -> None:
    assert is_crowded(text)
    with pytest.raises(ValueError, match="too many values"):
        read_text(text)


def test_a_long_text_of_few_values_is_parsed() -> None:
    for value in ({"a": "x,[" * 100_000}, {"a": [1] * (MOST_VALUES - 10)}, [int(LONG)] * 15):
        assert read_text(json.dumps(value)) == value
