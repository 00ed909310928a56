"""The oracle of conversions can fail: it notices each loss that is missing and each that is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatledger.formats import format_names, get_codec
from chatledger.formats.losses.codes import CODES, FIELDS
from chatledger.models import (
    ChatMessage,
    FilePart,
    ImagePart,
    Loss,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from tests.formats.any_messages import numbered
from tests.formats.losses.differences import problems
from tests.formats.measured import encode

FULL: list[Part] = [
    ThinkPart(text="hm", signature="s"),
    TextPart(text="a", extras={"k": 1}),
    ImagePart(data="QQ==", mime_type="image/png", name="n"),
    VideoPart(extras={"frames": ["a", "b"]}),
    FilePart(id="f"),
    OpaquePart(type="later", value={"type": "later"}),
]
CALLS = [
    ToolCall(name="f", arguments={"a": 1}, extras={"k": 1}),
    ToolCall(id="1", name="g", arguments='{"a": 1}'),
    ToolCall(id="1", name="", arguments="{"),
]
ADDED = {
    "is_error": False,
    "run_id": "r",
    "state": "interrupted",
    "response_metadata": {},
    "custom_data": {"a": 1},
    "residual": {"keys": []},
    "format": "later/2",
}
HISTORY = numbered(
    [
        ChatMessage(role="tool", content="early", tool_call_id="x"),
        ChatMessage(role="developer", content=None, name="of two words"),
        ChatMessage.model_validate({"role": "user", "content": FULL, "tool_call_id": "1", **ADDED}),
        ChatMessage(role="assistant", content=FULL, reasoning=[ThinkPart(text="so", signature="t")], tool_calls=CALLS),
        ChatMessage(role="tool", content=[ImagePart(url="u"), TextPart(text="21")], name="f"),
        ChatMessage(role="assistant", content="b", reasoning="well", tool_calls=[]),
        ChatMessage(role="assistant", content="c", tool_calls=[ToolCall(id="9", name="h")]),
        ChatMessage(role="custom", content="Saved."),
        ChatMessage(role="user", content="d", tool_calls=[ToolCall(id="2", name="f")]),
        ChatMessage(role="tool", content="22", tool_call_id="9"),
    ]
)
TARGETS = format_names()


def judged(target: str, losses: list[Loss] | None = None) -> tuple[list[Loss], list[str]]:
    """The reported losses, and what the oracle says of these or of the given ones."""
    codec = get_codec(target)
    encoded = encode(codec, HISTORY)
    back = codec.decode(encoded.payload, rules="lenient").messages
    return encoded.losses, problems(
        HISTORY, back, encoded.origins, encoded.losses if losses is None else losses, target
    )


def test_the_history_loses_in_every_way_but_one() -> None:
    found = {loss.code for target in TARGETS for loss in judged(target)[0]}
    assert CODES.keys() - found == {"text"}  # no format changes a text


@pytest.mark.parametrize("target", TARGETS)
def test_a_true_report_is_accepted(target: str) -> None:
    assert judged(target)[1] == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_loss_that_is_not_reported_is_noticed(target: str) -> None:
    losses, _ = judged(target)
    unnoticed = [loss for loss in losses if not judged(target, [one for one in losses if one is not loss])[1]]
    assert unnoticed == []


NONE = [
    *((code, path) for path, code in FIELDS.items()),
    *((code, "") for code in ("left-out", "split", "merged", "order")),
    *((code, "content") for code in ("text", "content-form")),
    *((code, "tool_calls") for code in ("calls", "made-up")),
    ("text", "content[1]"),
    ("extras", "content[1].extras"),
    ("calls", "tool_calls[0]"),
    ("call-id", "tool_calls[0].id"),
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_false_loss_is_noticed(target: str) -> None:
    losses, _ = judged(target)
    left_out = {loss.seq for loss in losses if loss.code == "left-out"}
    found = {(loss.seq, _field(loss)) for loss in losses}
    made = [Loss(code, message.seq, path) for code, path in NONE for message in HISTORY if message.seq not in left_out]
    none = [loss for loss in made if (loss.seq, _field(loss)) not in found and _has(loss)]
    assert [loss for loss in none if not judged(target, [*losses, loss])[1]] == []


def _field(loss: Loss) -> str:
    return loss.path.split(".")[0].split("[")[0]


def _has(loss: Loss) -> bool:
    """Whether the message has the part or the call that the path names."""
    message = HISTORY[(loss.seq or 1) - 1]
    if loss.path.startswith("content["):
        return isinstance(message.content, list) and len(message.content) > 1
    return not loss.path.startswith("tool_calls[") or bool(message.tool_calls)


def test_a_loss_of_another_message_is_noticed() -> None:
    losses, _ = judged("openai-chat")
    moved = replace(losses[0], seq=(losses[0].seq or 0) + 5)
    assert judged("openai-chat", [moved, *losses[1:]])[1] != []
