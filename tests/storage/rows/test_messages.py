"""Any stored message is read back equal in every field that was given."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chatledger import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    Ledger,
    OpaquePart,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from chatledger.models import LENIENT
from chatledger.models.json import same_json
from chatledger.storage.rows.messages import is_encoded_alike
from tests.conversations import assistant, call, turn, user

NUMBERS = itertools.count()
SET_BY_THE_LEDGER = {"thread_id", "branch", "seq", "violations"}

# --- Any message ------------------------------------------------------------------------------------------------------

CHARACTERS = st.characters(codec=None) | st.sampled_from("\0\\'\"\ud800\udfff\ue000 \n:$%{}é🌦")
TEXT = st.text(CHARACTERS, max_size=12)
LONG_ID = st.integers(4_600, 4_700).map(lambda size: "".join(chr(33 + n * 7919 % 90) for n in range(size)))
KEYS = st.text(CHARACTERS, min_size=1, max_size=12)
NUMBER = st.integers() | st.floats() | st.sampled_from([10**30, -0.0, 1e400, 1e2, 100, True, 2**53 + 1])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=5,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
ZONES = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
YEAR_1, YEAR_9999 = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 - Hypothesis adds the zone
# `fold` tells two readings of a local clock apart; in UTC it means nothing.
MOMENTS = st.datetimes(YEAR_1, YEAR_9999, timezones=ZONES).map(lambda moment: moment.replace(fold=0))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


MEDIA = {name: maybe(TEXT) for name in ("url", "data", "mime_type", "name", "id")} | {"extras": maybe(OBJECT)}
PARTS = st.one_of(
    st.builds(TextPart, text=TEXT, extras=maybe(OBJECT)),
    st.builds(ThinkPart, text=TEXT, signature=maybe(TEXT), extras=maybe(OBJECT)),
    *(st.builds(kind, **MEDIA) for kind in (ImagePart, AudioPart, VideoPart, FilePart)),
    st.builds(OpaquePart, type=maybe(TEXT), value=JSON),
    OBJECT.map(lambda value: OpaquePart.model_validate({"kind": "hologram", **value, "kind ": 1})),
)
CONTENTS = st.none() | TEXT | st.lists(PARTS, max_size=3)
CALLS = st.builds(ToolCall, id=maybe(TEXT | LONG_ID), name=KEYS, arguments=maybe(TEXT | OBJECT), extras=maybe(OBJECT))
ANYTHING = {
    "content": CONTENTS,
    "reasoning": CONTENTS,
    "name": maybe(TEXT),
    "message_id": maybe(KEYS),
    "run_id": maybe(KEYS),
    "created_at": maybe(MOMENTS),
    "response_metadata": maybe(OBJECT),
    "custom_data": maybe(OBJECT),
    "format": maybe(TEXT),
    "residual": JSON,
    "state": st.sampled_from(["complete", "interrupted", "synthetic"]),
}
LENIENTLY = ANYTHING | {
    "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "custom"]) | TEXT,
    "tool_calls": maybe(st.lists(CALLS, max_size=2)),
    "tool_call_id": maybe(TEXT | LONG_ID),
    "is_error": maybe(st.booleans()),
}


@st.composite
def messages(draw: st.DrawFn, /, **fixed: Any) -> ChatMessage:
    """A message of any shape. It has the fields of `fixed`; each other field may be given or not."""
    names = draw(st.sets(st.sampled_from(sorted(LENIENTLY.keys() - {"role"}))))
    fields = {name: draw(LENIENTLY[name]) for name in sorted(names)}
    return ChatMessage.model_validate({"role": draw(LENIENTLY["role"])} | fields | fixed, context=LENIENT)


def distinct(batch: list[ChatMessage]) -> bool:
    ids = [message.message_id for message in batch if message.message_id is not None]
    return len(set(ids)) == len(ids)


BATCHES = st.lists(messages(), min_size=1, max_size=4).filter(distinct)


@st.composite
def turns(draw: st.DrawFn) -> list[ChatMessage]:
    """Turns that strict takes: calls with ids of any kind or none, each with its result."""
    batch: list[ChatMessage] = []
    for _ in range(draw(st.integers(1, 2))):
        calls = draw(st.lists(CALLS, max_size=2, unique_by=lambda one: object() if one.id is None else one.id))
        batch += [
            draw(messages(role="user", tool_calls=None, tool_call_id=None)),
            draw(messages(role="assistant", tool_calls=calls, tool_call_id=None)),
        ]
        for one in calls:
            link = {"tool_call_id": one.id, "name": one.name}
            batch.append(draw(messages(role="tool", tool_calls=None, is_error=None, **link)))
    return batch


# --- Reading back -----------------------------------------------------------------------------------------------------


def same(before: ChatMessage, after: ChatMessage) -> bool:
    """Equal in every field that was given, value by value: NaN is NaN, 1 is not 1.0, key order counts.

    A message id and a time that are None are not given: the ledger fills them in.
    """
    filled = {name for name in ("message_id", "created_at") if getattr(before, name) is None}
    fields = before.model_fields_set - SET_BY_THE_LEDGER - filled
    return same_json(before.model_dump(include=fields), after.model_dump(include=fields))


async def assert_read_back(ledger: Ledger, batch: list[ChatMessage], rules: Any) -> None:
    own = ledger.tenant(f"example {next(NUMBERS)}")
    await own.threads.create("t", rules=rules)
    stored = (await own.messages.append("t", batch)).messages
    history = (await own.messages.history("t")).messages
    assert [same(before, after) for before, after in zip(batch, history, strict=True)] == [True] * len(batch)
    assert same_json([one.model_dump() for one in history], [one.model_dump() for one in stored])
    assert [one.seq for one in history] == list(range(1, len(batch) + 1))
    for message in history:
        alone = await own.messages.get("t", message.message_id or "")
        assert same_json(alone.model_dump(), message.model_copy(update={"answers": None}).model_dump())
    assert (await own.messages.append("t", history)).replayed


FIELDS = [
    {"message_id": "b"},
    {"role": "tool"},
    {"content": "other"},
    {"content": [TextPart(text="text")]},
    {"content": None},
    {"reasoning": "because"},
    {"name": "ada"},
    {"tool_calls": [ToolCall(name="f", arguments={"a": 1.0})]},
    {"tool_call_id": "c"},
    {"is_error": False},
    {"run_id": "r"},
    {"format": "openai-chat"},
    {"residual": {"b": 2, "a": 1}},
    {"response_metadata": {"a": True}},
    {"custom_data": {"a": float("nan")}},
]


@pytest.mark.parametrize("changed", FIELDS, ids=repr)
def test_messages_are_encoded_alike_if_all_their_rows_are_equal(changed: dict[str, Any]) -> None:
    message = ChatMessage(
        role="user",
        content="text",
        message_id="a",
        tool_calls=[ToolCall(name="f", arguments={"a": 1})],
        residual={"a": 1, "b": 2},
        response_metadata={"a": 1},
        custom_data={"a": 1},
    )
    other = message.model_copy(update=changed)
    assert is_encoded_alike(message, message.model_copy(deep=True))
    assert is_encoded_alike(other, other.model_copy(deep=True))
    assert not is_encoded_alike(message, other)
    assert not is_encoded_alike(other, message)


QUICKLY = settings(max_examples=60, suppress_health_check=list(HealthCheck))
BOUNDS = [
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
]


@QUICKLY
@given(batch=BATCHES)
@example(batch=[user("x", created_at=moment) for moment in BOUNDS])
@example(batch=[assistant(calls=[]), assistant(calls=[call(None, arguments=None)]), assistant(reasoning="")])
@example(batch=[ChatMessage(role="user", content=content) for content in (None, "", [], [TextPart(text="")])])
@example(batch=[ChatMessage(role="user", reasoning=content) for content in (None, "", [], [TextPart(text="")])])
async def test_any_messages_are_read_back_equal_in_lenient(ledger: Ledger, batch: list[ChatMessage]) -> None:
    await assert_read_back(ledger, batch, "lenient")


@QUICKLY
@given(batch=turns().filter(distinct))
@example(batch=turn(ids="m"))
async def test_any_turns_are_read_back_equal_in_strict(ledger: Ledger, batch: list[ChatMessage]) -> None:
    await assert_read_back(ledger, batch, "strict")


@QUICKLY
@given(content=CONTENTS, metadata=maybe(OBJECT), title=maybe(TEXT))
async def test_messages_of_a_transaction_are_read_back_equal(
    ledger: Ledger, content: Any, metadata: Any, title: str | None
) -> None:
    own = ledger.tenant(f"example {next(NUMBERS)}")
    given_message = ChatMessage(role="user", content=content, custom_data=metadata)
    async with own.begin() as tx:
        thread = await tx.threads.create("t", title=title, metadata=metadata)
        await tx.messages.append("t", [given_message])
        inside = (await tx.messages.history("t")).messages
    outside = (await own.messages.history("t")).messages
    assert same(given_message, outside[0])
    assert same_json([one.model_dump() for one in inside], [one.model_dump() for one in outside])
    found = await own.threads.get("t")
    assert same_json([found.title, found.metadata], [title, metadata])
    assert found.created_at == thread.created_at


async def test_a_partial_message_is_read_back_until_something_follows(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("?"), assistant("on", state="partial")])
    history = await ledger.messages.history("t")
    assert (len(history), history.draft and history.draft.state) == (1, "partial")
    await ledger.messages.append("t", [user("?")], on_open_calls="interrupt")
    assert [one.state for one in await ledger.messages.history("t")] == ["complete", "interrupted", "complete"]
