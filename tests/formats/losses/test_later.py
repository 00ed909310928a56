"""The losses of a history are found when somebody asks, once, and from the ledger's own messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, OpaquePart, TextPart, ToolCall
from chatledger.formats import Decoded, Written, format_names, get_codec, history, losses_of
from chatledger.formats.losses.capabilities import SAMPLES
from chatledger.formats.openai_chat import OpenAIChat
from chatledger.models import RulesLevel
from chatledger.types import Loss
from tests.formats.any_messages import numbered


@dataclass(frozen=True)
class Counting(OpenAIChat):
    """Counts what it does."""

    calls: list[str] = field(default_factory=list)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        self.calls.append("decode")
        return super().decode(payload, rules=rules)

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        self.calls.append("encode")
        return super().encode(messages, carry=carry)


TALK = numbered(
    [
        ChatMessage(role="user", content="Oslo?", custom_data={"tags": ["a"]}),
        ChatMessage(
            role="assistant",
            content=[TextPart(text="Wait.", extras={"at": [1]}), OpaquePart(type="later", value={"type": "later"})],
            tool_calls=[ToolCall(id="1", name="weather", arguments={"city": {"name": "Oslo"}}, extras={"cost": [2]})],
            response_metadata={"model": "m", "usage": {"n": 1}},
        ),
        ChatMessage(role="tool", tool_call_id="1", content="4 °C", is_error=True),
        ChatMessage(role="assistant", content="Cold.", reasoning="North."),
    ]
)


def test_a_history_reads_no_payload_until_somebody_asks_for_its_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Counting()
    monkeypatch.setattr(history, "get_codec", lambda name: codec)
    written = history.encode(codec.name, TALK, kind="dicts")
    assert codec.calls == ["encode"]
    first = written.losses
    assert codec.calls == ["encode", "encode", "decode"]
    assert written.losses is first
    assert codec.calls == ["encode", "encode", "decode"]
    assert [loss for loss in first if loss.code == "reasoning"] == [Loss("reasoning", 4, "reasoning")]


def changed(value: Any) -> None:
    """Spoils a payload in every place."""
    for inner in list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()):
        changed(inner)
    if isinstance(value, dict):
        value.update(dict.fromkeys(value, "changed"), added={"role": object()})
    if isinstance(value, list):
        value[:] = [*value[:1], "changed"]


def cases() -> list[tuple[str, list[ChatMessage]]]:
    """Messages of no format, and those of the format itself, whose residuals the payload contains."""
    found = [(name, TALK) for name in format_names()]
    for name in format_names():
        codec = get_codec(name)
        payloads = [codec.encode(sample.alternatives[0]).payload for sample in SAMPLES.values()]
        payloads.append(codec.encode(TALK).payload)
        own = [message for payload in payloads for message in codec.decode(payload, rules="lenient").messages]
        changes = {"custom_data": {"kept": ["by", "the", "ledger"]}, "response_metadata": {"model": ["m"]}}
        found.append((name, numbered([message.model_copy(update=changes) for message in own])))
    return found


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize(("name", "messages"), cases(), ids=lambda given: given if isinstance(given, str) else "")
def test_a_payload_that_its_caller_changed_changes_no_loss(name: str, messages: list[ChatMessage], carry: bool) -> None:
    given = [message.model_copy(deep=True) for message in messages]
    written = history.encode(name, given, kind="dicts", carry=carry)
    changed(written.payload)
    given.clear()
    assert list(written.losses) == losses_of(get_codec(name), messages, carry=carry)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize("name", format_names())
def test_a_value_that_is_too_deep_is_left_out_when_the_history_is_written(name: str) -> None:
    """A payload is checked at once, since nobody may ask for its losses."""
    deep = ToolCall(id="1", name="weather", arguments=nested(499), extras=nested(499))
    messages = numbered([TALK[0], ChatMessage(role="assistant", tool_calls=[deep], custom_data=nested(499))])
    for carry in (False, True):
        written = history.encode(name, messages, kind="dicts", carry=carry)
        get_codec(name).decode(written.payload, rules="lenient")
        assert carry or 2 in {loss.seq for loss in written.losses}


async def test_the_losses_of_a_stored_history_outlive_its_payload(ledger: Ledger) -> None:
    await ledger.messages.append("t", [message.model_copy(update={"seq": None}) for message in TALK], create=True)
    for name in format_names():
        kept = (await ledger.messages.history("t")).encode(name, as_="dicts")
        losses = kept.losses
        spoiled = (await ledger.messages.history("t")).encode(name, as_="dicts")
        changed(spoiled.payload)
        assert spoiled.losses == losses
        assert losses != ()
