"""A signature goes back to the provider that made it, and to no other."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import ChatMessage, TextPart, ThinkPart
from chatledger.formats import get_codec
from chatledger.formats.langchain import CODEC
from chatledger.formats.model_view import model_view
from tests.formats.measured import encode

THINKING = {"type": "thinking", "thinking": "North.", "signature": "c2ln"}
STANDARD = {"type": "reasoning", "reasoning": "North.", "extras": {"signature": "c2ln"}}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
CONVERSE = {"type": "reasoning_content", "reasoning_content": {"text": "North.", "signature": "c2ln"}}
COLD = {"type": "text", "text": "Cold."}


def asked(block: dict[str, Any], provider: str | None) -> list[ChatMessage]:
    metadata = {} if provider is None else {"model_provider": provider}
    answer = {"content": [block, COLD], "type": "ai", "response_metadata": metadata}
    payload = [{"type": "human", "data": {"content": "Oslo?", "type": "human"}}, {"type": "ai", "data": answer}]
    return CODEC.decode(payload).messages


def is_written(target: str, messages: list[ChatMessage]) -> bool:
    return "c2ln" in str(encode(get_codec(target), messages).payload)


def is_sent(target: str, messages: list[ChatMessage]) -> bool:
    return "c2ln" in str(model_view(get_codec(target), messages)[0].payload)


@pytest.mark.parametrize("block", [THINKING, STANDARD, ITEM, CONVERSE], ids=lambda block: str(block)[10:25])
def test_a_signature_is_written_for_its_provider_alone(block: dict[str, Any]) -> None:
    for provider, own in (("anthropic", "anthropic"), ("openai", "openai-responses"), ("google_genai", None)):
        messages = asked(block, provider)
        assert messages[1].content[0].signature == "c2ln"  # type: ignore[index, union-attr]
        for target in ("anthropic", "openai-responses", "openai-chat"):
            assert is_written(target, messages) == (target == own), (provider, target)


def test_a_left_out_value_is_a_loss() -> None:
    losses = encode(get_codec("anthropic"), asked(THINKING, "openai")).losses
    assert ("signature", "content[0].signature") in {(loss.code, loss.path) for loss in losses}


def test_a_model_is_sent_the_reasoning_that_its_provider_signed() -> None:
    messages = asked(THINKING, "anthropic")
    encoded, repairs = model_view(get_codec("anthropic"), messages)
    assert encoded.payload["messages"][1]["content"] == [THINKING, COLD]
    assert repairs == []


@pytest.mark.parametrize("provider", [None, "openai", "bedrock_converse"])
def test_a_model_is_not_sent_the_reasoning_of_another_or_an_unknown_provider(provider: str | None) -> None:
    messages = asked(THINKING, provider)
    assert not is_sent("anthropic", messages)
    assert not is_sent("openai-responses", messages)


def test_reasoning_at_the_end_is_not_sent_although_anthropic_signed_it() -> None:
    [user, answer] = asked(THINKING, "anthropic")
    content = [TextPart(text="Cold."), ThinkPart(text="North.", signature="c2ln")]
    turned = [user, answer.model_copy(update={"content": content, "residual": None})]
    encoded, repairs = model_view(get_codec("anthropic"), turned)
    assert encoded.payload["messages"][1]["content"] == [COLD]
    assert [repair.code for repair in repairs] == ["reasoning"]


SIGNED = [ThinkPart(text="North.", signature="c2ln"), TextPart(text="Cold.")]


@pytest.mark.parametrize(
    ("source", "metadata", "block"),
    [
        ("anthropic", None, THINKING),
        (None, {"model_provider": "anthropic"}, THINKING),
        (
            "openai-responses",
            None,
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "North."}],
                "encrypted_content": "c2ln",
            },
        ),
        (None, None, STANDARD),
        ("kosong/0.30", None, STANDARD),
    ],
)
def test_signed_reasoning_is_spelled_as_its_provider_takes_it_back(
    source: str | None, metadata: Any, block: dict[str, Any]
) -> None:
    thought, words = SIGNED
    if metadata is not None:
        thought = ThinkPart(text="North.", signature="c2ln", extras={"provider": "anthropic"})
    message = ChatMessage(role="assistant", content=[thought, words], format=source, response_metadata=metadata)
    encoded = encode(CODEC, [message])
    written = encoded.payload[0]["data"]["content"][0]
    assert written == block
    assert encoded.losses == []
