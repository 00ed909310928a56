"""Which rows a history becomes."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from chatledger.errors import MissingExtra
from chatledger.formats.pydantic_ai import CODEC
from chatledger.formats.pydantic_ai.parts import digest
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
    continues,
)
from chatledger.models.json import same_json
from chatledger.testing import check_format
from tests.formats.measured import encode, refusal
from tests.formats.pydantic_ai.samples import history

URL = {"kind": "image-url", "url": "https://h/a", "force_download": False, "vendor_metadata": None, "media_type": None}
BINARY = {"kind": "binary", "data": "-_8=", "media_type": "image/png"}


def read(*messages: dict[str, Any], **options: Any) -> list[ChatMessage]:
    return CODEC.decode(list(messages), **options).messages


def request(*parts: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts)}


def response(*parts: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts)}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "c", "content": content, **more}


def test_the_recorded_history_passes_the_check_of_formats() -> None:
    check_format(CODEC, [history(), history()[2:4]])


def test_a_request_is_one_row_a_part_and_a_response_one_row() -> None:
    rows = read(*history())
    told = [(row.role, row.name, row.tool_call_id, row.is_error, continues(row)) for row in rows]
    assert told == [
        ("system", None, None, None, False),
        ("user", None, None, None, True),
        ("assistant", None, None, None, False),
        ("tool", "weather", "c1", None, False),
        ("tool", "tides", "c2", True, True),
        ("user", None, None, None, True),
        ("assistant", None, None, None, False),
        ("tool", "camera", "c3", None, False),
        ("assistant", None, None, None, False),
        ("user", None, None, None, False),
    ]
    texts = [row.text for row in rows if row.role != "assistant"]
    assert texts == ["Be short.", "What is this?tagged", '{"t":4}', "none", "Go on.", "seen", "Answer in one word."]


def test_a_prompt_has_its_media_as_parts() -> None:
    content = read(*history())[1].content
    assert isinstance(content, list)
    assert [type(part) for part in content] == [
        TextPart, ImagePart, ImagePart, OpaquePart, OpaquePart, TextPart, AudioPart, VideoPart, FilePart
    ]  # fmt: skip
    assert content[1] == ImagePart(url="https://example.org/a.png", mime_type="image/png")
    assert content[2] == ImagePart(data="iVBOR//+", mime_type="image/png")  # recorded as iVBOR__-


def test_a_response_has_its_parts_and_its_metadata() -> None:
    row = read(*history())[2]
    assert isinstance(row.content, list)
    assert row.content[:2] == [
        ThinkPart(text="hm", signature="c2ln", extras={"provider": "anthropic", "id": "rs_1"}),
        TextPart(text="Wait."),
    ]
    kinds = [part.type for part in row.content if isinstance(part, OpaquePart)]
    assert kinds == ["builtin-tool-call", "builtin-tool-return", "compaction"]
    assert row.tool_calls == [
        ToolCall(id="c1", name="weather", arguments={"city": "Oslo"}),
        ToolCall(id="c2", name="tides", arguments='{"city":"Oslo"}'),
    ]
    assert row.response_metadata is not None
    assert list(row.response_metadata) == [
        "usage", "model_name", "provider_name", "provider_details", "provider_response_id", "finish_reason", "metadata"
    ]  # fmt: skip
    assert read(*history())[8].response_metadata is None  # a usage of zeros says nothing


def test_no_run_is_read_since_a_copied_conversation_has_the_runs_of_the_first() -> None:
    assert all(row.run_id is None for row in read(*history()))


def test_a_file_in_a_result_is_one_only_if_the_framework_takes_it_for_one() -> None:
    [listed] = read(request(result(["a", URL], content_file_digests=[digest(URL)])))
    [older] = read(request(result([URL])))
    [binary] = read(request(result(BINARY, content_file_digests=[])))
    [fake] = read(request(result([URL], content_file_digests=[])))
    [local] = read(request(result([{**URL, "url": "file:///etc/passwd"}])))
    [mixed] = read(request(result([BINARY, {"a": 1}])))
    assert listed.content == [TextPart(text="a"), ImagePart(url="https://h/a")]
    assert older.content == [ImagePart(url="https://h/a")]
    assert binary.content == [ImagePart(data="+/8=", mime_type="image/png")]
    [odd] = read(request(result([{**URL, "kind": ["image-url"]}])))
    for data in (fake, local, mixed, odd):
        assert isinstance(data.content, str)


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"kind": "request"}, "$"),
        ([history()], "$[0]"),
        ([{"parts": []}], "$[0].kind"),
        ([{"kind": "later", "parts": []}], "$[0].kind"),
        ([{"kind": "request"}], "$[0].parts"),
        ([request("a")], "$[0].parts[0]"),
        ([request({"content": "a"})], "$[0].parts[0].part_kind"),
        ([request({"part_kind": "user-prompt", "content": 1})], "$[0].parts[0].content"),
        ([request({"part_kind": "user-prompt", "content": ["a", 1]})], "$[0].parts[0].content[1]"),
        ([request(result("a", outcome=None))], "$[0].parts[0].outcome"),
        ([request({"part_kind": "tool-return", "content": "a"})], "$[0].parts[0].tool_name"),
        ([response({"part_kind": "tool-call", "tool_name": "f", "args": [1]})], "$[0].parts[0].args"),
        ([response({"part_kind": "file", "content": {"kind": "binary"}})], "$[0].parts[0].content.data"),
        ([{**response(), "metadata": {"live": object()}}], "$[0].metadata.live"),
    ],
)
def test_anything_else_is_refused_with_its_path(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path


def test_lenient_keeps_what_is_malformed_whole() -> None:
    payload = [{"kind": "later"}, request("a", {"part_kind": "user-prompt", "content": 1}), response(1)]
    rows = read(*payload, rules="lenient")
    assert [row.role for row in rows] == ["custom", "custom", "custom", "assistant"]
    assert same_json(encode(CODEC, rows).payload, payload)


def test_objects_need_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.messages", None)
    with pytest.raises(MissingExtra, match=r"chatledger\[pydantic-ai\]"):
        CODEC.as_models(history())


def test_a_part_that_is_cut_off_from_its_head_begins_a_request_of_its_own() -> None:
    rows = read(*history())[4:6]
    [written] = encode(CODEC, rows).payload
    assert [part["part_kind"] for part in written["parts"]] == ["tool-return", "user-prompt"]
    assert (written["kind"], written["run_id"]) == ("request", None)
