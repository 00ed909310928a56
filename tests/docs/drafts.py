"""What each call does with a draft, for docs/reference/drafts.md: a ledger is asked when the site is built.

`tests/docs/test_drafts_page.py` holds both databases to the same.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chatledger import ChatMessage, Ledger, Newest, Pace
from chatledger.errors import ChatLedgerError
from chatledger.transfer.export import export_thread

WORD = "xylophone"
"""Only the draft has it."""
Query = Callable[[str], Awaitable[Sequence[Any]]]


def has(value: object) -> str:
    return "has it" if WORD in str(value) else "leaves it out"


async def refuses(call: Awaitable[Any]) -> str:
    try:
        await call
    except ChatLedgerError as error:
        return f"raises `{type(error).__name__}`"
    return "takes no notice"


async def history(ledger: Ledger) -> str:
    found = await ledger.messages.history("t")
    counts = "counts" if found.last_seq == 2 else "does not count"
    return f"`.draft` {has(found.draft)}, `.messages` {has(found.messages)}, `.last_seq` {counts} it"


async def earlier(ledger: Ledger) -> str:
    return f"`.draft` {has((await ledger.messages.history('t', Newest(9, before=2), branch=0)).draft)}"


async def encode(ledger: Ledger) -> str:
    return has((await ledger.messages.history("t")).encode("openai-chat").payload)


async def prompt(ledger: Ledger) -> str:
    return has((await ledger.messages.prompt("t", "openai-chat")).payload)


async def iterate(ledger: Ledger) -> str:
    return has([message async for message in ledger.messages.iterate("t")])


async def get(ledger: Ledger) -> str:
    found = [await ledger.messages.get("t", "d"), *await ledger.messages.find("d")]
    return f"{has(found)}, with the state `{found[-1].state}`"


async def search(ledger: Ledger) -> str:
    return has([(await ledger.messages.search(WORD)).items, (await ledger.threads.search(WORD)).items])


async def alternatives(ledger: Ledger) -> str:
    return has(await ledger.messages.alternatives("t", "d"))


async def follow(ledger: Ledger) -> str:
    asked = await ledger.messages.append("f", ChatMessage.user("?"), create=True)
    kinds = []
    async with aclosing(ledger.messages.follow("f", cursor=asked.mark)) as changes:
        async with ledger.messages.stream("f", pace=Pace(interval=0)) as draft:
            kinds.append((await anext(changes)).kind)
            await draft.feed("piece")
            await draft.flush()
            kinds.append((await anext(changes)).kind)
        kinds.append((await anext(changes)).kind)
    return ", ".join(f"`{kind}`" for kind in kinds)


async def thread(ledger: Ledger) -> str:
    found = await ledger.threads.get("t")
    counts = "counts" if found.message_count == 2 else "does not count"
    return f"`message_count` {counts} it, `preview` {has(found.preview)}"


async def stats(ledger: Ledger) -> str:
    finished = len(await ledger.messages.history("t")) + len(await ledger.messages.history("f"))
    return "counts it" if (await ledger.stats())[0].messages == finished + 1 else "does not count it"


async def check(ledger: Ledger) -> str:
    return ", ".join([f"names it: {one.detail}" async for found in ledger.check("t") for one in found.findings])


async def listed(ledger: Ledger) -> str:
    return "lists it" if [one for one in await ledger.drafts.list() if one.thread_id == "t"] else "does not list it"


async def frames(ledger: Ledger) -> str:
    return has([batch.to_pylist() async for batch in ledger.frames("messages")])


async def export(ledger: Ledger) -> str:
    return has(await export_thread(ledger, "t"))


CALLS: dict[str, Callable[[Ledger], Awaitable[str]]] = {
    "`messages.history`": history,
    "`messages.history`, a window that ends before it": earlier,
    "`history.encode`": encode,
    "`messages.prompt`": prompt,
    "`messages.iterate`": iterate,
    "`messages.get`, `messages.find`": get,
    "`messages.search`, `threads.search`": search,
    "`messages.alternatives`": alternatives,
    "`messages.follow`": follow,
    "`threads.get`, `threads.list`": thread,
    "`ledger.stats`": stats,
    "`ledger.check`": check,
    "`drafts.list`": listed,
    "`ledger.frames`, Parquet files": frames,
    "`chatledger export`": export,
    "`messages.append`, `messages.stream`": lambda one: refuses(one.messages.append("t", ChatMessage.user("?"))),
    "`messages.sync`": lambda one: refuses(one.messages.sync("t", [ChatMessage.user("Which?"), ChatMessage.user("?")])),
    "`messages.revise` of an earlier message": lambda one: refuses(
        one.messages.revise("t", "q", ChatMessage.user("What?"))
    ),
    "`messages.remove`, `messages.pop`, `messages.rewind`": lambda one: refuses(one.messages.pop("t")),
    "`branches.fork` behind it": lambda one: refuses(one.branches.fork("t", "d")),
    "`threads.copy`": lambda one: refuses(one.threads.copy("t")),
}


async def observe(ledger: Ledger, query: Query) -> dict[str, str]:
    """The outcome of each call while a draft is written at the end of a thread."""
    await ledger.messages.append("t", ChatMessage.user("Which?", message_id="q"), create=True)
    named = ChatMessage.assistant(message_id="d")
    async with ledger.messages.stream("t", message=named, pace=Pace(interval=0)) as draft:
        await draft.feed(f"The {WORD}")
        await draft.flush()
        outcomes = {call: await ask(ledger) for call, ask in CALLS.items()}
        rows = await query("SELECT state, text FROM transcript WHERE thread_id = 't' ORDER BY seq")
    return outcomes | {"the SQL view `transcript`": f"{has(rows)}, with the state `{rows[-1][0]}`"}


def table(outcomes: dict[str, str]) -> str:
    rows = [f"| {call} | {outcome} |" for call, outcome in outcomes.items()]
    return "\n".join(["| call | with a draft at the end of the branch |", "|---|---|", *rows])


async def _observed() -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drafts.db"

        async def query(statement: str) -> Sequence[Any]:
            with sqlite3.connect(path) as connection:
                return connection.execute(statement).fetchall()

        async with Ledger.open(path) as ledger:
            return table(await observe(ledger, query))


@cache
def on_sqlite() -> str:
    """The table, of a new file. Not in an event loop."""
    return asyncio.run(_observed())


TABLES = {"drafts": on_sqlite}
