"""Arguments of too many values are not parsed for another format: it gets them as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chatledger import ChatMessage, ToolCall
from chatledger.formats.history import encode
from chatledger.formats.model_view import model_view, provider_names
from chatledger.formats.registry import BUILT_IN, get_codec
from chatledger.models import Loss, Repair
from chatledger.models.json import scan
from chatledger.models.limits import MOST_VALUES

TEXT = '{"a":[' + "1," * MOST_VALUES + "1]}"
FITS = '{"a":[' + "1," * (MOST_VALUES - 10) + "1]}"


def written(name: str, arguments: str, view: str) -> tuple[Any, Sequence[Loss], list[Repair]]:
    """A conversation with a call, in a format: its payload, its losses and its repairs."""
    asked = [
        ChatMessage(role="user", content="?", seq=1),
        ChatMessage(role="assistant", tool_calls=[ToolCall(id="c", name="f", arguments=arguments)], seq=2),
        ChatMessage(role="tool", tool_call_id="c", name="f", content="r", seq=3),
    ]
    if view == "model":
        viewed, repairs = model_view(get_codec(name), asked)
        return viewed.payload, viewed.find_losses(), repairs
    encoded = encode(name, asked, kind="dicts")
    return encoded.payload, encoded.losses, []


VIEWS = [(name, "stored") for name in BUILT_IN] + [(name, "model") for name in provider_names()]


@pytest.mark.parametrize(("name", "view"), VIEWS)
def test_crowded_arguments_are_passed_on_as_text(name: str, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, parsed = json.JSONDecoder.decode, [0]

    def noting(own: Any, text: str, *given: Any) -> Any:
        parsed.append(scan(text.encode()).values)
        return decode(own, text, *given)

    monkeypatch.setattr(json.JSONDecoder, "decode", noting)
    payload, losses, _ = written(name, TEXT, view)
    assert TEXT in texts_of(payload)
    assert len(losses) < 10
    assert max(parsed) < MOST_VALUES / 2


def texts_of(payload: Any) -> list[str]:
    found, pending = list[str](), [payload]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            found.append(item)
        pending += item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else ()
    return found


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_model_that_takes_text_gets_it_unchanged(name: str) -> None:
    assert written(name, TEXT, "model")[2] == []


def test_arguments_that_fit_are_parsed() -> None:
    [_, asked, _] = written("anthropic", FITS, "stored")[0]["messages"]
    assert [block["input"] for block in asked["content"] if "input" in block] == [json.loads(FITS)]
