"""Content parts: how each is read, and which values its residual keeps."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.openai_chat import CODEC
from chatledger.models import (
    AudioPart,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
)
from tests.formats.measured import encode
from tests.formats.openai_chat.test_read import decode_one

Json = Any


def decode_part(part: Json) -> Part:
    content = decode_one({"role": "user", "content": [part]}).content
    assert isinstance(content, list)
    return content[0]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, TextPart(text="a")),
        ({"type": "refusal", "refusal": "No."}, TextPart(text="No.")),
        ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, ImagePart(url="https://h/a.png")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ==", "detail": "low"}},
            ImagePart(url="data:image/png;base64,QQ==", extras={"detail": "low"}),
        ),
        ({"type": "image_url", "image_url": "https://h/a.png"}, ImagePart(url="https://h/a.png")),
        (
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
            AudioPart(data="QQ==", mime_type="audio/mpeg"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            AudioPart(data="QQ==", mime_type="audio/wav"),
        ),
        ({"type": "file", "file": {"file_id": "file-1"}}, FilePart(id="file-1")),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
            FilePart(url="data:application/pdf;base64,QQ==", name="a.pdf"),
        ),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "QQ=="}}, FilePart(data="QQ==", name="a.pdf")),
        (
            {"type": "video_url", "video_url": {"url": "u"}},
            OpaquePart(type="video_url", value={"type": "video_url", "video_url": {"url": "u"}}),
        ),
        ({"text": "a"}, OpaquePart(value={"text": "a"})),
        ({"type": ["text"]}, OpaquePart(value={"type": ["text"]})),
    ],
)
def test_parts_of_every_type(source: Json, part: Part) -> None:
    assert decode_part(source) == part


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": "QQ==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "map", "map": {"zoom": 1.0}},
    ],
)
def test_an_ordinary_part_needs_no_residual(part: Json) -> None:
    assert decode_one({"role": "user", "content": [part]}).residual is None


def test_the_residual_of_a_part_holds_only_what_differs() -> None:
    data = "data:image/png;base64," + 100 * "QUFB"
    message = decode_one(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": data},
                {"image_url": {"url": data, "id": None}, "type": "image_url", "cache_control": {}},
                {"type": "refusal", "refusal": "No."},
            ],
        }
    )
    assert message.residual == {
        "parts": {
            "1": {"form": "bare-url"},
            "2": {
                "inner": {"keys": ["url", "id"], "extra": {"id": None}},
                "keys": ["image_url", "type", "cache_control"],
                "extra": {"cache_control": {}},
            },
            "3": {"form": "refusal"},
        }
    }


@pytest.mark.parametrize(
    ("part", "thought"),
    [
        ({"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, ThinkPart(text="Hm")),
        ({"closed": True, "type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, ThinkPart(text="Hm")),
        (
            {
                "type": "thinking",
                "thinking": [{"type": "text", "text": "a"}, {"type": "reference", "ids": [1]}],
            },
            ThinkPart(text="a"),
        ),
        ({"type": "thinking", "thinking": []}, ThinkPart(text="")),
        ({"type": "thinking", "thinking": "Hm", "signature": "s"}, ThinkPart(text="Hm", signature="s")),
    ],
)
def test_thinking_among_the_content_is_reasoning(part: Json, thought: ThinkPart) -> None:
    message = decode_one({"role": "assistant", "content": [part, {"type": "text", "text": "Dry."}]})
    assert message.content == [thought, TextPart(text="Dry.")]
    assert (message.reasoning_text, message.text) == (thought.text, "Dry.")


def test_thinking_that_a_program_added_cannot_be_written() -> None:
    message = decode_one({"role": "assistant", "content": [{"type": "text", "text": "Dry."}]})
    added = message.model_copy(update={"content": [ThinkPart(text="Hm"), *(message.content or [])]})
    encoded = encode(CODEC, [added])
    assert [(loss.code, loss.path) for loss in encoded.losses] == [("reasoning", "content[0]")]


@pytest.mark.parametrize("kind", ["video_url", "document_url", "input_video"])
def test_parts_of_other_vendors_stay_in_their_place(kind: str) -> None:
    part = {"type": kind, kind: {"url": "https://h/a", "fps": 2.0}}
    message = decode_one({"role": "user", "content": [{"type": "text", "text": "See"}, part]})
    assert message.content == [TextPart(text="See"), OpaquePart(type=kind, value=part)]


@pytest.mark.parametrize("thinking", [None, 7, {"text": "a"}])
def test_thinking_of_another_shape_is_opaque_leniently(thinking: Json) -> None:
    part = {"type": "thinking", "thinking": thinking}
    [message] = CODEC.decode([{"role": "assistant", "content": [part]}], rules="lenient").messages
    assert message.content == [OpaquePart(type="thinking", value=part)]
