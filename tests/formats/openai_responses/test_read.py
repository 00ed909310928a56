"""How each item of a payload is read."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.openai_responses import CODEC
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    RulesLevel,
    TextPart,
    ThinkPart,
    ToolCall,
)
from chatledger.models.json import same_json
from tests.formats.measured import refusal

THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm"}],
    "encrypted_content": "gAAA",
}
SAID = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Let me look."}],
    "role": "assistant",
    "phase": "commentary",
}
EASY = {"role": "assistant", "content": "Sunny."}
ASK = {"role": "user", "content": "Tokyo?"}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}


def call(id_: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": "weather", "arguments": "{}", **more}


def result(id_: str, output: Any = "25") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": output}


def read(payload: Any, rules: RulesLevel = "strict") -> list[ChatMessage]:
    """The messages, from which the payload comes back."""
    messages = CODEC.decode(payload, rules=rules).messages
    assert same_json(CODEC.encode(messages).payload, payload)
    return messages


def content_of(part: dict[str, Any], role: str = "user") -> Part:
    [message] = read([{"role": role, "content": [part]}])
    assert isinstance(message.content, list)
    return message.content[0]


def test_consecutive_assistant_items_are_one_message() -> None:
    [message] = read([THOUGHT, SAID, call("a", id="fc_1", status="completed"), call("b")])
    assert message.role == "assistant"
    assert message.content == [ThinkPart(text="Hm", signature="gAAA"), TextPart(text="Let me look.")]
    assert message.tool_calls == [ToolCall(id=id_, name="weather", arguments="{}") for id_ in "ab"]


def test_results_are_one_message_each() -> None:
    messages = read([ASK, call("a"), call("b"), result("b"), result("a", [{"type": "input_text", "text": "25"}])])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool"]
    assert [message.tool_call_id for message in messages[2:]] == ["b", "a"]
    assert [message.content for message in messages[2:]] == ["25", [TextPart(text="25")]]


@pytest.mark.parametrize(
    ("items", "sizes"),
    [
        ([EASY, EASY], [1, 1]),
        ([SAID, THOUGHT, SAID], [1, 2]),
        ([SAID, THOUGHT, call("a")], [1, 2]),
        ([THOUGHT, SEARCH, THOUGHT, SAID], [4]),
        ([SAID, SEARCH], [1, 1]),
        ([call("a"), THOUGHT, call("b"), EASY], [4]),
        ([EASY, call("a"), EASY, call("b")], [4]),
        ([call("a"), result("a"), call("b")], [1, 1, 1]),
        ([ASK, ASK, EASY], [1, 1, 1]),
    ],
)
def test_a_message_ends_where_the_assistant_has_spoken_without_calling(items: list[Any], sizes: list[int]) -> None:
    messages = read(items)
    assert [len(CODEC.encode([message]).payload) for message in messages] == sizes


def test_plain_items_need_no_residual() -> None:
    picture = {"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": "https://h/x"}]}
    items = [ASK, {"role": "system", "content": "Be brief."}, EASY, picture, call("a"), result("a"), EASY]
    assert [message.residual for message in read(items)] == [None] * len(items)


def test_an_easy_message_with_a_call_is_before_it() -> None:
    [message] = read([EASY, call("a")])
    assert (message.content, message.residual) == ("Sunny.", None)


@pytest.mark.parametrize(
    ("summary", "content", "text"),
    [
        ([], None, ""),
        (["a", "b"], None, "a\n\nb"),
        (["a\n\n", "", "b"], None, "a\n\n\n\n\n\nb"),
        ([], ["deep"], "deep"),
        (["a"], ["b", "c"], "a\n\nb\n\nc"),
    ],
)
def test_the_texts_of_a_thought_are_joined_and_cut_again(summary: list[str], content: Any, text: str) -> None:
    item: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": one} for one in summary]}
    if content is not None:
        item["content"] = [{"type": "reasoning_text", "text": one} for one in content]
    [message] = read([item])
    assert message.content == [ThinkPart(text=text)]
    assert text == "" or text not in str(message.residual)


def test_a_thought_that_a_program_edits_is_written_as_one_summary() -> None:
    [message] = read([{**THOUGHT, "summary": [{"type": "summary_text", "text": one} for one in "ab"]}])
    edited = message.model_copy(update={"content": [ThinkPart(text="other", signature="gAAA")]})
    assert CODEC.encode([edited]).payload == [{**THOUGHT, "summary": [{"type": "summary_text", "text": "other"}]}]


@pytest.mark.parametrize(
    ("part", "read_as"),
    [
        ({"type": "input_text", "text": "a"}, TextPart(text="a")),
        ({"type": "text", "text": "a"}, TextPart(text="a")),
        ({"type": "refusal", "refusal": "no"}, TextPart(text="no")),
        ({"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]}, TextPart(text="a")),
        ({"type": "input_image", "image_url": "u", "detail": "low"}, ImagePart(url="u", extras={"detail": "low"})),
        ({"type": "input_image", "file_id": "file-1", "image_url": None}, ImagePart(id="file-1")),
        ({"type": "input_file", "file_data": "data:a/b;base64,QQ==", "filename": "x"},
         FilePart(url="data:a/b;base64,QQ==", name="x")),
        ({"type": "input_file", "file_url": "https://h/x", "file_id": "f"}, FilePart(url="https://h/x", id="f")),
        ({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
         AudioPart(data="QQ==", mime_type="audio/mpeg")),
        ({"type": "input_video", "of": "tomorrow"},
         OpaquePart(type="input_video", value={"type": "input_video", "of": "tomorrow"})),
        ({"type": "input_image"}, OpaquePart(type="input_image", value={"type": "input_image"})),
    ],
)  # fmt: skip
def test_parts(part: dict[str, Any], read_as: Part) -> None:
    assert content_of(part) == read_as
    assert content_of(part, "assistant") == read_as


def test_a_custom_tool_is_a_call_with_a_free_text() -> None:
    asked = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1", "id": "ctc_1"}
    messages = read([asked, {"type": "custom_tool_call_output", "call_id": "c", "output": "1"}])
    assert messages[0].tool_calls == [ToolCall(id="c", name="sql", arguments="SELECT 1")]
    assert (messages[1].role, messages[1].tool_call_id, messages[1].content) == ("tool", "c", "1")


@pytest.mark.parametrize(
    "item",
    [
        SEARCH,
        {"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed", "results": None},
        {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "click"}, "status": "completed"},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "u"}},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [{"type": "logs", "logs": "1"}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "QQ=="},
        {"type": "local_shell_call", "id": "ls_1", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "c", "output": "x"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x", "stderr": ""}]},
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "x"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "done"},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "of_tomorrow", "role": "user", "content": 7},
    ],
)
def test_an_item_without_a_typed_home_is_kept_whole(item: dict[str, Any]) -> None:
    [message] = read([item])
    assert (message.role, message.content) == ("assistant", [OpaquePart(type=item.get("type"), value=item)])


def test_a_text_is_a_user_message() -> None:
    [message] = read("Tokyo?")
    assert (message.role, message.content) == ("user", "Tokyo?")


@pytest.mark.parametrize(
    ("payload", "roles"),
    [
        ({"instructions": "Be brief.", "input": "Tokyo?"}, ["system", "user"]),
        ({"input": [ASK, EASY], "instructions": "Be brief."}, ["system", "user", "assistant"]),
        ({"instructions": None, "input": [ASK]}, ["user"]),
        ({"input": "Tokyo?"}, ["user"]),
        ({"instructions": "Be brief."}, ["system"]),
        ({"instructions": "Be brief.", "input": []}, ["system"]),
        ([], []),
    ],
)
def test_the_shape_of_the_payload_comes_back(payload: Any, roles: list[str]) -> None:
    assert [message.role for message in read(payload)] == roles


def test_a_text_that_was_answered_reads_as_items() -> None:
    messages = [*read("Tokyo?"), *read([EASY])]
    assert CODEC.encode(messages).payload == [ASK, EASY]
    instructed = [*read({"instructions": "Be brief.", "input": "Tokyo?"}), *read([EASY])]
    assert CODEC.encode(instructed).payload == {"instructions": "Be brief.", "input": [ASK, EASY]}
    assert CODEC.encode(instructed[1:]).payload == [ASK, EASY]


def test_instructions_that_are_given_again_are_a_system_message() -> None:
    request = {"instructions": "Be brief.", "input": "Tokyo?"}
    messages = [*read(request), *read([EASY]), *read(request)]
    assert CODEC.encode(messages).payload == {
        "instructions": "Be brief.",
        "input": [ASK, EASY, {"role": "system", "content": "Be brief."}, ASK],
    }


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (None, "input"),
        (7, "input"),
        ({"model": "m", "input": "a"}, "input"),
        (ASK, "input"),
        ({"input": ASK}, "input"),
        ({}, "input"),
        ({"input": []}, "input"),
        ({"instructions": ["a"], "input": "a"}, "instructions"),
        (["a"], "input[0]"),
        ([ASK, {}], "input[1].type"),
        ([{"type": 7}], "input[0].type"),
        ([{"role": 7}], "input[0].role"),
        ([{"role": "tool", "content": "a"}], "input[0].role"),
        ([{"role": "user", "content": 7}], "input[0].content"),
        ([{"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}], "input[0].tool_calls"),
        ([{"role": "user", "content": ["a"]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_text"}]}], "input[0].content[0].text"),
        ([{"type": "function_call", "call_id": "c"}], "input[0].name"),
        ([{"type": "function_call", "name": "f", "call_id": 7}], "input[0].call_id"),
        ([{"type": "function_call", "name": "f", "arguments": 7}], "input[0].arguments"),
        ([{"type": "custom_tool_call", "name": "f", "input": [7]}], "input[0].input"),
        ([{"type": "function_call_output", "output": {}}], "input[0].output"),
        ([{"role": "user", "content": "a", "at": {1, 2}}], "input[0].at"),
        ({"instructions": "a", "input": [{"role": "user", "content": "a", "at": b""}]}, "input[0].at"),
    ],
)
def test_an_invalid_value_is_refused_at_its_path(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "c"},
        {"type": "function_call", "call_id": "c", "name": "", "arguments": "{}"},
        {"type": "function_call_output", "output": 7},
        {"role": "user", "content": 7},
        {"role": 7},
        {},
        {"role": "narrator", "content": "Once"},
        {"role": "tool", "content": "a"},
        {"role": "user", "content": [{"type": "input_text"}]},
    ],
)
def test_lenient_keeps_malformed_values(item: dict[str, Any]) -> None:
    read([ASK, item], "lenient")
