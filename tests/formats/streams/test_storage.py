"""A response that comes in events is stored as an append of the whole response stores it: every row, every view."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import assume, given

from chatledger import ChatLedgerError, ChatMessage, Ledger, Limits, Pace, Payload, RuleViolation, Usage
from chatledger.errors import DraftLost, LimitExceeded
from chatledger.formats import get_codec
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS, RESULT_COLUMNS
from tests.conftest import Database
from tests.conversations import user
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.reading import Object, fed
from tests.formats.streams.sdk_examples import example
from tests.formats.streams.test_coverage import BLOCKS, ITEMS, item_of
from tests.formats.streams.test_openai_chat import LEGACY, MESSAGE, THINKING
from tests.formats.streams.test_properties import streams
from tests.storage.rows.test_messages import QUICKLY

FORMATS = ("anthropic", "openai-chat", "openai-responses")
RESULTS = ("function_call_output", "custom_tool_call_output")
NUMBERS = count()
NOT_COMPARED = {"message_id", "created_at"}
COLUMNS = {
    "branches": ("last_seq", "last_role", "partial_seq", "open_calls"),
    "messages": tuple(name for name in MESSAGE_COLUMNS if name not in NOT_COMPARED),
    "message_parts": PART_COLUMNS,
    "tool_calls": CALL_COLUMNS,
    "tool_results": RESULT_COLUMNS,
}


async def feed(ledger: Ledger, name: str, events: Sequence[Object], **options: Any) -> Any:
    async with ledger.messages.stream(
        "streamed", format=name, **options, pace=Pace(interval=3_600, lease=7_200)
    ) as draft:
        for event in events:
            await draft.feed(event)
    return draft


async def rows(ledger: Ledger, thread_id: str) -> dict[str, list[Any]]:
    def read(sql: ReadSql) -> dict[str, list[Any]]:
        place = {"tenant": ledger._scope.tenant.key, "thread": thread_id}
        where = "WHERE tenant_id = :tenant AND thread_id = :thread"
        return {
            table: sorted(
                map(tuple, sql.fetch(f"SELECT {', '.join(names)} FROM {{schema}}{table} {where}", place)), key=repr
            )
            for table, names in COLUMNS.items()
        }

    return await ledger._scope.read(read, snapshot=True)


async def views(ledger: Ledger, thread_id: str) -> list[Any]:
    """The thread in each format and view: the payload, the losses and the repairs; or the error."""
    found: list[Any] = []
    for name in FORMATS:
        provider: Any = name
        try:
            encoded = (await ledger.messages.history(thread_id)).encode(name)
            found.append((name, encoded.payload, encoded.losses))
            prompt = await ledger.messages.prompt(thread_id, provider)
            found.append((name, prompt.payload, prompt.repairs))
        except ChatLedgerError as error:
            found.append((name, str(error).replace(thread_id, "t")))
    return found


async def require_equal(ledger: Ledger, name: str, events: Sequence[Object], payload: list[Object]) -> None:
    """Strict rules refuse some of the made-up responses. Lenient rules record what is wrong with them."""
    own = ledger.tenant(f"equal {next(NUMBERS)}")
    for thread_id in ("streamed", "appended"):
        await own.threads.create(thread_id)
        await own.messages.append(thread_id, [user("?")])
    options: dict[str, Any] = {}
    try:
        appended = await own.messages.append("appended", Payload(payload, name))
    except RuleViolation:
        options["rules"] = "lenient"
        appended = await own.messages.append("appended", Payload(payload, name), **options)
    draft = await feed(own, name, events, **options)
    if payload:
        assert await rows(own, "streamed") == await rows(own, "appended")
        assert await views(own, "streamed") == await views(own, "appended")
    assert [message.seq for message in draft.messages] == ([message.seq for message in appended.messages] or [2])
    assert repr(draft.messages) == repr((await own.messages.history("streamed")).messages[1:])  # NaN equals no NaN


@pytest.mark.parametrize("kind", ITEMS)
async def test_an_output_item_is_stored_as_by_an_append(ledger: Ledger, kind: str) -> None:
    """A draft is a message of the assistant, so a result comes with the call that it answers."""
    item = item_of(kind)
    call = {"type": kind.removesuffix("_output"), "call_id": item.get("call_id"), "name": "f", "arguments": "{}"}
    output = [{**call, "input": ""}, item] if kind in RESULTS else [item]
    await require_equal(ledger, "openai-responses", split_responses.split(output), output)


async def test_all_output_items_in_one_response_are_stored_as_by_an_append(ledger: Ledger) -> None:
    output = [item_of(kind) for kind in ITEMS]
    await require_equal(ledger, "openai-responses", split_responses.split(output), output)


@pytest.mark.parametrize("kind", BLOCKS)
async def test_a_block_is_stored_as_by_an_append(ledger: Ledger, kind: str) -> None:
    message = {"type": "message", "role": "assistant", "content": [example(BLOCKS[kind], kind)]}
    await require_equal(ledger, "anthropic", split_anthropic.split(message), [message])


async def test_all_blocks_in_one_message_are_stored_as_by_an_append(ledger: Ledger) -> None:
    message = {"role": "assistant", "content": [example(block, kind) for kind, block in BLOCKS.items()]}
    await require_equal(ledger, "anthropic", split_anthropic.split(message), [message])


@pytest.mark.parametrize("message", [MESSAGE, THINKING, LEGACY], ids=["plain", "thinking", "legacy"])
async def test_a_chat_message_is_stored_as_by_an_append(ledger: Ledger, message: Object) -> None:
    await require_equal(ledger, "openai-chat", split_chat.split(message), [message])


@QUICKLY
@given(streams)
async def test_any_stream_is_stored_as_an_append_of_what_it_gives(ledger: Ledger, drawn: Any) -> None:
    """`test_properties` shows that the payload of a stream is the provider's whole response."""
    name, _, events = drawn
    payload = fed(name, events).payload()
    assume(not payload or payload[0].get("type") not in RESULTS)  # a draft begins with a message of the assistant
    await require_equal(ledger, name, events, payload)


