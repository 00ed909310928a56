"""What a provider or a program added to a message does not go back: a request has only the keys that the API takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic.types.beta import BetaMessage
from openai.types.chat import ChatCompletionMessage

from chatledger import ChatMessage, Ledger, Payload
from chatledger.formats import get_codec
from chatledger.formats.model_view import get_provider, model_view, provider_names
from chatledger.models.json import same_json
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions
from chatledger.transfer.report import ImportReport
from chatledger.types import PromptFormat
from tests.formats.model_view import request_types
from tests.formats.openai_chat.test_sdk import REPLIES
from tests.formats.sdk_types import OTHER_PARTS, validate
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.reading import Object, fed
from tests.formats.streams.sdk_examples import example
from tests.formats.streams.test_coverage import BLOCKS, ITEMS
from tests.formats.streams.test_openai_chat import LEGACY, MESSAGE, THINKING

FORMS = range(6)  # each takes another member of every union, null included
SAMPLES = Path(__file__).parents[3] / "samples"
SPLIT: dict[str, Callable[[list[Object]], list[Object]]] = {
    "anthropic": lambda reply: split_anthropic.split(reply[0]),
    "openai-chat": lambda reply: split_chat.split(reply[0]),
    "openai-responses": split_responses.split,
}
ASKED = {"role": "user", "content": "?"}


def test_the_keys_are_those_of_the_request_types_of_the_sdks() -> None:
    written = request_types.MODULE.read_text(encoding="utf-8")
    assert written == request_types.source(), "run: python -m tests.formats.model_view.request_types"


# --- Every reply ------------------------------------------------------------------------------------------------------


def anthropic_replies() -> Iterator[list[Object]]:
    for form in FORMS:
        around = {**example(BetaMessage, "", form), "role": "assistant"}
        for kind, block_type in BLOCKS.items():
            block = example(block_type, kind, form)
            asked = {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}}
            call = [{**asked, "id": block["tool_use_id"]}] if "tool_use_id" in block else []
            yield [{**around, "content": [*call, block, {"type": "text", "text": "So.", "citations": None}]}]


def responses_replies() -> Iterator[list[Object]]:
    said = example(ITEMS["message"], "said")
    for form in FORMS:
        for kind, item_type in ITEMS.items():
            item = example(item_type, kind, form)
            if kind == "additional_tools":
                item["role"] = "developer"  # the only role that goes back
            call = {
                "type": kind.removesuffix("_output"),
                "call_id": item.get("call_id"),
                "name": "f",
                "arguments": "{}",
            }
            calls = [{**call, "input": ""}] if kind in ("function_call_output", "custom_tool_call_output") else []
            yield [*calls, item, said]


def chat_replies() -> Iterator[list[Object]]:
    signed = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "a", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}"}}
    yield from ([reply] for reply in [MESSAGE, THINKING, LEGACY, *REPLIES])
    yield from ([example(ChatCompletionMessage, "", form)] for form in FORMS)
    yield [{"role": "assistant", "content": None, "tool_calls": [{**call, "extra_content": signed}]}]
    yield [{"role": "assistant", "content": "a", "tool_calls": None, "timestamp": 7, "id": "m", "loss_weight": 1}]


ALL = {
    "anthropic": list(anthropic_replies()),
    "openai-chat": list(chat_replies()),
    "openai-responses": list(responses_replies()),
}


def stored(provider: str, payload: list[Object]) -> list[ChatMessage]:
    messages = get_codec(provider).decode([ASKED, *payload], rules="lenient").messages
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]


def sent(provider: str, messages: list[ChatMessage]) -> Any:
    """The payload of the view, which the types of the SDK take with other keys forbidden."""
    encoded, repairs = model_view(get_codec(provider), messages)
    validate(provider, encoded.payload)
    if not repairs:
        assert same_json(encoded.payload, get_codec(provider).encode(messages).payload)
    return encoded.payload


@pytest.mark.parametrize("provider", provider_names())
def test_every_reply_goes_back_as_a_request_whether_it_was_appended_or_streamed(provider: str) -> None:
    for reply in ALL[provider]:
        appended = sent(provider, stored(provider, reply))
        streamed = sent(provider, stored(provider, fed(provider, SPLIT[provider](reply)).payload()))
        assert same_json(streamed, appended)


@pytest.mark.parametrize("provider", provider_names())
def test_what_goes_back_besides_is_needed_by_a_reply(provider: str) -> None:
    text = "".join(json.dumps(sent(provider, stored(provider, reply))) for reply in ALL[provider])
    besides = [key for keys in get_provider(provider).keys.besides.values() for key in keys.split()]
    assert [key for key in besides if f'"{key}": ' not in text] == []
    assert [kind for kind in OTHER_PARTS.get(provider, ()) if f'"type": "{kind}"' not in text] == []


async def test_every_sample_is_sent_as_each_provider_takes_it(ledger: Ledger) -> None:
    for file in sorted(SAMPLES.iterdir()):
        if file.suffix != ".md":
            with file.open("rb") as stream:
                options = ImportOptions(format="auto")
                lines = file.suffix == ".jsonl"
                await import_file(ledger, stream, options, file=file.name, lines=lines, report=ImportReport())
    threads = (await ledger.threads.list(limit=100)).items
    assert len(threads) >= 8
    for thread in threads:
        messages = (await ledger.messages.history(thread.thread_id)).messages
        for provider in provider_names():
            sent(provider, list(messages))


@pytest.mark.parametrize("provider", provider_names())
async def test_the_ledger_sends_back_what_it_streamed_and_appended(ledger: Ledger, provider: str) -> None:
    reply = {"anthropic": [ALL["anthropic"][0][0]], "openai-chat": [MESSAGE], "openai-responses": CALLED}[provider]
    for thread_id in ("streamed", "appended"):
        await ledger.messages.append(thread_id, Payload([ASKED], provider), create=True)
    await ledger.messages.append("appended", Payload(reply, provider))
    async with ledger.messages.stream("streamed", format=provider) as draft:
        for event in SPLIT[provider](reply):
            await draft.feed(event)
    views = [await ledger.messages.prompt(id_, cast(PromptFormat, provider)) for id_ in ("streamed", "appended")]
    validate(provider, views[0].payload)
    assert same_json(views[0].payload, views[1].payload)
    assert [repair.seq for repair in views[0].repairs if repair.code == "keys"] == [2]
    again = (await ledger.messages.history("appended")).encode(provider)
    assert json.dumps(reply[0])[1:-1] in json.dumps(again.payload), "the stored view still has every key"


CALLED: list[Object] = [
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "status": None, "timestamp": 7},
]


# --- What stays, and what is said -------------------------------------------------------------------------------------


def seen(provider: str, *payload: Object) -> tuple[list[Object], list[tuple[int | None, str]]]:
    """The wire behind the question, and what the repairs of keys say."""
    encoded, repairs = model_view(get_codec(provider), stored(provider, list(payload)))
    wire = encoded.payload["messages"] if provider == "anthropic" else encoded.payload
    return wire[1:], [(repair.seq, repair.detail) for repair in repairs if repair.code == "keys"]


LEFT_OUT = "keys that a request may not have: left out: "


def test_a_reply_of_anthropic_keeps_what_its_request_type_has() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"index": 1, "type": "text", "x": None}}
    own = {**use, "caller": {"type": "direct"}, "toolset_name": "t"}
    text = {"type": "text", "text": "Hm", "citations": None}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "usage": {"input_tokens": 1}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [{**text, "note": 1}], "took": 3}
    wire, said = seen(
        "anthropic",
        {**reply, "content": [{**text, "parsed_output": None}, {**own, "index": 1}]},
        {"role": "user", "content": [result]},
    )
    assert wire == [
        {"role": "assistant", "content": [text, own]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [text]}]},
    ]
    assert said == [
        (2, f"{LEFT_OUT}id, type, model, usage, text.parsed_output, tool_use.index"),
        (3, f"{LEFT_OUT}text.note, tool_result.took"),
    ]


def test_blocks_of_the_instructions_have_only_their_keys_too() -> None:
    system = [{"type": "text", "text": "Be brief.", "note": 1}]
    messages = get_codec("anthropic").decode({"system": system, "messages": [ASKED]}).messages
    encoded, repairs = model_view(get_codec("anthropic"), messages)
    assert encoded.payload["system"] == [{"type": "text", "text": "Be brief."}]
    assert [repair.detail for repair in repairs] == [f"{LEFT_OUT}text.note"]


def test_a_reply_of_a_chat_keeps_what_servers_need_back() -> None:
    reply = {"role": "assistant", "content": "a", "reasoning_content": "Hm", "reasoning_details": [{"index": 0}]}
    added = {"timestamp": 7, "id": "m", "loss_weight": 1, "tool_calls": None, "reasoning_details": [{"index": 0}]}
    wire, said = seen("openai-chat", {**reply, **added})
    assert wire == [reply]
    assert said == [(2, f"{LEFT_OUT}timestamp, id, loss_weight, tool_calls")]


def test_a_call_without_a_type_loses_its_other_keys() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    wire, said = seen("openai-chat", {"role": "assistant", "content": None, "tool_calls": [{**call, "index": 0}]})
    assert wire[0]["tool_calls"] == [call]
    assert said == [(2, f"{LEFT_OUT}tool_calls.index")]


def test_a_null_that_a_request_may_have_stays() -> None:
    reply = {"role": "assistant", "content": None, "refusal": "No.", "audio": None, "function_call": None}
    assert seen("openai-chat", reply) == ([reply], [])
    item: Object = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": None, "status": None}
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    wire, said = seen("openai-responses", item, call)
    assert wire[0] == {key: value for key, value in item.items() if key != "status"}
    assert said == [(2, f"{LEFT_OUT}reasoning.status")]


def test_an_item_of_a_program_keeps_its_time_in_the_ledger_only() -> None:
    said = {"role": "user", "content": [{"type": "input_text", "text": "Hi", "at": 7}]}
    wire, noted = seen("openai-responses", {**said, "timestamp": 7})
    assert wire == [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
    assert noted == [(2, f"{LEFT_OUT}input_text.at, timestamp")]


def test_an_object_of_a_type_that_the_sdk_does_not_know_stays_whole() -> None:
    video = {"type": "video_url", "video_url": {"url": "https://a.example/v", "fps": 2}}
    message = {"role": "user", "content": [video]}
    assert seen("openai-chat", message) == ([message], [])
    block = {"type": "a_block_to_come", "of": {"type": "text", "note": 1}}
    reply = {"role": "assistant", "content": [block]}
    assert seen("anthropic", reply) == ([reply], [])


def test_many_keys_are_named_up_to_a_limit() -> None:
    reply = {"role": "assistant", "content": "a", **{f"k{number}" * 50: 1 for number in range(9)}}
    _, [(_, said)] = seen("openai-chat", reply)
    assert said.endswith(", …")
    assert len(said) < 800


def test_a_message_with_the_type_of_a_part_is_still_a_message() -> None:
    wire, said = seen("openai-chat", {"role": "user", "content": "Hi", "type": "text"})
    assert (wire, said) == ([{"role": "user", "content": "Hi"}], [(2, f"{LEFT_OUT}type")])


def test_blocks_that_are_nested_deeper_than_any_type_are_left_as_they_are() -> None:
    block: Object = {"type": "text", "text": "a"}
    for _ in range(240):
        block = {"type": "search_result", "title": "a", "source": "a", "content": [block]}
    lists: Any = "a"
    for _ in range(480):
        lists = [lists]
    for content in ([block], [{"type": "search_result", "content": lists}]):
        reply = {"role": "assistant", "content": content}
        assert seen("anthropic", reply) == ([reply], [])
