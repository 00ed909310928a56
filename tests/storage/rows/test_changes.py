"""The body of a change: a stored message as one cell, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from chatledger import ChatMessage, Ledger
from chatledger.errors import DamagedCell
from chatledger.models.json import same_json
from chatledger.storage.changes.record import load_changes, record_change
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.changes import read_body, write_body
from chatledger.storage.schema.text import decode_json, encode_json
from tests.conftest import Database
from tests.conversations import user
from tests.storage.raw import query
from tests.storage.rows.test_messages import messages
from tests.storage.words import RING

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
STORED = {"thread_id": "t", "branch": 3, "seq": 7, "created_at": NOW}


@given(messages(**STORED))
def test_any_message_comes_back_from_its_body(message: ChatMessage) -> None:
    cell = encode_json(write_body(message))
    back = read_body(decode_json(cell), "t", 3)
    assert same_json(back.model_dump(), message.model_dump())


async def recorded(ledger: Ledger, message: ChatMessage) -> ChatMessage | None:
    """Record the message as popped, and read the record."""
    scope: Scope = ledger.messages._scope
    window = Window.of(scope.tenant, "t")

    def record(sql: WriteSql) -> None:
        record_change(sql, window, "popped", (0, 2), [message], NOW)
        record_change(sql, window, "popped", (0, 3), [message], NOW, with_bodies=False)

    await scope.write(record)
    first, second = await scope.read(lambda sql: load_changes(sql, window, message.message_id or ""))
    assert (first.kind, first.branch, first.seq, first.target_branch, first.target_seq) == ("popped", 0, 2, 0, 1)
    assert (second.seq, second.message, second.created_at) == (3, None, NOW)
    return first.message


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "keys"])
async def test_a_change_is_read_as_it_was_recorded(database: Database, keys: Any) -> None:
    async with database.open(encryption=keys) as ledger:
        await ledger.threads.create("t")
        (message,) = (await ledger.messages.append("t", [user("hello\0")])).messages
        assert await recorded(ledger, message) == message
        ((body,), _) = await query(database, "SELECT body FROM revisions ORDER BY seq")
        assert ("hello" in body) is (keys is None)


@pytest.mark.parametrize("body", ["{}", '{"message":{}}', '{"message":{"seq":1},"parts":[1],"calls":[]}'])
async def test_an_invalid_body_is_a_damaged_cell(database: Database, body: str) -> None:
    async with database.open(encryption=None) as ledger:
        await ledger.threads.create("t")
        (message,) = (await ledger.messages.append("t", [user("hello")])).messages
        await recorded(ledger, message)
        await query(database, f"UPDATE revisions SET body = '{body}' WHERE seq = 2")
        window = Window.of(ledger.messages._scope.tenant, "t")
        with pytest.raises(DamagedCell, match=r"^revisions\.body of 't', 0, 2, 0"):
            await ledger.messages._scope.read(lambda sql: load_changes(sql, window, message.message_id or ""))