# --- A response of several messages -----------------------------------------------------------------------------------


def said(id_: str, text: str) -> Object:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": id_, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


CALL = {"id": "fc", "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
SEARCH = {"id": "ws", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
THREE = [said("m1", "One."), SEARCH, said("m2", "Two."), said("m3", "Three."), CALL]


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("streamed")
    await ledger.messages.append("streamed", [user("?")])
    return ledger


async def stored(ledger: Ledger) -> list[ChatMessage]:
    """The messages behind the question."""
    return list((await ledger.messages.history("streamed")).messages[1:])


def metadata(message: ChatMessage) -> dict[str, Any]:
    return message.response_metadata or {}


async def test_a_response_of_several_messages_is_as_many_rows(asked: Ledger) -> None:
    draft = await feed(asked, "openai-responses", split_responses.split(THREE), run_id="r")
    messages = await stored(asked)
    assert [message.text for message in messages] == ["One.", "Two.", "Three."]
    assert {message.run_id for message in messages} == {"r"}
    assert list(draft.messages) == messages
    assert draft.message == messages[0]
    answer = ChatMessage(role="tool", tool_call_id="c", content="done")
    await asked.messages.append("streamed", [answer], run_id="r")
    history = (await asked.messages.history("streamed")).encode("openai-responses")
    assert history.payload[1:-1] == THREE


async def test_a_retry_finds_all_messages_of_the_response(asked: Ledger) -> None:
    first = await feed(asked, "openai-responses", split_responses.split(THREE), idempotency_key="k")
    await asked.messages.append("streamed", [ChatMessage(role="tool", tool_call_id="c", content="done")])
    again = await feed(asked, "openai-responses", split_responses.split(THREE), idempotency_key="k")
    assert again.replayed
    assert list(again.messages) == list(first.messages)
    assert len(await stored(asked)) == 4


async def test_a_finish_whose_answer_was_lost_finds_what_it_stored(asked: Ledger) -> None:
    draft = asked.messages.stream("streamed", format="openai-responses", pace=Pace(interval=3_600, lease=7_200))
    async with draft:
        for event in split_responses.split(THREE):
            await draft.feed(event)
        await draft._write(draft._final("complete", {}))
        draft._held = draft._before = None  # the answer was lost, so the write is tried again
    assert list(draft.messages) == await stored(asked)
    assert len(draft.messages) == 3


async def test_a_finish_does_not_take_another_message_for_its_own(asked: Ledger) -> None:
    draft = asked.messages.stream(
        "streamed",
        format="openai-responses",
        message=ChatMessage.assistant(message_id="m"),
        pace=Pace(interval=3_600, lease=7_200),
    )
    with pytest.raises(DraftLost):
        async with draft:
            for event in split_responses.split(THREE):
                await draft.feed(event)
            own = ChatMessage(role="assistant", message_id="m", content="Other.")
            await asked.messages.append("streamed", [own])
    assert [message.text for message in await stored(asked)] == ["Other."]


async def test_messages_that_the_rules_refuse_are_kept_as_interrupted(asked: Ledger) -> None:
    orphan = {"type": "function_call_output", "call_id": "of nobody", "output": "x"}
    with pytest.raises(RuleViolation) as raised:
        await feed(asked, "openai-responses", split_responses.split([said("m", "One."), orphan]))
    assert (raised.value.rule, raised.value.index) == ("R6", 1)
    messages = await stored(asked)
    assert [(message.role, message.state) for message in messages] == [
        ("assistant", "complete"),
        ("tool", "interrupted"),
    ]
    assert [violation.rule for violation in messages[1].violations] == ["R6"]


# --- A stream that ends early -----------------------------------------------------------------------------------------

STREAMS = {
    "anthropic": split_anthropic.split(
        {"role": "assistant", "content": [example(block, kind) for kind, block in BLOCKS.items()]}
    ),
    "openai-responses": split_responses.split(THREE),
    "openai-chat": split_chat.split(MESSAGE),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_that_is_cut_leaves_its_beginning(ledger: Ledger, name: str) -> None:
    for end in range(len(STREAMS[name]) + 1):
        await _require_beginning(ledger.tenant(f"cut {end}"), name, end)


async def _require_beginning(ledger: Ledger, name: str, end: int) -> None:
    await ledger.threads.create("streamed")
    await ledger.messages.append("streamed", [user("?")])
    async with ledger.messages.stream("streamed", format=name, pace=Pace(interval=3_600, lease=7_200)) as draft:
        for event in STREAMS[name][:end]:
            await draft.feed(event)
        await draft.interrupt()
    own = [message for message in await stored(ledger) if message.role == "assistant"]
    assert list(draft.messages) == own, end
    assert [message.state for message in own] == ["complete"] * (len(own) - 1) + ["interrupted"]
    begun, whole = [
        get_codec(name).decode(fed(name, events).payload()).messages for events in (STREAMS[name][:end], STREAMS[name])
    ]
    assert [message.content for message in own] == ([message.content for message in begun] or [None]), end
    assert all(one.text.startswith(message.text) for one, message in zip(whole, own, strict=False)), end
    await ledger.messages.append("streamed", [user("Go on.")])


FAILURES: dict[str, tuple[Object, str]] = {
    "anthropic": ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
    "openai-chat": ({"error": {"message": "Overloaded"}}, "Overloaded"),
    "openai-responses": (
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "Overloaded"}}},
        "Overloaded",
    ),
}
BEGINNINGS = {
    "anthropic": split_anthropic.split({"role": "assistant", "content": [{"type": "text", "text": "Sun"}]})[:-2],
    "openai-chat": split_chat.split({"role": "assistant", "content": "Sun"})[:-2],
    "openai-responses": split_responses.split([said("m", "Sun")])[:-1],
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_stream_that_fails_is_interrupted_and_says_why(asked: Ledger, name: str) -> None:
    event, reason = FAILURES[name]
    draft = await feed(asked, name, [*BEGINNINGS[name], event])
    (message,) = await stored(asked)
    assert reason in draft.failure
    assert (message.state, message.text) == ("interrupted", "Sun")
    assert message.response_metadata == {"failure": draft.failure}
    await asked.messages.append("streamed", [user("Go on.")])


async def test_an_incomplete_response_is_interrupted_and_says_why(asked: Ledger) -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": None}
    event = {"type": "response.incomplete", "response": response}
    draft = await feed(asked, "openai-responses", [*BEGINNINGS["openai-responses"], event])
    (message,) = await stored(asked)
    assert (message.state, message.text) == ("interrupted", "Sun")
    assert "max_output_tokens" in metadata(message)["failure"]
    assert draft.finish_reason == "incomplete"


@pytest.mark.parametrize("name", BEGINNINGS)
async def test_an_event_that_is_not_understood_is_kept_with_the_message(asked: Ledger, name: str) -> None:
    event = {"type": "of_tomorrow", "choices": 1, "value": [1]}
    draft = await feed(asked, name, [*BEGINNINGS[name][:2], event, *BEGINNINGS[name][2:]])
    (message,) = await stored(asked)
    assert (message.text, message.state) == ("Sun", "complete")
    assert draft.unknown == [event]
    assert metadata(message)["unknown_events"] == [event]


HUGE = {"type": "of_tomorrow", "value": "x" * 2_000}
ITEM = {**SEARCH, "action": {"type": "search", "query": "x" * 2_000}}


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("anthropic", HUGE),
        ("openai-chat", split_chat.chunk(content="x" * 2_000)),
        ("openai-responses", {"type": "response.output_item.done", "output_index": 1, "item": ITEM}),
    ],
)
async def test_an_event_beyond_the_limit_is_refused_and_adds_nothing(
    database: Database, name: str, event: Object
) -> None:
    async with database.open(limits=Limits(bytes=1_500)) as ledger:
        await ledger.threads.create("streamed")
        await ledger.messages.append("streamed", [user("?")])
        async with ledger.messages.stream("streamed", format=name) as draft:
            for before in BEGINNINGS[name]:
                await draft.feed(before)
            with pytest.raises(LimitExceeded):
                await draft.feed(event)
        (message,) = await stored(ledger)
        assert (message.text, message.state) == ("Sun", "complete")
        assert "x" * 2_000 not in message.model_dump_json()


