"""Requests in a database: they grow there, come back, and are never cut in the middle of a message."""

from __future__ import annotations

import pytest

from chatledger import Ledger, Payload, RuleViolation, Turns
from tests.formats.openai_chat.strategies import Json

ASKED = {"role": "user", "content": "Weather?"}
USES: list[Json] = [{"type": "tool_use", "id": id_, "name": "f", "input": {}} for id_ in ("a", "b")]
CALLING = {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, *USES]}
RESULTS = [{"type": "tool_result", "tool_use_id": id_, "content": "sunny"} for id_ in ("a", "b")]
ANSWERED = {"role": "user", "content": [*RESULTS, {"type": "text", "text": "And in Lima?"}]}
CLOSING = {"role": "assistant", "content": "Sunny too."}
TURN = [ASKED, CALLING, ANSWERED, CLOSING]


async def test_a_conversation_grows_by_strict_rules(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload({"system": "Be brief.", "messages": [ASKED]}, "anthropic"))
    for message in TURN[1:]:
        await ledger.messages.append("t", Payload([message], "anthropic"))
    history = await ledger.messages.history("t")
    assert history.encode("anthropic").payload == {"system": "Be brief.", "messages": TURN}
    assert [message.role for message in history.messages] == [
        "system", "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip


async def test_a_result_that_no_call_waits_for_is_refused(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    with pytest.raises(RuleViolation):
        await ledger.messages.append("t", Payload([ASKED, ANSWERED], "anthropic"))


async def test_a_turn_is_a_turn_of_the_format(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload(TURN * 2, "anthropic"))
    assert (await ledger.messages.history("t", Turns(1))).encode("anthropic").payload == {"messages": TURN}


async def test_open_calls_are_closed_in_the_message_of_the_other_results(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload([ASKED, CALLING, {"role": "user", "content": RESULTS[:1]}], "anthropic"))
    await ledger.messages.close_open_calls("t", reason="interrupted")
    [*_, answered] = (await ledger.messages.history("t")).encode("anthropic").payload["messages"]
    assert [block["tool_use_id"] for block in answered["content"]] == ["a", "b"]
