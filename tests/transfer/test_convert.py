"""What a conversion writes is read again: by the name of its format, and by detection."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger, Payload
from chatledger.errors import NothingToSend
from chatledger.formats import format_names
from chatledger.models.json import same_json
from chatledger.transfer.convert import Conversion, Converted, convert_file
from chatledger.transfer.export import export_all, export_conversations, read_index
from chatledger.transfer.record_writer import RecordWriter
from chatledger.transfer.report import FailedRecord
from chatledger.types import Loss
from tests.transfer.files import array, bring, lines, talk

SAMPLES = sorted(path for path in (Path(__file__).parents[2] / "samples").iterdir() if path.suffix != ".md")


def convert(content: bytes, source: str, target: str) -> tuple[bytes, list[Converted], list[FailedRecord]]:
    """(the file that is written, its records, the failures)"""
    done = list(convert_file(io.BytesIO(content), Conversion(source, target), file="in"))
    records = [one for one in done if isinstance(one, Converted)]
    written: list[str] = []
    if records:
        writer = RecordWriter(written.append, "array" if records[0].container == "array" else "lines")
        for record in records:
            writer.add(record.value)
        writer.close()
    return "".join(written).encode(), records, [one for one in done if isinstance(one, FailedRecord)]


def assert_read_again(content: bytes, target: str) -> None:
    written, records, failures = convert(content, "auto", target)
    assert failures == []
    for source in ("auto", target):
        again, more, failures = convert(written, source, target)
        assert (failures, len(more)) == ([], len(records)), source
        assert again.decode() == written.decode(), source


@pytest.mark.parametrize("target", format_names())
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_in_every_format_is_read_again(sample: Path, target: str) -> None:
    assert_read_again(sample.read_bytes(), target)


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "1"}
CALLED = [*talk("a"), {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT, *talk("b")]
TOLD = [{"role": "system", "content": "Be brief."}, *talk("a", "b")]
CALLED_FIRST = [{"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]
SEEN = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/i"}}]}, *talk("c")]
CONVERSATIONS = [talk("a"), CALLED, TOLD, CALLED_FIRST, SEEN, talk("b", "c")]


@pytest.mark.parametrize("target", format_names())
@pytest.mark.parametrize("first", range(len(CONVERSATIONS)))
def test_records_of_every_kind_are_read_again_whichever_is_the_first(target: str, first: int) -> None:
    said = [*CONVERSATIONS[first:], *CONVERSATIONS[:first]]
    bodies = [{"id": n, "messages": messages, "note": "x"} for n, messages in enumerate(said)]
    for content in (lines(*bodies), array(*bodies), lines(*said), array(*said)):
        assert_read_again(content, target)


@pytest.mark.parametrize("target", format_names())
async def test_what_is_written_can_be_imported(ledger: Ledger, target: str) -> None:
    bodies = [{"id": n, "messages": messages} for n, messages in enumerate(CONVERSATIONS)]
    written, _, _ = convert(lines(*bodies), "auto", target)
    report = await bring(ledger, written, format="auto", id_field="id")
    assert (report.failures, report.created) == ([], len(bodies))
    threads = [await ledger.threads.get(one) for one in (await read_index(ledger)).thread_ids]
    assert [(thread.metadata or {})["id"] for thread in threads] == [*range(len(bodies))]


TOOLS: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}


async def test_a_plain_record_is_read_in_the_format_of_earlier_records(ledger: Ledger) -> None:
    plain, telling = {"id": 1, "messages": talk("a")}, {"id": 2, "messages": [*talk("a"), TOOLS]}
    other = {"id": 3, "messages": CALLED}
    report = await bring(ledger, lines(plain, telling, {**plain, "id": 4}, other), format="auto", id_field="id")
    assert report.failures == []
    assert report.read_as == {"in.json": {"openai-chat": 2, "anthropic": 2}}
    grown = {"id": 4, "messages": [*talk("a"), TOOLS]}
    report = await bring(ledger, lines(telling, grown), format="auto", id_field="id")
    assert (report.unchanged, report.grown) == (1, 1)


def read(record: Any, target: str, source: str = "auto") -> Converted:
    [converted] = convert(lines(record), source, target)[1]
    return converted


def test_items_of_responses_stand_under_input() -> None:
    record = {"id": 1, "messages": CALLED, "note": "x"}
    converted = read(record, "openai-responses").value
    assert list(converted) == ["id", "note", "input"]
    assert [item.get("type", "message") for item in converted["input"]] == [
        *("message", "function_call", "function_call_output", "message"),
    ]
    back = read(converted, "openai-chat", "openai-responses")
    assert (list(back.value), back.read_as) == (["id", "note", "messages"], "openai-responses")
    assert [message["role"] for message in back.value["messages"]] == [message["role"] for message in CALLED]


def test_a_key_that_would_be_read_as_the_conversation_is_replaced_and_told() -> None:
    record = {"input": "a question", "system": "a label", "messages": talk("a")}
    converted = read(record, "openai-responses", "openai-chat")
    assert converted.value == {"system": "a label", "input": [{"role": "user", "content": "a"}]}
    assert converted.losses == [Loss("replaced-key", None, "input")]
    converted = read(record, "anthropic", "openai-chat")
    assert converted.value == {"input": "a question", "messages": talk("a")}
    assert converted.losses == [Loss("replaced-key", None, "system")]


def test_a_recorded_request_in_another_format_is_kept_beside_the_conversation() -> None:
    request = {"endpoint": "/v1/chat/completions", "request": {"model": "m", "messages": talk("a")}, "response": {}}
    for target in format_names():
        converted = read(request, target)
        if target == "openai-chat":
            assert converted.value == request
            continue
        around = {**request, "request": {"model": "m"}}
        assert (next(iter(converted.value)), converted.value["interaction"]) == ("interaction", around)
        assert_read_again(lines(request), target)


def test_messages_of_an_agent_service_stay_a_list() -> None:
    rows = [{"type": "human", "content": "a"}, {"type": "ai", "content": "b"}]
    for record in ({"id": 1, "messages": rows, "n": 2}, rows, {"chat": rows}):
        assert same_json(read(record, "agent-service").value, record)
    asked = {"id": 1, "chat": {"messages": rows, "n": 2}}
    [done] = convert_file(io.BytesIO(lines(asked)), Conversion("auto", "agent-service", field="chat"), file="in")
    assert isinstance(done, Converted)
    assert same_json(done.value, asked)


def test_a_body_under_a_field_comes_back_as_a_body() -> None:
    asked = {"id": 1, "chat": {"messages": talk("a"), "max_tokens": 9}}
    [done] = convert_file(io.BytesIO(lines(asked)), Conversion("anthropic", "anthropic", field="chat"), file="in")
    assert isinstance(done, Converted)
    assert same_json(done.value, asked)


def test_a_record_with_nothing_to_write_is_a_bad_record() -> None:
    told = {"messages": [{"role": "system", "content": "Be brief."}]}
    _, records, [failure] = convert(lines(told, {"messages": talk("a")}), "auto", "anthropic")
    assert len(records) == 1
    assert isinstance(failure.error, NothingToSend)
    assert failure.error.reasons == ((1, "instructions are not sent as a message"),)
    shown = {"messages": [{"type": "custom", "content": ""}]}
    _, records, [failure] = convert(lines(shown), "auto", "openai-chat")
    assert isinstance(failure.error, NothingToSend)
    assert failure.error.reasons == ((1, "left out"),)
    assert convert(lines({"messages": []}), "openai-chat", "openai-responses")[1][0].value == {"input": []}


@pytest.mark.parametrize("target", format_names())
async def test_every_export_is_read_again(ledger: Ledger, target: str) -> None:
    await bring(ledger, lines(*({"id": n, "messages": messages} for n, messages in enumerate(CONVERSATIONS))))
    for number, messages in enumerate(CONVERSATIONS):
        await ledger.threads.create(f"own {number}")
        await ledger.messages.append(f"own {number}", Payload(messages, "openai-chat"), rules="lenient")
    index = await read_index(ledger)
    records = [one.value async for one in export_all(ledger, index, format=target)]
    trained = [one async for one in export_conversations(ledger, index, format=target)]
    assert len(records) == len(trained) == 2 * len(CONVERSATIONS)
    for written in (records, [one.value for one in trained]):
        assert_is_read(written, target)


def assert_is_read(written: Sequence[Any], target: str) -> None:
    for source in ("auto", target):
        _, again, failures = convert(lines(*written), source, target)
        assert failures == []
        assert [json.dumps(one.value) for one in again] == [json.dumps(one) for one in written]
