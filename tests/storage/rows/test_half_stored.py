"""A message of which somebody else deleted rows: reading it raises an error with its place, and a check finds it."""

from __future__ import annotations

import pytest

from chatledger import ChatMessage, Ledger, Newest, Oldest, StorageError, TextPart
from chatledger.storage.history import portions
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.storage.raw import query

SAID = [
    user("?", message_id="m1"),
    assistant(calls=[call("c0"), call("c1")], message_id="m2"),
    result("c0", "0", message_id="m3"),
    result("c1", "1", message_id="m4"),
    ChatMessage(role="assistant", content=[TextPart(text=text) for text in "abc"], reasoning="hm", message_id="m5"),
    user("more", message_id="m6"),
]
DAMAGES = {
    "a call": ("DELETE FROM tool_results; DELETE FROM tool_calls WHERE idx = 1", 2),
    "a part": ("DELETE FROM message_parts WHERE idx = 1", 5),
    "its reasoning": ("DELETE FROM message_parts WHERE channel = 'reasoning'", 5),
}


@pytest.fixture
async def filled(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", SAID)
    return ledger


async def harm(database: Database, statements: str) -> None:
    for statement in statements.split("; "):
        await query(database, statement)


@pytest.mark.parametrize(("statements", "seq"), DAMAGES.values(), ids=DAMAGES)
async def test_reading_a_half_stored_message_says_where(
    database: Database, filled: Ledger, statements: str, seq: int
) -> None:
    await harm(database, statements)
    for last in (5, None):
        with pytest.raises(
            StorageError, match=f"thread 't', branch 0, seq {seq}: rows of the message are missing: "
        ) as caught:
            await filled.messages.history("t", None if last is None else Newest(last))
        assert not caught.value.retryable
    assert [
        one.message_id for one in (await filled.messages.history("t", Oldest(1_000, after=5), branch=0)).messages
    ] == ["m6"]


@pytest.mark.parametrize("batch", [1, 3, 1_000])
@pytest.mark.parametrize(("statements", "seq"), DAMAGES.values(), ids=DAMAGES)
async def test_a_check_finds_a_half_stored_message_and_goes_on(
    database: Database, filled: Ledger, statements: str, seq: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "MESSAGES", batch)
    assert [found.rule for found in await findings_of(filled, "t")] == []
    await harm(database, statements)
    findings = await findings_of(filled, "t")
    assert [(found.seq, found.rule) for found in findings if "in half" in found.detail] == [(seq, "R11")]
    assert not any(found.rule == "R2" for found in findings)


@pytest.mark.parametrize(("gone", "told"), [(3, 4), (6, 6)])
async def test_a_check_finds_a_missing_message(database: Database, filled: Ledger, gone: int, told: int) -> None:
    await harm(database, f"DELETE FROM tool_results WHERE seq = {gone}; DELETE FROM messages WHERE seq = {gone}")
    assert [found.seq for found in await findings_of(filled, "t") if found.rule == "R2"] == [told]


async def test_a_check_of_a_branch_whose_messages_are_all_missing(database: Database, filled: Ledger) -> None:
    for table in ("tool_results", "tool_calls", "message_parts", "messages"):
        await query(database, f"DELETE FROM {table}")
    assert [(found.seq, found.rule) for found in await findings_of(filled, "t")] == [(6, "R2")]