async def test_values_repeated_at_the_end_count_once_for_the_limit(database: Database) -> None:
    async with database.open(limits=Limits(bytes=1_500)) as ledger:
        await ledger.threads.create("streamed")
        await ledger.messages.append("streamed", [user("?")])
        await feed(ledger, "openai-responses", split_responses.split([said("m", "x" * 600)]))
        (message,) = await stored(ledger)
        assert (message.text, message.state) == ("x" * 600, "complete")


NAMELESS = {
    "anthropic": [
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "c", "name": "", "input": {}},
        }
    ],
    "openai-chat": [split_chat.chunk(tool_calls=[{"index": 0, "id": "c", "function": {"arguments": "{}"}}])],
    "openai-responses": [{"type": "response.output_item.done", "output_index": 1, "item": {**CALL, "name": ""}}],
}


@pytest.mark.parametrize("name", NAMELESS)
async def test_a_call_without_a_name_is_put_aside_and_costs_nothing_else(asked: Ledger, name: str) -> None:
    draft = await feed(asked, name, [*BEGINNINGS[name], *NAMELESS[name]])
    (message,) = await stored(asked)
    assert (message.text, message.tool_calls, message.state) == ("Sun", None, "complete")
    assert len(draft.unknown) == 1


LATE: list[tuple[str, list[Object]]] = [
    ("openai-chat", [split_chat.chunk(function_call={"arguments": ""})]),
    ("openai-chat", [split_chat.chunk(tool_calls=[{"id": "c", "function": {"arguments": "{"}}])]),
    ("openai-responses", [{"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": "{}"}]),
    ("openai-responses", [{"type": "of_tomorrow", "value": 10**5_000}]),
    ("anthropic", [{"type": "of_tomorrow", "value": {1, 2}}]),
    (
        "anthropic",
        [
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "server_tool_use", "id": "s", "name": "f", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"a":' * 600},
            },
            {"type": "content_block_stop", "index": 1},
        ],
    ),
    (
        "openai-responses",
        [
            {
                "type": "response.output_item.added",
                "output_index": 1,
                "item": {"type": "shell_call_output", "id": "s", "call_id": "c", "output": []},
            },
            {
                "type": "response.shell_call_output_content.done",
                "output_index": 1,
                "command_index": 0,
                "output": ["x"],
            },
            {
                "type": "response.shell_call_output_content.delta",
                "output_index": 1,
                "command_index": 0,
                "delta": {"stdout": "y"},
            },
        ],
    ),
]


