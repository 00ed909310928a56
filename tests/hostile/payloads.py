"""Payloads that nobody means well with: any JSON, real shapes with something wrong in them, objects that misbehave.

A mutation takes a payload that its format writes and replaces, drops, doubles or renames something at a random place:
what is nearly right reaches further into a decoder than what is merely random.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from hypothesis import strategies as st

from chatledger.formats import format_names
from tests.formats.round_trips import ROUND_TRIPS, dumped

_NAMES = (
    "role content type text id name arguments function function_call tool_calls tool_call_id call_id input "
    "output messages system thinking signature reasoning reasoning_content summary extra extras custom_data "
    "image_url url partial think encrypted file audio video image data format source media_type tool_use_id "
    "is_error refusal history outputs timeout heading_level nonce mime_type run_id response_metadata args "
    "status duration model"
)
NAMES = _NAMES.split()
_WORDS = (
    "user assistant system developer tool function human ai custom message reasoning function_call text think "
    "image function_call_output tool_use tool_result image_url input_text output_text input_audio thinking "
    "redacted_thinking document item_reference refusal {} [] null NaN {"
)
WORDS = _WORDS.split()


class Unreadable:
    """An object of which nothing can be asked."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"{name} of an object that is not to be read")


class Growing:
    """Has whatever attribute is asked for, and that is like it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Growing()

    def __call__(self, *_: object, **__: object) -> Any:
        return Growing()


class Lying:
    """Dumps itself as something else than a message, or not at all."""

    def __init__(self, dump: object) -> None:
        self.dump = dump

    def model_dump(self, **_: object) -> Any:
        if isinstance(self.dump, Exception):
            raise self.dump
        return self.dump

    to_dict = model_dump


class Text(str):
    """A str that is not only a str."""

    __slots__ = ()


def endless() -> Iterator[int]:
    while True:
        yield 0


def _inside_itself() -> list[Any]:
    around: list[Any] = []
    around.append({"role": "user", "content": around})
    return around


texts = (
    st.text(st.characters(exclude_categories=()), max_size=12)
    | st.sampled_from([*WORDS, "", "\0", "\ud800", "\ud83d\ude00", "\ue000", '{"a":1,"a":2}', "1e999"])
    | st.sampled_from(["0", "[", '{"a":', "\\u"]).map(lambda piece: piece * 3_000)
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | st.sampled_from([30, 4_299, 4_400]).map(lambda digits: -(10**digits))
    | st.sampled_from([2**63, 1e400, -0.0])
)
keys = st.sampled_from(NAMES) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


def _made(make: Callable[[], Any]) -> Any:
    return make()


live = st.sampled_from(
    [
        object,
        Unreadable,
        Growing,
        endless,
        _inside_itself,
        lambda: Lying(None),
        lambda: Lying(RuntimeError("no dump")),
        lambda: Lying({"role": "user", "content": [1]}),
        lambda: {1: 2},
        lambda: {"role": "user", "content": ("a", "b")},
        lambda: {("a",): {"b"}},
        lambda: b"\xff",
        lambda: bytearray(b"{}"),
        lambda: {1, 2},
        lambda: Text("user"),
        lambda: dict,
        lambda: ValueError,
        lambda: 1j,
    ]
).map(_made)
anything = values | live


def deep(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"content": value}
    return value


@st.composite
def mutated(draw: st.DrawFn, name: str) -> Any:
    """A payload of a format with one to three things wrong in it."""
    round_trip = next(one for one in ROUND_TRIPS if one.format == name)
    rows = round_trip.messages.map(dumped)
    rows = rows if round_trip.rows is None else round_trip.rows | rows
    payload = copy.deepcopy(round_trip.around(draw(st.lists(rows, min_size=1, max_size=3))))
    for _ in range(draw(st.integers(1, 3))):
        places = list(places_of(payload))
        if not places:
            return payload
        container, key = places[draw(st.integers(0, len(places) - 1))]
        change = draw(st.sampled_from(_CHANGES))
        change(draw, container, key)
    return payload


def places_of(payload: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a payload: its container, and its key or index there."""
    pending, seen = [payload], set[int]()
    while pending:
        item = pending.pop()
        if isinstance(item, (dict, list)) and id(item) not in seen:
            seen.add(id(item))
            for key, child in list(item.items() if isinstance(item, dict) else enumerate(item)):
                yield item, key
                pending.append(child)


def _replace(draw: st.DrawFn, container: Any, key: Any) -> None:
    container[key] = draw(anything | st.sampled_from([490, 510, 3_000]).map(deep))


def _drop(_: st.DrawFn, container: Any, key: Any) -> None:
    del container[key]


def _double(_: st.DrawFn, container: Any, key: Any) -> None:
    if isinstance(container, list):
        container.insert(key, container[key])
    else:
        container[f"{key}_"] = container[key]


def _rename(draw: st.DrawFn, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[draw(keys)] = container.pop(key)


def _retype(draw: st.DrawFn, container: Any, key: Any) -> None:
    wrap: Any = draw(
        st.sampled_from([str, repr, lambda value: [value], lambda value: {"type": value}, bool, lambda _: None])
    )
    with contextlib.suppress(RecursionError, ValueError, RuntimeError):
        container[key] = wrap(container[key])


_CHANGES = (_replace, _replace, _drop, _double, _rename, _retype)


# --- Files ------------------------------------------------------------------------------------------------------------


@st.composite
def damaged_file(draw: st.DrawFn) -> bytes:
    """A file to import: records of a format with something wrong in them, in one of the ways that records stand in a
    file, and then a few bytes of it changed, or its end cut off.
    """
    name = draw(st.sampled_from(format_names()))
    payloads = draw(st.lists(mutated(name) | anything, min_size=1, max_size=3))
    records = [draw(st.sampled_from(_RECORDS))(payload) for payload in payloads]
    texts = [_as_json(record) for record in records]
    content = bytearray(draw(st.sampled_from(_FILES))(texts).encode("utf-8", "surrogatepass"))
    for place, byte in draw(
        st.lists(st.tuples(st.integers(0, max(len(content) - 1, 0)), st.integers(0, 255)), max_size=3)
    ):
        content[place : place + 1] = bytes([byte])
    return bytes(content[: draw(st.none() | st.integers(0, len(content)))])


_RECORDS: tuple[Callable[[Any], Any], ...] = (
    lambda payload: payload,
    lambda payload: {"id": 1, "messages": payload, "created_at": "2024-02-29T00:00:00Z"},
    lambda payload: {"conversations": payload, "mapping": payload, "trajectory": payload, "history": payload},
    lambda payload: {"interactions": [{"request": {"body": payload}, "response": payload}, payload]},
)
_FILES: tuple[Callable[[list[str]], str], ...] = (
    lambda texts: "[" + ",".join(texts) + "]",
    lambda texts: "\n".join(texts),
    lambda texts: texts[0],
)


def _as_json(value: Any) -> str:
    """Whatever it is; what is no JSON is written as a text."""
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda _: "no JSON")
    except (TypeError, ValueError, RecursionError):
        return '["no JSON"]'
