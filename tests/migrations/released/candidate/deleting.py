"""Deletes threads, in each way, of a database that is upgraded meanwhile.

    python deleting.py URL

It migrates the empty database, stores threads, says "ready", waits for a line, deletes, and prints the deleted rows. It
imports nothing of the checkout, so that the wheel of a candidate can run it too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime

from chatledger import ChatMessage, Ledger
from chatledger.admin import migrate


async def main(url: str) -> None:
    await asyncio.to_thread(migrate, url)
    async with Ledger.open(url) as ledger:
        for name in ("deleted", "erased", "idle"):
            await ledger.user("ada" if name == "erased" else "bob").threads.create(name)
            await ledger.messages.append(name, [ChatMessage(role="user", content="?")], run_id=f"run {name}")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        deleted = {
            "deleted": (await ledger.threads.delete("deleted")).rows,
            "erased": (await ledger.erasures.erase(("user", "ada"))).rows,
            "idle": (await ledger.threads.delete_inactive(older_than=datetime(2999, 1, 1, tzinfo=UTC))).rows,
        }
        print(json.dumps(deleted))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
