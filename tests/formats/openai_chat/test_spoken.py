"""What is said otherwise than by the content: reasoning among the parts, refusals, a voice; and what stays opaque."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import get_codec
from chatledger.formats.openai_chat import CODEC
from chatledger.models import ChatMessage, OpaquePart, TextPart, ThinkPart

Json = Any
VOICE = {"id": "audio_1", "expires_at": 9, "data": "QQ==", "transcript": "Hello"}


def decode(source: Json) -> ChatMessage:
    [message] = CODEC.decode([source]).messages
    assert repr(CODEC.encode([message]).payload) == repr([source])
    return message


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
    message = decode({"role": "assistant", "content": [part, {"type": "text", "text": "Dry."}]})
    assert message.content == [thought, TextPart(text="Dry.")]
    assert (message.reasoning_text, message.text) == (thought.text, "Dry.")


def test_thinking_that_a_program_put_there_cannot_be_said() -> None:
    message = decode({"role": "assistant", "content": [{"type": "text", "text": "Dry."}]})
    added = message.model_copy(update={"content": [ThinkPart(text="Hm"), *(message.content or [])]})
    encoded = CODEC.encode([added])
    assert [(loss.code, loss.path) for loss in encoded.losses] == [("reasoning", "content[0]")]


@pytest.mark.parametrize(
    "source",
    [
        {"role": "assistant", "content": None, "refusal": "No."},
        {"refusal": "No.", "role": "assistant"},
        {"role": "assistant", "content": None, "refusal": None, "audio": {**VOICE, "transcript": "No."}},
        {"role": "assistant", "audio": {**VOICE, "transcript": "No."}, "tool_calls": []},
    ],
)
def test_a_refusal_and_a_voice_are_read_by_every_format(source: Json) -> None:
    message = decode(source)
    assert message.content == "No."
    assert get_codec("agent-service").encode([message]).payload["messages"][0]["content"] == "No."


@pytest.mark.parametrize(
    "source",
    [
        {"role": "assistant", "content": "Hi", "refusal": "No.", "audio": VOICE},
        {"role": "assistant", "content": None, "refusal": ""},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": None, "audio": [1]},
    ],
)
def test_what_else_stands_beside_a_content_is_kept(source: Json) -> None:
    assert decode(source).content == source["content"]


def test_an_edited_content_stands_in_the_place_of_a_transcript() -> None:
    message = decode({"role": "assistant", "content": None, "audio": VOICE})
    [wire] = CODEC.encode([message.model_copy(update={"content": "Bye"})]).payload
    assert wire == {"role": "assistant", "content": "Bye", "audio": VOICE}


@pytest.mark.parametrize("kind", ["video_url", "document_url", "input_video"])
def test_parts_of_other_vendors_stay_in_their_place(kind: str) -> None:
    part = {"type": kind, kind: {"url": "https://h/a", "fps": 2.0}}
    message = decode({"role": "user", "content": [{"type": "text", "text": "See"}, part]})
    assert message.content == [TextPart(text="See"), OpaquePart(type=kind, value=part)]


@pytest.mark.parametrize("thinking", [None, 7, {"text": "a"}])
def test_thinking_of_another_shape_is_opaque_leniently(thinking: Json) -> None:
    part = {"type": "thinking", "thinking": thinking}
    [message] = CODEC.decode([{"role": "assistant", "content": [part]}], rules="lenient").messages
    assert message.content == [OpaquePart(type="thinking", value=part)]
