"""Bulk loading gives what appending gives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chatledger import ChatMessage, ImagePart, Ledger, RuleViolation, TextPart, Thread
from chatledger.errors import IdConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import PreparedThread, load_threads, prepare_thread
from tests.checks import findings_of
from tests.conversations import assistant, call, result, turn, user

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def new_thread(ledger: Ledger, name: str, messages: list[ChatMessage]) -> PreparedThread:
    thread = Thread(thread_id=name, user_id="ada", metadata={"b": 1, "a": "\0\ud800"}, created_at=NOW, active_at=NOW)
    return prepare_thread(scope_of(ledger), thread, messages, rules="lenient")


def conversation() -> list[ChatMessage]:
    messages = [*turn(ids="m"), result("orphan", message_id="o"), user("x", message_id="u", created_at=NOW)]
    messages.append(assistant(calls=[call("c"), call("d")], message_id="open", reasoning="hm\0"))
    messages.append(ChatMessage(role="custom", content=[TextPart(text="a"), ImagePart(url="b")], message_id="c"))
    return [message.model_copy(update={"run_id": "r"}) for message in messages]


async def test_a_loaded_thread_equals_an_appended_one(ledger: Ledger) -> None:
    await load_threads(scope_of(ledger), [new_thread(ledger, "loaded", conversation())])
    other = ledger.tenant("other")
    await other.user("ada").threads.create("loaded", metadata={"b": 1, "a": "\0\ud800"}, created_at=NOW)
    await other.messages.append("loaded", conversation(), rules="lenient")
    for one, two in zip(
        (await ledger.messages.history("loaded")).messages,
        (await other.messages.history("loaded")).messages,
        strict=True,
    ):
        same = {"created_at": None}
        assert one.model_copy(update=same) == two.model_copy(update=same)
    assert await findings_of(ledger, "loaded") == await findings_of(other, "loaded")


async def test_a_loaded_thread_goes_on(ledger: Ledger) -> None:
    await load_threads(scope_of(ledger), [new_thread(ledger, "t", conversation()), new_thread(ledger, "empty", [])])
    await ledger.messages.append("t", [result("d"), result("c")])
    again = await ledger.messages.append("t", conversation()[:5], rules="lenient")
    assert again.replayed
    assert (await ledger.messages.append("empty", turn())).messages[0].seq == 1


async def test_a_batch_with_a_stored_thread_is_refused_whole(ledger: Ledger) -> None:
    await ledger.threads.create("b")
    with pytest.raises(IdConflict):
        await load_threads(scope_of(ledger), [new_thread(ledger, "a", turn()), new_thread(ledger, "b", turn())])
    assert await ledger.threads.find("a") is None


async def test_a_new_thread_is_judged_by_its_rules(ledger: Ledger) -> None:
    thread = Thread(thread_id="t", rules="strict", created_at=NOW, active_at=NOW)
    with pytest.raises(RuleViolation, match="R6"):
        prepare_thread(scope_of(ledger), thread, [result("nothing")], rules="lenient")
