"""Any valid kosong message of either revision, as objects and as dicts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from chatledger.formats import kosong
from chatledger.formats.kosong import v0_23
from tests.formats.kosong.play import dumps_of
from tests.formats.round_trip import RoundTrip

# Any text that a str can hold but lone surrogates, which no release writes as JSON.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(bool)  # a call without a name is refused in strict
maybe_text = st.none() | texts
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
flags = st.sampled_from([None, True, False])


def given_or_not(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


def _part(kind: type[Any], *, optional: dict[str, st.SearchStrategy[Any]], **needed: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(needed, optional=optional).map(lambda fields: kind(**fields))


def _medium(kind: type[Any], field: str) -> st.SearchStrategy[Any]:
    inner = getattr(kind, field.split("_")[0].capitalize() + "URL")
    holder = _part(inner, optional={"id": maybe_text}, url=texts)
    return _part(kind, optional={"type": st.just(field)}, **{field: holder})


older_parts = st.one_of(
    _part(kosong.TextPart, optional={"type": st.sampled_from(["text", "foo"])}, text=texts),
    _part(kosong.ThinkPart, optional={"type": st.just("think"), "encrypted": maybe_text}, think=texts),
    _medium(kosong.ImageURLPart, "image_url"),
    _medium(kosong.AudioURLPart, "audio_url"),
    st.dictionaries(texts, json_values, max_size=3).map(
        lambda extra: kosong.UnknownPart(type="later", value={**extra, "type": "later"})
    ),
)
newer_parts = older_parts | _medium(kosong.VideoURLPart, "video_url")


def _calls(kind: type[Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    function = _part(kind.FunctionBody, optional={}, name=names, arguments=maybe_text)
    return _part(kind, optional={"type": st.just("function"), **optional}, id=texts, function=function)


def _messages(kind: type[Any], content: st.SearchStrategy[Any], calls: st.SearchStrategy[Any]) -> Any:
    optional = {
        "name": maybe_text,
        "tool_calls": st.none() | st.lists(calls, max_size=3),
        "tool_call_id": maybe_text,
        "partial": flags,
    }
    roles = st.sampled_from(["system", "user", "assistant", "tool"])
    return _part(kind, optional=optional, role=roles, content=content)


older_messages = _messages(v0_23.Message, texts | st.lists(older_parts, max_size=3), _calls(v0_23.ToolCall))
newer_messages = _messages(
    kosong.Message,
    texts | st.lists(newer_parts, max_size=3),
    _calls(kosong.ToolCall, extras=st.none() | st.dictionaries(texts, json_values, max_size=3)),
)

ways = st.sampled_from(["as made", "read from the full dump", "read from the short dump"])


def read_again(message: Any, way: str) -> Any:
    """The same message as if it had been read: other fields count as given then. Some dumps cannot be read."""
    if way == "as made":
        return message
    try:
        return type(message).model_validate(message.model_dump(exclude_none="short" in way))
    except ValueError:
        return message


rows = st.one_of(newer_messages, older_messages).flatmap(
    lambda message: st.sampled_from(
        [message.model_dump(), message.model_dump(exclude_none=True), message.model_dump(exclude_unset=True)]
    )
)


@st.composite
def altered_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A dump with its keys in any order and unknown keys at any level."""
    row = draw(rows)
    for level in (row, *_levels(row)):
        level.update(draw(st.dictionaries(texts.map(lambda key: f"x{key}"), json_values, max_size=1)))
    return dict(draw(st.permutations(list(row.items()))))


def _levels(row: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [part for part in row["content"] if isinstance(part, dict)] if isinstance(row["content"], list) else []
    calls = row.get("tool_calls") or []
    return [*parts, *calls, *(call["function"] for call in calls)]


any_rows = rows | altered_rows()

residuals: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        3,
        {"x": 1},
        {"partial": 1, "fields": {"keys": 2, "inner": {"content": 3}}},
        {"fields": {"extra": {"content": 3}, "keys": ["content"]}, "classes": 3, "given": {"": 3}},
        {"dict": True, "short": True, "fields": {"extra": {"role": 3}, "inner": {"tool_calls": {"0": {"keys": []}}}}},
        {"given": "another way", "dump": {"inner": []}, "classes": {"0": 3}},
    ]
)


def kosong_objects(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(read_again, messages, ways)


TRIPS = [
    RoundTrip("kosong/0.23", kosong_objects(older_messages), any_rows, dumps_of, residuals=residuals),
    RoundTrip("kosong/0.30", kosong_objects(newer_messages), any_rows, dumps_of, residuals=residuals),
]
