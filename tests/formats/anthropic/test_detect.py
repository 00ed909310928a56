"""Which payloads are recognised as requests to the Messages API without `format=`."""

from __future__ import annotations

import pytest

from chatledger.errors import UnknownFormat
from chatledger.formats import recognise
from tests.formats.openai_chat.strategies import Json

ASKED = {"role": "user", "content": "Hi"}
TEXT = {"type": "text", "text": "Hi"}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}


def named(payload: Json) -> str | None:
    try:
        return recognise(payload).name
    except UnknownFormat:
        return None


@pytest.mark.parametrize(
    "payload",
    [
        {"system": "Be brief.", "messages": [ASKED]},
        {"model": "m", "messages": [ASKED], "system": [TEXT]},
        {"messages": [ASKED, {"role": "assistant", "content": [TEXT, USE]}]},
        [ASKED, {"role": "assistant", "content": [USE]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]}],
        [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}],
        [{"id": "msg_1", "type": "message", "role": "assistant", "content": [TEXT, USE]}],
    ],
)
def test_payloads_of_this_format_alone_are_recognised(payload: Json) -> None:
    assert named(payload) == "anthropic"


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        ([ASKED], "openai-chat"),
        ([ASKED, {"role": "assistant", "content": [TEXT]}], "openai-chat"),
        ([{"role": "system", "content": "Be brief."}, ASKED], "openai-chat"),
        ({"messages": [ASKED]}, None),
        ({"messages": [], "system": "Be brief."}, None),
        ({"model": "m", "messages": [ASKED, {"role": "assistant", "tool_calls": []}]}, None),
        ({"system": [{"text": "Be brief."}], "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}, None),
        ([ASKED, {"role": "assistant", "content": [USE], "tool_calls": []}], None),
        ([{"type": "ai", "role": "assistant", "content": [USE]}], None),
        ([{"role": "model", "content": [USE]}], None),
        ([{"role": "user", "content": [{"type": "image", "image": "u"}]}], None),
    ],
)
def test_payloads_of_other_systems_are_not_recognised(payload: Json, name: str | None) -> None:
    assert named(payload) == name
