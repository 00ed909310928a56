from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, Feedback, Ledger, Payload
from chatledger.models.json import same_json
from chatledger.transfer.envelope import KEY, Envelope, Location, from_metadata, pack, take_out, to_metadata
from chatledger.transfer.export import Index, export_thread, keep_scored, mean_scores, read_index
from chatledger.transfer.record_writer import RecordWriter, json_text
from tests.transfer.files import array, bring, exported, lines, record_scores, talk

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def test_records_come_back_in_order_with_the_order_of_their_keys(ledger: Ledger) -> None:
    records = [
        {"z": {"deep": [1, {"b": None}]}, "talk": {"x": 1, "turns": talk("a", "b"), "y": 2}, "a": -0.0},
        {"talk": {"turns": []}},
        {"talk": {"turns": talk("é\u0000\ud800")}, "": "", "emoji": "🥞"},
    ]
    await bring(ledger, array(*records), field="talk.turns")
    assert same_json(await exported(ledger), records)


async def test_messages_come_back_whatever_keys_they_have(ledger: Ledger) -> None:
    messages = [
        {"content": "keys in another order", "role": "user", "unknown": {"b": 1, "a": [1e400, 10**30]}},
        {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "d"}], "audio": None},
        {"role": "tool", "tool_call_id": "d", "content": [{"type": "text", "text": "x"}], "name": "f"},
        {"role": "alien", "content": ""},
    ]
    await bring(ledger, lines(messages))
    assert same_json(await exported(ledger), [messages])


async def test_numbers_come_back_as_python_writes_them(ledger: Ledger) -> None:
    numbers = b"[NaN, Infinity, -Infinity, 1e400, 1000000000000000000000000000000, -0.0, 1e2, 1]"
    await bring(ledger, b'{"n": %s, "messages": [{"role": "user", "content": "x", "n": %s}]}\n' % (numbers, numbers))
    [record] = await exported(ledger)
    read_by_python = "[nan, inf, -inf, inf, 1000000000000000000000000000000, -0.0, 100.0, 1]"
    assert (repr(record["n"]), repr(record["messages"][0]["n"])) == (read_by_python, read_by_python)


async def test_files_come_back_one_after_the_other(ledger: Ledger) -> None:
    await bring(ledger, lines(*({"n": n, "messages": []} for n in (3, 1, 2))), id_field="n")
    await bring(ledger, lines(*({"n": n, "messages": []} for n in (9, 2, 8))), id_field="n")
    assert [record["n"] for record in await exported(ledger)] == [3, 1, 2, 9, 8]


async def test_own_key_of_a_record_is_kept(ledger: Ledger) -> None:
    record: dict[str, Any] = {"a": 1, KEY: None, "messages": [], "b": 2}
    await bring(ledger, lines(record))
    assert same_json(await exported(ledger), [record])


async def test_thread_that_was_not_imported_is_a_record_of_our_own(ledger: Ledger) -> None:
    thread = await ledger.user("ada").threads.create("t", title="Trip", metadata={"k": 1})
    await ledger.messages.append("t", [ChatMessage(role="user", content="hi")])
    await bring(ledger, array({"messages": talk("a")}))
    assert await exported(ledger) == [
        {"messages": talk("a")},
        {
            "thread_id": "t",
            "title": "Trip",
            "user_id": "ada",
            "created_at": thread.created_at.isoformat(),
            "metadata": {"k": 1},
            "messages": [{"role": "user", "content": "hi"}],
        },
    ]


async def test_export_of_one_thread(ledger: Ledger) -> None:
    await ledger.threads.create("live")
    await ledger.messages.append("live", [ChatMessage(role="user", content="hi")])
    await bring(ledger, lines({"id": "in", "messages": talk("a")}), thread_field="id")
    assert (await export_thread(ledger, "live")).value == talk("hi")
    assert (await export_thread(ledger, "in")).value == {"id": "in", "messages": talk("a")}
    assert (await export_thread(ledger, "in", format="openai-chat")).value == talk("a")


async def test_messages_added_since_the_import_are_exported(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": "in", "messages": talk("a", "b")}), thread_field="id")
    await ledger.messages.append("in", Payload(talk("c"), "openai-chat"))
    assert await exported(ledger) == [{"id": "in", "messages": talk("a", "b", "c")}]


async def test_losses_are_told(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [ChatMessage(role="assistant", content="x", reasoning="hm")])
    assert (await export_thread(ledger, "t")).losses


async def test_container_is_an_array_only_if_all_came_in_arrays(ledger: Ledger) -> None:
    assert not (await read_index(ledger)).arrays
    await bring(ledger, array({"messages": talk("a")}))
    assert (await read_index(ledger)).arrays
    await bring(ledger, lines({"messages": talk("b")}), source="another")
    assert not (await read_index(ledger)).arrays


async def test_the_latest_score_of_each_user_counts_and_their_mean_decides(ledger: Ledger) -> None:
    await record_scores(ledger, "t", 1, 5)
    await record_scores(ledger, "t", 4, 2, user_id="ada")
    await record_scores(ledger, "t", 1, key="other")
    await ledger.runs.start("t", run_id="second")
    await ledger.feedback.record(Feedback(run_id="second", key="stars", score=2))
    assert await mean_scores(ledger, "t", ["stars", "none"]) == {"stars": 3.0}


async def test_threads_are_chosen_by_every_minimum(ledger: Ledger) -> None:
    for thread, stars, safe in (("a", 4, 1), ("b", 5, 0), ("c", 3, 1)):
        await record_scores(ledger, thread, stars)
        await record_scores(ledger, thread, safe, key="safe")
    await record_scores(ledger, "unscored")
    threads = ["c", "unscored", "b", "a"]
    for minima, kept in (({"stars": 4}, ["b", "a"]), ({"stars": 4, "safe": 1}, ["a"]), ({}, threads)):
        index = Index(threads)
        await keep_scored(ledger, index, minima)
        assert index.thread_ids == kept


def written(container: Any, *records: Any) -> str:
    pieces: list[str] = []
    writer = RecordWriter(pieces.append, container)
    for record in records:
        writer.add(record)
    writer.close()
    return "".join(pieces)


def test_containers_as_text() -> None:
    assert written("lines", {"a": "é"}, []) == '{"a": "é"}\n[]\n'
    assert written("array", {"a": 1}, []) == '[\n{"a": 1},\n[]\n]\n'
    assert (written("lines"), written("array")) == ("", "[]\n")


def test_text_that_utf8_does_not_have_is_escaped() -> None:
    assert json_text("é\ud800") == '"\\u00e9\\ud800"'


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
keys = st.sampled_from(["messages", "a", "b.c", "", KEY])


@settings(max_examples=150)
@given(
    st.lists(st.tuples(keys, json_values), unique_by=lambda item: item[0]),
    st.sampled_from([1, 2, 3]),
    st.integers(0, 4),
)
def test_any_record_can_be_put_together_again(items: list[tuple[str, Any]], depth: int, place: int) -> None:
    path = ["x"] * (depth - 1) + ["messages"]
    others = [(key, value) for key, value in items if key != "messages"]
    record: Any = dict([*others[:place], ("messages", [1, 2]), *others[place:]])
    for _ in range(depth - 1):
        record = {"before": 1, "x": record, "after": 2}
    parcel = take_out(record, Location(path[:-1], path[-1:]))
    envelope = Envelope("openai-chat", "lines", "f", "2025", 0, parcel.path, parcel.keys)
    found = from_metadata(to_metadata(parcel.rest, envelope))
    assert found is not None
    assert same_json(pack(parcel.payload, *found), record)
