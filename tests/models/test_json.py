"""JSON as it is kept: checked, written, read, compared."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger import ChatMessage
from chatledger.models.json import check_json, dumps, json_problem, loads, same_json

TEXT = st.text(alphabet=st.characters(), max_size=8) | st.text(alphabet='\ud83d\ude00\\u\x00"a', max_size=6)
NUMBERS = st.integers() | st.floats() | st.integers(-(10**40), 10**40)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int, *, objects: bool) -> Any:
    value: Any = {} if objects else []
    for _ in range(depth - 1):
        value = {"a": value} if objects else [value]
    return value


@settings(max_examples=200)
@given(VALUES)
def test_a_written_payload_is_read_back_equal(value: Any) -> None:
    assert same_json(loads(dumps(value)), value)


@settings(max_examples=200)
@given(VALUES, VALUES)
def test_two_values_are_the_same_if_their_text_is(left: Any, right: Any) -> None:
    assert same_json(left, right) == (dumps(left) == dumps(right))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (float("-1e400"), "-Infinity"),
        (-0.0, "-0.0"),
        (1e2, "100.0"),
        (10**30, "1" + "0" * 30),
        (True, "true"),
        ({"b": 1, "a": 2, "": []}, '{"b":1,"a":2,"":[]}'),
        ("é\U0001f600", '"é\U0001f600"'),
        ("\x00", '"\\u0000"'),
        ("\ud800", '"\\ud800"'),
        ({"\udfff": "a\ud800"}, '{"\\udfff":"a\\ud800"}'),
    ],
    ids=repr,
)
def test_a_value_and_its_text(value: Any, text: str) -> None:
    assert dumps(value) == text
    assert same_json(loads(text), value)


@pytest.mark.parametrize("value", ["\ud83d\ude00", "\ud800\ud83d\ude00\udc00", ["\ud83d\ude00", "\ud800"]], ids=ascii)
def test_two_surrogates_are_not_joined_to_one_character(value: Any) -> None:
    assert same_json(loads(dumps(value)), value)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (0, False),
        (None, False),
        ("1", 1),
        ([], {}),
        ([[]], [[], []]),
        ([1, [2]], [[1], 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": "b"}, {"b": "a"}),
        (["a", 1], {"a": 1}),
        ("\ud83d\ude00", "\U0001f600"),
    ],
    ids=ascii,
)
def test_different_values(left: Any, right: Any) -> None:
    assert not same_json(left, right)
    assert not same_json(right, left)


class Live:
    pass


@pytest.mark.parametrize(
    ("value", "path", "detail"),
    [
        ((1,), "$", "tuple is not JSON"),
        ({"a": [0, (1,)]}, "$.a[1]", "tuple is not JSON"),
        ({"a": {1: "b"}}, "$.a", "a key is int, not text"),
        ({None: 1}, "$", "a key is NoneType, not text"),
        ([{"a": Live()}], "$[0].a", "Live is not JSON"),
        ([{1, 2}], "$[0]", "set is not JSON"),
        (b"a", "$", "bytes is not JSON"),
        ([Decimal(1)], "$[0]", "Decimal is not JSON"),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, "$.at", "datetime is not JSON"),
        (1j, "$", "complex is not JSON"),
        ({"n": 10**4_300}, "$.n", "an integer of more than 4,300 digits"),
        ([-(10**5_000)], "$[0]", "an integer of more than 4,300 digits"),
        ([0, [1, 10**4_300], {1, 2}, 10**4_300], "$[1][1]", "an integer of more than 4,300 digits"),
        ({"a": 0, "b": {"c": (1,), "d": (1,)}, "e": (1,)}, "$.b.c", "tuple is not JSON"),
    ],
    ids=lambda value: str(type(value)),
)
def test_a_value_that_is_not_json_is_refused_with_its_path(value: Any, path: str, detail: str) -> None:
    assert json_problem(value) == (path, detail)
    with pytest.raises(ValidationError) as caught:
        ChatMessage(role="user", residual=value)
    assert caught.value.errors()[0]["msg"] == f"Value error, {path}: {detail}"


def test_the_longest_integer_is_written_and_read() -> None:
    value = check_json([10**4_300 - 1, 1 - 10**4_300, 2**14_284])
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("objects", [True, False])
def test_500_levels_are_kept(objects: bool) -> None:
    value = nested(500, objects=objects)
    assert ChatMessage(role="user", residual=value).residual is value
    assert same_json(loads(dumps(value)), value)


@pytest.mark.parametrize("objects", [True, False])
@pytest.mark.parametrize("depth", [517, 100_000])
def test_far_deeper_is_refused(depth: int, objects: bool) -> None:
    with pytest.raises(ValidationError, match="nested deeper than 516"):
        ChatMessage(role="user", residual=nested(depth, objects=objects))


def test_a_format_may_ask_for_less_depth() -> None:
    assert json_problem(nested(500, objects=False), max_depth=500) is None
    problem = json_problem(nested(501, objects=False), max_depth=500)
    assert problem == ("$" + "[0]" * 26 + "[", "nested deeper than 500")


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value += [value, value]
    with pytest.raises(ValueError, match="nested deeper than 516"):
        check_json(value)


def test_comparing_deep_values_needs_no_recursion() -> None:
    assert same_json(nested(100_000, objects=False), nested(100_000, objects=False))
    assert not same_json(nested(100_000, objects=False), nested(99_999, objects=False))


def test_an_object_is_asked_for_where_an_object_belongs() -> None:
    with pytest.raises(ValidationError, match="valid dictionary"):
        ChatMessage.model_validate({"role": "user", "custom_data": [1]})


def spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(VALUES, VALUES)
def test_values_written_alike_are_the_same(left: Any, right: Any) -> None:
    for one, other in ((left, right), (left, json.loads(spelled(left))), ([left, right], [right, left])):
        assert same_json(one, other) == (spelled(one) == spelled(other))


DIFFERENT = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("1", 1),
    ([], {}),
    ([1], [1, 2]),
    ({"a": [1]}, {"a": [True]}),
    (None, ""),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_values_spelled_differently_are_not_the_same(left: Any, right: Any) -> None:
    assert not same_json(left, right)
    assert not same_json([left], [right])


def test_a_list_that_holds_itself_twice_is_refused_at_once() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(ValueError, match="nested deeper"):
        check_json(endless)
