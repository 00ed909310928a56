"""Redacting: no word of the message is left, and the thread is as whole as it was."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import ChatMessage, ImagePart, Ledger, MessageNotFound, TextPart, ThinkPart
from chatledger.storage.schema.tables import metadata
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.raw import query

CANARY = "canary"
SAID: list[ChatMessage] = [
    user(CANARY, name=CANARY, message_id="m0", custom_data={"a": CANARY}, format="openai-chat", residual={"b": CANARY}),
    assistant(
        calls=[call("c0", arguments=f'{{"city": "{CANARY}"}}'), call("c1", arguments={"city": CANARY})],
        reasoning=CANARY,
        response_metadata={"c": CANARY},
        message_id="m1",
    ),
    result("c0", CANARY, name="weather", message_id="m2"),
    ChatMessage(
        role="tool",
        tool_call_id="c1",
        content=[TextPart(text=CANARY), ThinkPart(text=CANARY, signature=CANARY), ImagePart(url=f"https://{CANARY}")],
        message_id="m3",
    ),
    assistant(CANARY, message_id="m4"),
]


@pytest.fixture
async def filled(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", SAID, run_id="r")
    return ledger


async def test_a_dry_run_shows_the_redacted_message_and_writes_nothing(database: Database, filled: Ledger) -> None:
    async def stored() -> str:
        return repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])

    before = await stored()
    foreseen = await filled.messages.redact("t", 2, dry_run=True)
    assert await stored() == before
    violations = {"violations"}  # they hold the time of the redaction
    redacted = await filled.messages.redact("t", 2)
    assert foreseen.model_dump(exclude=violations) == redacted.model_dump(exclude=violations)
    with pytest.raises(MessageNotFound):
        await filled.messages.redact("t", 9, dry_run=True)


async def test_no_word_is_left_and_every_link_stays(database: Database, filled: Ledger) -> None:
    before = (await filled.messages.history("t")).messages
    redacted = [await filled.messages.redact("t", seq) for seq in range(1, 6)]
    after = (await filled.messages.history("t")).messages
    assert after == redacted
    cells = repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])
    assert CANARY not in cells
    for old, new in zip(before, after, strict=True):
        stays = ("role", "seq", "message_id", "tool_call_id", "run_id", "created_at", "state")
        assert [getattr(new, name) for name in stays] == [getattr(old, name) for name in stays]
        assert [(one.id, one.name) for one in new.tool_calls or ()] == [
            (one.id, one.name) for one in old.tool_calls or ()
        ]
        assert [violation.rule for violation in new.violations] == ["R11"]
    assert await query(database, "SELECT count(*) FROM tool_results") == [(2,)]
    assert [finding.rule for finding in await filled.threads.check("t") if finding.rule != "R11"] == []


async def test_content_keeps_its_form(filled: Ledger) -> None:
    contents = [(await filled.messages.redact("t", seq)).content for seq in range(1, 6)]
    parts = [TextPart(text="[redacted]")]
    assert contents == ["[redacted]", None, "[redacted]", parts, "[redacted]"]


async def test_redacting_twice_changes_nothing(filled: Ledger) -> None:
    assert await filled.messages.redact("t", 2) == await filled.messages.redact("t", 2)


async def test_the_thread_goes_on_behind_a_redacted_call(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn()[:2])
    await ledger.messages.redact("t", 2)
    assert (await ledger.messages.append("t", turn()[2:])).version == 5


@pytest.mark.parametrize("seq", [0, 6, -1])
async def test_redacting_an_unknown_message_is_refused(filled: Ledger, seq: int) -> None:
    with pytest.raises(MessageNotFound):
        await filled.messages.redact("t", seq)


async def test_a_shared_message_is_redacted_for_every_fork(filled: Ledger) -> None:
    await filled.branches.fork("t", 5)
    await filled.messages.redact("t", 1)
    for branch in (0, 1):
        assert (await filled.messages.history("t", branch=branch)).messages[0].text == "[redacted]"


async def test_a_format_reads_a_redacted_message(filled: Ledger) -> None:
    for seq in range(1, 6):
        await filled.messages.redact("t", seq)
    payload: Any = (await filled.history("t", format="openai-chat")).payload
    assert [message["role"] for message in payload] == ["user", "assistant", "tool", "tool", "assistant"]
    assert CANARY not in repr(payload)


async def test_concurrent_appends_follow_a_redacted_message(filled: Ledger) -> None:
    appends = [filled.messages.append("t", turn()) for _ in range(5)]
    await asyncio.gather(filled.messages.redact("t", 3), *appends)
    history = await filled.messages.history("t")
    assert (history.version, history.messages[2].text) == (30, "[redacted]")
