"""Imports of a framework's store killed with SIGKILL: each session is stored whole or not at all, and once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.conftest import Database
from tests.storage.raw import query
from tests.transfer.other_stores import NOON, Source, make_agents

SESSIONS = 200
ITEMS: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]


async def test_a_killed_import_goes_on(database: Database, tmp_path: Path) -> None:
    source = Source("sqlite", str(tmp_path / "agents.db"))
    await make_agents(source)
    rows = [
        {"session": f"session {number}", "item": json.dumps(item), "at": source.time(NOON)}
        for number in range(SESSIONS)
        for item in ITEMS
    ]
    await source.run(
        "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (:session, :item, :at)", rows
    )
    async with database.open() as ledger:  # makes the file before two processes would
        assert await ledger.threads.count() == 0
    program = str(Path(sys.executable).with_name("chatledger"))
    command = [program, "import", "--from", source.url, "--store", "openai-agents", "--url", database.url]
    stored = 0
    for _ in range(2):
        running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        async with asyncio.timeout(60):
            while (count := await _threads(database)) <= stored:
                assert running.returncode is None
                await asyncio.sleep(0.01)
        running.kill()
        await running.wait()
        stored = count
    assert stored < SESSIONS
    last = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await asyncio.wait_for(last.wait(), 60) == 0
    async with database.open() as ledger:
        assert await ledger.threads.count() == SESSIONS
        for number in range(SESSIONS):
            history = await ledger.messages.history(f"session {number}")
            assert [message.text for message in history.messages] == ["Hi", "Hello."]


async def _threads(database: Database) -> int:
    ((count,),) = await query(database, "SELECT count(*) FROM threads")
    return int(count)