@pytest.mark.parametrize(("name", "events"), LATE, ids=range(len(LATE)))
async def test_events_that_fit_nowhere_cost_nothing(asked: Ledger, name: str, events: list[Object]) -> None:
    draft = asked.messages.stream("streamed", format=name, pace=Pace(interval=0))
    async with draft:
        for event in [*BEGINNINGS[name], *events]:
            await draft.feed(event)
    message = (await stored(asked))[0]
    assert (message.text, message.state) == ("Sun", "complete")


async def test_other_choices_take_nothing_from_the_writes_on_the_way(asked: Ledger) -> None:
    choices = [{"index": index, "delta": {"content": text}} for index, text in enumerate(["mine", "other"])]
    async with asked.messages.stream("streamed", format="openai-chat", pace=Pace(interval=3_600, lease=7_200)) as draft:
        await draft.feed({"choices": choices})
        await draft.flush()
        assert draft.message.text == "mine"


async def test_the_name_of_the_response_is_stored_unless_the_draft_has_one(asked: Ledger) -> None:
    events = [split_chat.chunk(role="assistant", name="bob", content="x")]
    assert (await feed(asked, "openai-chat", events)).message.name == "bob"
    async with asked.messages.stream(
        "streamed", format="openai-chat", message=ChatMessage.assistant(name="ann")
    ) as draft:
        for event in events:
            await draft.feed(event)
    assert draft.message.name == "ann"


