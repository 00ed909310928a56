"""A context file imports and exports byte by byte."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.kosong import CODEC, Message, context_file, v0_23
from chatledger.models import ChatMessage, ToolCall
from chatledger.models.json import same_json
from tests.formats.kosong.strategies import json_values, newer_messages, older_messages
from tests.formats.measured import encode

RECORDS: tuple[dict[str, Any], ...] = (
    {"role": "_system_prompt", "content": "Du bist hilfreich. 你好"},
    {"role": "_usage", "token_count": 120},
    {"role": "_checkpoint", "id": 0},
)
MESSAGES = (
    Message(role="user", content="你好"),
    Message.model_validate(
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "hm"}],
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": None}}],
        }
    ),
)
FILE = "".join(
    [json.dumps(record) + "\n" for record in RECORDS]
    + [message.model_dump_json(exclude_none=True) + "\n" for message in MESSAGES]
).encode()


def stored(file: context_file.ContextFile) -> list[ChatMessage]:
    return [ChatMessage.model_validate(message.model_dump()) for message in file.messages]


def test_a_file_as_upstream_writes_it_comes_back_and_needs_no_residual() -> None:
    file = context_file.read(io.BytesIO(FILE))
    assert context_file.write(stored(file)) == FILE
    assert (file.problem, [message.residual for message in file.messages]) == (None, [None] * 5)


def test_records_are_custom_messages_in_their_place() -> None:
    messages = context_file.read(io.BytesIO(FILE)).messages
    assert [message.role for message in messages] == ["custom", "custom", "custom", "user", "assistant"]
    assert [message.custom_data for message in messages[:3]] == list(RECORDS)
    assert messages[4].tool_calls == [ToolCall(id="1", name="f")]


def test_a_model_never_sees_the_records() -> None:
    encoded = encode(CODEC, context_file.read(io.BytesIO(FILE)).messages)
    assert CODEC.as_models(encoded.payload) == list(MESSAGES)
    assert [loss.code for loss in encoded.losses] == ["left-out"] * 3


LINES = {
    "spaces": b'{"role": "user", "content": "\xc3\xa9"}\n',
    "ascii": b'{"role":"user","content":"\\u00e9"}\n',
    "spaces and ascii": b'{"role": "user", "content": "\\u00e9"}\n',
    "other spaces": b' {"role" :"user",  "content":"a"}\n',
    "other order": b'{"content":"a","role":"user"}\n',
    "unknown keys": b'{"role":"user","content":"a","later":{"x":1}}\n',
    "full dump": Message(role="user", content="a").model_dump_json().encode() + b"\n",
    "list of one text": b'{"role":"user","content":[{"type":"text","text":"a"}]}\n',
    "null content": b'{"role":"assistant","content":null}\n',
    "unknown part": b'{"role":"user","content":[{"type":"later","x":1e2}]}\n',
    "key twice": b'{"role":"user","content":"a","content":"b"}\n',
    "numbers": b'{"role":"assistant","content":"","tool_calls":[{"type":"function","id":"1",'
    b'"function":{"name":"f","arguments":"{}"},"extras":{"a":1e16,"b":-0.0,"c":1E2,"d":NaN}}]}\n',
    "lone surrogate": b'{"role":"user","content":"\\ud800"}\n',
    "windows": b'{"role":"user","content":"a"}\r\n',
    "no last newline": b'{"role":"user","content":"a"}',
    "blank lines": b'\n  \n{"role":"user","content":"a"}\n\n\r\n',
    "later record": b'{"role":"_later","x":[1]}\n',
    "record in another order": b'{"id": 0, "role": "_checkpoint"}\n',
    "record without ascii": '{"role": "_system_prompt", "content": "é"}\n'.encode(),
}


@pytest.mark.parametrize("codec", [CODEC, v0_23.CODEC], ids=["newer", "older"])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_any_way_of_writing_a_line_comes_back(line: bytes, codec: Any) -> None:
    for data in (line, FILE + line):
        file = context_file.read(io.BytesIO(data), codec=codec)
        assert (context_file.write(stored(file), codec=codec), file.problem) == (data, None)


@pytest.mark.parametrize("rules", ["strict", "lenient"])
@pytest.mark.parametrize("cut", [1, 5, len(FILE.splitlines()[-1]) // 2])
def test_a_torn_last_line_is_reported_and_costs_nothing_else(rules: Any, cut: int) -> None:
    whole = FILE[: FILE.rstrip().rindex(b"\n") + 1]
    file = context_file.read(io.BytesIO(FILE[: len(whole) + cut]), rules=rules)
    assert context_file.write(stored(file)) == whole
    assert file.problem is not None
    assert (file.problem.record, file.problem.byte) == (5, len(whole))


def test_a_character_that_was_torn_is_reported() -> None:
    file = context_file.read(io.BytesIO(FILE + '{"role":"user","content":"é'.encode()[:-1]))
    assert file.problem is not None
    assert (len(file.messages), file.problem.detail) == (5, "not UTF-8")


BAD_LINES = {
    "not JSON": (b'{"role":"us{"role":"_usage"}\n', "$"),
    "not UTF-8": (b'{"role":"user","content":"\xff"}\n', "$"),
    "no object": (b"[1]\n", "$"),
    "no role": (b'{"content":"a"}\n', "$[0].role"),
    "no content": (b'{"role":"user"}\n', "$[0].content"),
    "byte order mark": (b'\xef\xbb\xbf{"role":"user","content":"a"}\n', "$"),
}


@pytest.mark.parametrize(("line", "path"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_ends_strict_reading_where_it_stands(line: bytes, path: str) -> None:
    file = context_file.read(io.BytesIO(FILE + line + FILE))
    assert context_file.write(file.messages) == FILE
    assert file.problem is not None
    assert (file.problem.record, file.problem.byte, file.problem.path) == (6, len(FILE), path)


@pytest.mark.parametrize(("line", "path"), BAD_LINES.values(), ids=BAD_LINES)
def test_lenient_keeps_a_bad_line_and_goes_on(line: bytes, path: str) -> None:
    file = context_file.read(io.BytesIO(FILE + line + FILE), rules="lenient")
    assert (context_file.write(stored(file)), len(file.messages), file.problem) == (FILE + line + FILE, 11, None)


def test_an_empty_file() -> None:
    assert context_file.read([]) == context_file.ContextFile([])
    assert context_file.write([]) == b""


def test_messages_of_other_formats_are_written_as_kosong_writes_them() -> None:
    messages = [
        ChatMessage(role="developer", content="Be brief."),
        ChatMessage(role="assistant", content="", reasoning="hm", format="qwen-agent"),
        ChatMessage(role="custom", custom_data={"screen": 1}),
    ]
    assert context_file.write(messages) == (
        b'{"role":"system","content":"Be brief."}\n'
        b'{"role":"assistant","content":[{"type":"think","think":"hm","encrypted":null}]}\n'
    )


records = st.dictionaries(st.text(max_size=3), json_values, max_size=3).map(
    lambda record: json.dumps({"role": "_usage", **record})
)


@given(st.lists(newer_messages | older_messages, max_size=4), st.sampled_from([CODEC, v0_23.CODEC]))
@settings(max_examples=80, deadline=None)
def test_any_messages_written_by_pydantic_come_back(messages: list[Any], codec: Any) -> None:
    data = "".join(message.model_dump_json(exclude_none=True) + "\n" for message in messages).encode()
    file = context_file.read(io.BytesIO(data), codec=codec)
    assert (context_file.write(stored(file), codec=codec), file.problem) == (data, None)


@given(st.lists(records, max_size=4), st.booleans())
@settings(max_examples=50, deadline=None)
def test_any_records_come_back(lines: list[str], ends: bool) -> None:
    data = ("\n".join(lines) + ("\n" if ends and lines else "")).encode()
    assert context_file.write(stored(context_file.read(io.BytesIO(data)))) == data


@given(st.lists(newer_messages, max_size=4))
@settings(max_examples=60, deadline=None)
def test_objects_are_written_as_their_own_short_json(messages: list[Any]) -> None:
    """Infinity inside an unknown part is kept, where the classes' own JSON has null."""
    expected = [message.model_dump(exclude_none=True) for message in messages]
    written = context_file.write(CODEC.decode(messages).messages).decode().split("\n")[:-1]
    assert same_json([json.loads(line) for line in written], expected)
