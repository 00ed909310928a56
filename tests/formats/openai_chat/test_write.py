"""A message that was read and then edited, written again."""

from __future__ import annotations

from chatledger.formats.openai_chat import CODEC
from chatledger.models import (
    OpaquePart,
    TextPart,
    ThinkPart,
)
from tests.formats.openai_chat.test_foreign import PNG, call, encode, wire_call
from tests.formats.openai_chat.test_read import VOICE, decode_one


def test_a_field_that_a_program_adds_to_a_read_message_is_a_loss() -> None:
    message = CODEC.decode([{"role": "assistant", "content": "Hi", "x": 1}]).messages[0]
    parts = [ThinkPart(text="Hm"), OpaquePart(type="map", value={"type": "map"}), TextPart(text="Hi", extras={"k": 1})]
    changed = {
        "content": parts,
        "reasoning": [TextPart(text="Hm")],
        "tool_calls": [call(extras={"k": 1})],
        "is_error": True,
    }
    payload, losses = encode(message.model_copy(update=changed))
    content = [{"type": "map"}, {"type": "text", "text": "Hi"}]
    assert payload == [{"role": "assistant", "content": content, "x": 1, "tool_calls": [wire_call("c")]}]
    assert losses == [
        ("is-error", "is_error"),
        ("reasoning", "content[0]"),
        ("extras", "content[2].extras"),
        ("reasoning", "reasoning"),
        ("extras", "tool_calls[0].extras"),
    ]


def test_an_edited_field_is_written_though_the_source_had_it_null_or_absent() -> None:
    source = {"content": "Hi", "role": "user", "name": None}
    message = CODEC.decode([source]).messages[0].model_copy(update={"content": "Hello", "name": "ada"})
    assert encode(message) == ([{"content": "Hello", "role": "user", "name": "ada"}], [])


def test_a_part_in_the_place_of_another_is_written_without_its_residual() -> None:
    image = {"image_url": {"url": PNG}, "type": "image_url"}
    message = CODEC.decode([{"role": "user", "content": [image]}]).messages[0]
    edited = message.model_copy(update={"content": [TextPart(text="Hi")]})
    assert encode(edited) == ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], [])


def test_an_edited_content_replaces_a_transcript() -> None:
    message = decode_one({"role": "assistant", "content": None, "audio": VOICE})
    [wire] = CODEC.encode([message.model_copy(update={"content": "Bye"})]).payload
    assert wire == {"role": "assistant", "content": "Bye", "audio": VOICE}
