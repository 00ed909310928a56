"""Each shape of records: what it takes out, that it gives back what came in, and what it says of others' messages."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, Ledger, ToolCall
from chatledger.errors import DecodeError, UnknownFormat
from chatledger.formats import get_codec
from chatledger.models.json import same_json
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.transfer.envelope import from_metadata, pack, take_out
from chatledger.transfer.shapes import BranchMessages, get_shape, recognise_record, shape_names
from tests.formats.openai_chat.strategies import messages as openai_messages
from tests.transfer.files import array, bring, exported, lines, talk

OWN = ("sharegpt", "oasst", "swe-agent")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def again(name: str, record: Any) -> Any:
    """The record, taken apart and put together."""
    shape = get_shape(name)
    parcel = take_out(record, shape.locate(record, None))
    read = shape.decode(parcel.payload, "lenient")
    written = shape.encode(read.branches, alone=parcel.single)
    assert written.losses == []
    return pack(written.payload, parcel.rest, parcel)


def decoded(name: str, record: Any) -> list[BranchMessages]:
    shape = get_shape(name)
    return shape.decode(take_out(record, shape.locate(record, None)).payload, "strict").branches


def turn(speaker: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"from": speaker, "value": value, **more}


# --- ShareGPT ---------------------------------------------------------------------------------------------------------


def test_sharegpt_calls_and_observations_become_calls_and_results() -> None:
    call = turn("function_call", '{"name": "f", "arguments": {"b": 1, "a": 2}}')
    two = turn("function_call", '[{"name": "g", "arguments": {}}, {"name": "h", "arguments": "x"}]')
    record = {"conversations": [turn("human", "?"), call, turn("observation", "!"), two, turn("gpt", "so")]}
    [branch] = decoded("sharegpt", record)
    assert [message.role for message in branch.messages] == ["user", "assistant", "tool", "assistant", "assistant"]
    assert branch.messages[1].tool_calls == [ToolCall(name="f", arguments={"b": 1, "a": 2})]
    assert branch.messages[1].content is None
    assert [call.arguments for call in branch.messages[3].tool_calls or ()] == [{}, "x"]


def test_sharegpt_system_of_the_record_comes_first_and_tools_stay_with_the_rest() -> None:
    record = {"system": "Be kind.", "conversations": [turn("human", "hi")], "tools": "[]", "id": 4}
    shape = get_shape("sharegpt")
    parcel = take_out(record, shape.locate(record, None))
    assert parcel.rest == {"tools": "[]", "id": 4}
    [branch] = shape.decode(parcel.payload, "strict").branches
    assert [(message.role, message.content) for message in branch.messages] == [("system", "Be kind."), ("user", "hi")]


@pytest.mark.parametrize("value", ["not JSON", '{"name": ""}', "[]", "3", '{"arguments": {}}', None])
def test_sharegpt_call_that_is_none_is_refused_or_kept_as_text(value: Any) -> None:
    record = {"conversations": [turn("function_call", value)]}
    with pytest.raises(DecodeError, match=r"conversations\[0\].value"):
        decoded("sharegpt", record)
    assert same_json(again("sharegpt", record), record)


values = st.text(max_size=8) | st.none()
calls = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=3), "arguments": st.dictionaries(values.filter(bool), values)}
)
call_texts = st.builds(json.dumps, calls | st.lists(calls, max_size=2), indent=st.sampled_from([None, 1]))
turns = st.builds(
    lambda speaker, value, more, last: dict([*more.items(), ("value", value), ("from", speaker)][:: -1 if last else 1]),
    st.sampled_from(["human", "gpt", "observation", "function_call", "system", "user", "tool", "alien"]),
    values | call_texts,
    st.dictionaries(st.sampled_from(["loss", "weight", ""]), values),
    st.booleans(),
)


@settings(max_examples=100)
@given(st.lists(turns, max_size=5), st.permutations(["conversations", "system", "tools", "id"]), values)
def test_sharegpt_records_come_back(said: list[Any], keys: list[str], system: Any) -> None:
    record = {key: {"conversations": said, "system": system}.get(key, "[]") for key in keys}
    assert same_json(again("sharegpt", record), record)


# --- Message trees ----------------------------------------------------------------------------------------------------

roles = st.sampled_from(["prompter", "assistant", "alien"])
more_keys = st.dictionaries(st.sampled_from(["rank", "lang", "message_id", "deleted"]), values | st.integers())


def node(replies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    # With its replies, without any, or with no list for them; keys in either order.
    def build(text: str, role: str, more: dict[str, Any], inner: list[Any], shape: int) -> dict[str, Any]:
        own = {"text": text, "role": role, **more}
        return [{**own, "replies": inner}, {"replies": inner, **own}, own][shape]

    return st.builds(build, st.text(max_size=5), roles, more_keys, replies, st.integers(0, 2))


trees = st.recursive(node(st.just([])), lambda inner: node(st.lists(inner, max_size=3)), max_leaves=8)


@settings(max_examples=100)
@given(trees, st.dictionaries(st.sampled_from(["message_tree_id", "x"]), values))
def test_trees_come_back(root: dict[str, Any], rest: dict[str, Any]) -> None:
    record = {**rest, "prompt": root, "tree_state": 1}
    assert same_json(again("oasst", record), record)


def said(text: str, *replies: Any, role: str = "prompter") -> dict[str, Any]:
    return {"message_id": text, "text": text, "role": role, "replies": list(replies)}


TREE = said("a", said("b", said("c", said("d"), said("e")), said("f")), said("g", said("h")), said("i"))


def test_branches_of_a_tree_are_numbered_depth_first() -> None:
    found = [
        (branch.parent, branch.at, "".join(one.text for one in branch.messages))
        for branch in decoded("oasst", {"prompt": TREE})
    ]
    assert found == [
        (0, 0, "abcd"),
        (0, 1, "gh"),
        (0, 1, "i"),
        (0, 2, "f"),
        (0, 3, "e"),
    ]


async def test_tree_is_stored_as_branches_and_its_messages_once(ledger: Ledger) -> None:
    record = {"message_tree_id": "t", "prompt": TREE, "n": 1}
    report = await bring(ledger, lines(record), format="auto", thread_field="message_tree_id")
    assert (report.messages, report.failures) == (9, [])
    branches = await ledger.branches.list("t")
    assert [(one.forked_from, one.forked_at, one.active) for one in branches] == [
        (None, None, True),
        (0, 1, False),
        (0, 1, False),
        (0, 2, False),
        (0, 3, False),
    ]
    second = await ledger.messages.history("t", branch=1)
    assert "".join(message.text for message in second) == "agh"
    assert same_json(await exported(ledger), [record])
    assert (await bring(ledger, lines(record), format="auto", thread_field="message_tree_id")).unchanged == 1


@pytest.mark.parametrize("below", [(), (0,), (0, 0, 0), (1, 0), (2,)])
async def test_tree_grows_anywhere(ledger: Ledger, below: tuple[int, ...]) -> None:
    grown = copy.deepcopy(TREE)
    node = grown
    for number in below:
        node = node["replies"][number]
    node["replies"].append(said("z", said("zz")))
    await bring(ledger, lines({"message_tree_id": "t", "prompt": TREE}), format="oasst")
    report = await bring(ledger, lines({"message_tree_id": "t", "prompt": grown}), format="oasst")
    assert (report.grown, report.messages, report.failures) == (1, 2, [])
    assert same_json(await exported(ledger), [{"message_tree_id": "t", "prompt": grown}])


async def test_tree_of_which_an_answer_was_popped_grows_it_again(ledger: Ledger) -> None:
    record = {"message_tree_id": "t", "prompt": TREE}
    await bring(ledger, lines(record), format="oasst", thread_field="message_tree_id")
    grown = copy.deepcopy(TREE)
    grown["replies"][0]["replies"][0]["replies"][0]["replies"] = [said("y"), said("z")]  # below the one that was popped
    for _ in range(2):
        popped = await ledger.messages.pop("t")
        assert popped is not None
        assert popped.text in ("d", "y")
        report = await bring(ledger, lines({**record, "prompt": grown}), format="oasst", thread_field="message_tree_id")
        assert (report.grown, report.failures) == (1, [])
    assert same_json(await exported(ledger), [{**record, "prompt": grown}])


async def test_tree_of_which_a_branch_was_rewound_keeps_the_others(ledger: Ledger) -> None:
    await bring(ledger, lines({"message_tree_id": "t", "prompt": TREE}), format="oasst", thread_field="message_tree_id")
    await rewind_to(scope_of(ledger), "t", 1, branch=0)
    [record] = await exported(ledger)
    left = said("a", said("g", said("h")), said("i"), said("b", said("f"), said("c", said("e"))))
    assert same_json(record["prompt"], left)


async def test_tree_of_which_an_answer_changed_is_left_alone(ledger: Ledger) -> None:
    for answer in (said("b"), {**said("b"), "text": "other"}):
        tree = {"message_tree_id": "t", "prompt": said("a", answer)}
        report = await bring(ledger, lines(tree), format="oasst")
    assert [type(failure.error).__name__ for failure in report.failures] == ["VersionConflict"]


async def test_dry_run_of_a_tree_writes_nothing(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"prompt": TREE}), format="auto", dry_run=True)
    assert (report.created, report.messages) == (1, 9)
    assert await exported(ledger) == []


async def test_answer_given_since_the_import_is_exported_in_its_place(ledger: Ledger) -> None:
    await bring(
        ledger, lines({"message_tree_id": "t", "prompt": said("a")}), thread_field="message_tree_id", format="oasst"
    )
    await ledger.messages.append("t", [ChatMessage(role="assistant", content="b", message_id="m")])
    [record] = await exported(ledger)
    assert record["prompt"]["replies"] == [{"message_id": "m", "text": "b", "role": "assistant", "replies": []}]


# --- Trajectories -----------------------------------------------------------------------------------------------------


def test_trajectory_results_answer_the_call_that_their_list_names() -> None:
    asks = {"role": "assistant", "content": "", "agent": "main", "tool_calls": [CALL]}
    answers = {"role": "tool", "content": "x", "agent": "main", "tool_call_ids": ["c"]}
    record = {"trajectory": [], "history": [*talk("go"), asks, answers], "info": {}}
    [branch] = decoded("swe-agent", record)
    assert [message.tool_call_id for message in branch.messages] == [None, None, "c"]
    assert {message.format for message in branch.messages} == {"swe-agent"}
    assert same_json(again("swe-agent", record), record)


ids = st.sampled_from([None, "c", ["c"], ["c", "d"], [], [None], "absent"])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), ids, ids, st.booleans()), max_size=4))
def test_trajectories_come_back(said: list[Any]) -> None:
    history = []
    for role, own, listed, first in said:
        keys = {"tool_call_ids": listed, "tool_call_id": own if isinstance(own, str) else None, "agent": "a"}
        given = {key: value for key, value in keys.items() if value != "absent"}
        base = {"role": role, "content": "x"}
        history.append({**given, **base} if first else {**base, **given})
    record = {"history": history, "trajectory": [{"state": {}}]}
    assert same_json(again("swe-agent", record), record)


# --- Recordings -------------------------------------------------------------------------------------------------------


def request(*texts: str, endpoint: str = "/v1/chat/completions") -> dict[str, Any]:
    return {"endpoint": endpoint, "request": {"model": "m", "messages": talk(*texts), "n": 1}, "response": None}


async def test_recording_is_a_thread_for_each_request(ledger: Ledger) -> None:
    recording = {"source": "s", "interactions": [request("a"), request("a", "b"), request("a")]}
    report = await bring(ledger, json.dumps(recording).encode(), format="auto")
    assert (report.created, report.messages) == (3, 4)
    assert report.read_as == {"in.json": {"openai-chat": 3}}
    assert same_json(await exported(ledger), recording["interactions"])
    again = await bring(ledger, json.dumps(recording).encode(), format="auto")
    assert (again.unchanged, again.messages) == (3, 0)


async def test_request_to_an_unknown_endpoint_is_reported_and_the_rest_goes_in(ledger: Ledger) -> None:
    other = request("a", endpoint="/v1/models/m:generateContent?key=x")
    content = json.dumps({"interactions": [other, request("a")]}, indent=1).encode()
    report = await bring(ledger, content, format="auto")
    assert [(failure.place, type(failure.error)) for failure in report.failures] == [
        ("record 0, interaction 0", UnknownFormat)
    ]
    assert report.created == 1


async def test_stop_on_error_stops_inside_a_recording(ledger: Ledger) -> None:
    requests = [request("a"), request("b", endpoint="/nowhere"), request("c")]
    report = await bring(ledger, json.dumps({"interactions": requests}).encode(), format="auto", stop_on_error=True)
    assert (report.stopped, report.created, report.failed) == (True, 1, 1)


async def test_recording_without_a_known_request_is_refused(ledger: Ledger) -> None:
    recording = {"interactions": [request("a", endpoint="/nowhere")] * 2}
    with pytest.raises(UnknownFormat, match=r"^in.json, record 0, interaction 0: a request to /nowhere"):
        await bring(ledger, json.dumps(recording, indent=1).encode(), format="auto")
    assert await exported(ledger) == []


# --- Bodies -----------------------------------------------------------------------------------------------------------

BODIES: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"model": "m", "messages": talk("a", "b"), "system": "s", "max_tokens": 9},
        {"system": [{"type": "text", "text": "s", "x": 1}], "n": None, "messages": talk("a")},
        {"messages": talk("a")},
        {"request": {"tools": [], "messages": talk("a"), "n": 1}, "endpoint": "/v1/messages", "response": None},
    ],
    "openai-responses": [
        {"model": "m", "input": "a", "store": False},
        {"input": talk("a"), "instructions": "i", "tools": []},
        {"instructions": None, "n": 1, "input": [{"type": "compaction", "encrypted_content": "x"}]},
        {"endpoint": "/v1/responses", "request": {"input": "a", "n": 1}, "response": {}},
    ],
}


@pytest.mark.parametrize(("name", "record"), [(name, body) for name, bodies in BODIES.items() for body in bodies])
async def test_bodies_come_back_and_their_settings_are_metadata(ledger: Ledger, name: str, record: Any) -> None:
    report = await bring(ledger, lines(record), format=name)
    assert report.failures == []
    assert same_json(await exported(ledger), [record])
    [thread] = await ledger.threads.list()
    found = from_metadata(thread.metadata)
    assert found is not None
    assert not {"messages", "input", "system", "instructions"} & {*found[0], *found[0].get("request", {})}


async def test_messages_of_a_body_alone_come_back_as_their_list(ledger: Ledger) -> None:
    record = {"chat": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}]}
    report = await bring(ledger, lines(record), format="auto", field="chat")
    assert report.read_as == {"in.json": {"anthropic": 1}}
    assert same_json(await exported(ledger), [record])


# --- auto -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"conversations": [turn("human", "a")]}, "sharegpt"),
        ([turn("human", "a")], "sharegpt"),
        ({"prompt": said("a")}, "oasst"),
        ({"history": talk("a"), "trajectory": []}, "swe-agent"),
        ({"traj": talk("a"), "reward": 1}, "openai-chat"),
        (talk("a"), "openai-chat"),
        (request("a"), "openai-chat"),
        ({"request": {"messages": talk("a")}, "response": {}}, "openai-chat"),
        ({"system": "s", "messages": talk("a"), "max_tokens": 9}, "anthropic"),
        (request("a", endpoint="/v1/messages?beta=true"), "anthropic"),
        ({"model": "m", "instructions": "i", "input": "a"}, "openai-responses"),
        ({"endpoint": "/v1/responses", "request": {"input": "a"}}, "openai-responses"),
        ({"messages": [{"role": "user", "content": [{"toolUse": {"name": "as Bedrock writes"}}]}]}, None),
        ({"events": [{"author": "user", "content": {"parts": [{"text": "a"}]}}]}, None),
        ({"uuid": "u", "message": {"role": "user", "content": "a"}}, None),
        ({"messages": []}, None),
        ({"prompt": {"text": "a"}}, None),
        ({}, None),
        (3, None),
        ("messages", None),
    ],
)
def test_records_are_recognised(record: Any, name: str | None) -> None:
    found = recognise_record(record)
    assert (found and found.name) == name


async def test_auto_goes_by_the_first_record(ledger: Ledger) -> None:
    report = await bring(ledger, array({"chat": talk("a")}, {"chat": talk("b")}, {"talk": 1}), format="auto")
    assert (report.created, [failure.place for failure in report.failures]) == (2, ["record 2"])
    assert report.read_as == {"in.json": {"openai-chat": 2}}


async def test_file_of_no_known_format_is_refused_before_anything_is_written(ledger: Ledger) -> None:
    with pytest.raises(UnknownFormat, match=r"^in.json, line 1: a record with 'a', 'b' matches no known format"):
        await bring(ledger, lines({"a": 1, "b": 2}, {"messages": talk("a")}), format="auto")
    assert await exported(ledger) == []


async def test_field_that_is_named_holds_openai_messages_unless_it_surely_holds_others(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"talk": {"turns": [turn("gpt", "a")]}}), format="auto", field="talk.turns")
    assert report.read_as == {"in.json": {"sharegpt": 1}}
    report = await bring(ledger, lines({"talk": {"turns": []}}), format="auto", field="talk.turns")
    assert report.read_as == {"in.json": {"openai-chat": 1}}


async def test_unknown_name_is_refused_with_the_names_there_are(ledger: Ledger) -> None:
    with pytest.raises(UnknownFormat) as caught:
        await bring(ledger, b"", format="fax")
    assert all(name in str(caught.value) for name in shape_names())


@settings(max_examples=50)
@given(st.lists(openai_messages, max_size=4), st.sampled_from(OWN), st.booleans())
def test_messages_of_another_format_can_be_written(payload: list[Any], name: str, carry: bool) -> None:
    messages = get_codec("openai-chat").decode(payload, rules="lenient").messages
    json.dumps(get_shape(name).encode([BranchMessages(messages)], carry=carry).payload)


def test_values_that_no_turn_can_hold_are_losses() -> None:
    message = ChatMessage(role="assistant", content="a", reasoning="r", seq=3, tool_calls=[ToolCall(id="c", name="f")])
    encoded = get_shape("sharegpt").encode([BranchMessages([message])])
    assert encoded.payload == [turn("gpt", "a"), turn("function_call", '{"name": "f", "arguments": null}')]
    assert [(loss.code, loss.seq, loss.path) for loss in encoded.losses] == [
        ("split", 3, ""),
        ("reasoning", 3, "reasoning"),
        ("call-id", 3, "tool_calls[0].id"),
    ]


async def test_import_under_another_id_is_noticed(ledger: Ledger) -> None:
    content = lines({"id": 7, "messages": talk("a")}, {"id": 8, "messages": talk("b")})
    assert (await bring(ledger, content)).twins == {}
    report = await bring(ledger, content, id_field="id")
    [(file, twin)] = report.twins.items()
    assert (file, (await ledger.messages.history(twin)).messages[0].text) == ("in.json", "a")
    assert (await bring(ledger, content, id_field="id")).twins == {}