async def test_an_interruption_answers_the_calls_of_the_whole_response(asked: Ledger) -> None:
    other, result = (
        {**CALL, "id": "fd", "call_id": "d"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    )
    async with asked.messages.stream(
        "streamed", format="openai-responses", pace=Pace(interval=3_600, lease=7_200)
    ) as draft:
        for event in split_responses.split([CALL, other, result, said("m", "On it.")])[:-1]:
            await draft.feed(event)
        await draft.interrupt()
    await asked.messages.append("streamed", [user("Go on.")])
    assert [one.tool_call_id for one in await stored(asked) if one.state == "synthetic"] == ["d"]


async def test_a_first_attempt_before_a_restart_is_not_stored(asked: Ledger) -> None:
    begin = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    await feed(asked, "anthropic", [*BEGINNINGS["anthropic"], begin])
    assert [message.text for message in await stored(asked)] == [""]


# --- Usage ------------------------------------------------------------------------------------------------------------

USAGES = {
    "anthropic": (
        {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "service_tier": "standard"},
        Usage(input_tokens=3, output_tokens=5, details={"cache_read_input_tokens": 7}),
    ),
    "openai-chat": (
        {
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "total_tokens": 8,
            "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": None},
        },
        Usage(
            input_tokens=3, output_tokens=5, total_tokens=8, details={"completion_tokens_details.reasoning_tokens": 2}
        ),
    ),
    "openai-responses": (
        {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "total_tokens": 8},
        Usage(input_tokens=3, output_tokens=5, total_tokens=8, details={"input_tokens_details.cached_tokens": 0}),
    ),
}
ENDS: dict[str, Any] = {
    "anthropic": lambda usage: [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ],
    "openai-chat": lambda usage: [split_chat.chunk("stop"), {"choices": [], "usage": usage}],
    "openai-responses": lambda usage: [
        {"type": "response.completed", "response": {"status": "completed", "output": None, "usage": usage}}
    ],
}
REASONS = {"anthropic": "end_turn", "openai-chat": "stop", "openai-responses": "completed"}


@pytest.mark.parametrize("name", USAGES)
async def test_a_run_is_finished_with_the_usage_of_its_draft(asked: Ledger, name: str) -> None:
    usage, expected = USAGES[name]
    draft = await feed(asked, name, [*BEGINNINGS[name], *ENDS[name](usage)], run_id="r")
    assert (draft.usage, draft.finish_reason) == (expected, REASONS[name])
    await asked.runs.finish("r", status="completed", usage=draft.usage)
    assert (await asked.runs.get("r")).usage == expected
