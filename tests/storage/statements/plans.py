"""The plans of the reads that must not grow with a ledger, as a database of 50,000 threads makes them.

`make plans` compares them with the files in the folder `plans`, and `make plans WRITE=--write` writes these anew. It
takes a minute, and the plans are those of one version of a server, so `make test` does not run it.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from chatledger import Ledger, Newest, Oldest, Turns
from chatledger.admin import migrate
from tests.postgres import server
from tests.storage.seeded import LONG, seed_postgresql, seed_sqlite
from tests.storage.sent import Sent
from tests.storage.statements.layout import lay_out
from tests.storage.statements.reads import until_polled
from tests.storage.statements.scene import KINDS, Scene, noting

THREADS = 50_000
FOLDER = Path(__file__).parent / "plans"
_REASONING = """
INSERT INTO {schema}message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text)
SELECT tenant_id, thread_id, branch, seq, 0, 'reasoning', 'text', 'hm' FROM {schema}messages WHERE seq % 5 = 0;
UPDATE {schema}messages SET reasoning_form = 'str' WHERE seq % 5 = 0;
"""
"""Parts, of which the seed has none: an empty table is read in any way."""
_READS = re.compile(r"\s*(SELECT|WITH)\b")

_PAGE = Oldest(50, after=THREADS // 2)
Read = Callable[[Ledger, Scene], Awaitable[object]]
READS: dict[str, Read] = {
    "threads_list": lambda ledger, _: ledger.threads.list(limit=50),
    "threads_list_of_user": lambda ledger, _: ledger.user("ada").threads.list(limit=50),
    "history_newest_of_long_thread": lambda ledger, _: ledger.messages.history(LONG, Newest(50)),
    "history_page_of_long_thread": lambda ledger, _: ledger.messages.history(LONG, _PAGE, branch=0),
    "history_turns_of_long_thread": lambda ledger, _: ledger.messages.history(LONG, Turns(10)),
    "search_messages": lambda ledger, _: ledger.messages.search("text 49"),
    "search_messages_without_a_hit": lambda ledger, _: ledger.messages.search("nowhere"),
    "search_threads": lambda ledger, _: ledger.threads.search("text 49"),
    "follow_poll": lambda ledger, scene: until_polled(ledger, LONG, scene),
}


async def plans(kind: str, url: str) -> dict[str, str]:
    """The plans of each read's statements, by the file's name."""
    explain = _explain_sqlite if kind == "sqlite" else _explain_postgresql
    found = {}
    for name, read in READS.items():
        scene = Scene(kind, url, "default")
        with noting(scene):
            async with scene.open() as ledger:
                with scene.sending(once=True):
                    await read(ledger, scene)
        explained = [await explain(url, one) for one in scene.sent if _READS.match(one.text)]
        found[name] = "\n".join(f"-- {_beginning(text)}\n{plan}\n" for text, plan in explained)
    return found


def _beginning(text: str) -> str:
    return lay_out(text).splitlines()[0]


async def _explain_postgresql(url: str, sent: Sent) -> tuple[str, str]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET jit = off")
        rows = await connection.fetch(f"EXPLAIN (COSTS OFF) {sent.text}", *sent.values)
        return sent.text, "\n".join(row[0] for row in rows)
    finally:
        await connection.close()


async def _explain_sqlite(url: str, sent: Sent) -> tuple[str, str]:
    """Its steps, each below the step that it is part of."""
    with closing(sqlite3.connect(url)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {sent.text}", *sent.values).fetchall()
    depths = {0: -1}
    lines = []
    for step, parent, _, said in rows:
        depths[step] = depths[parent] + 1
        lines.append("  " * depths[step] + said)
    return sent.text, "\n".join(lines)


def _versions(url: str) -> dict[str, str]:
    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return connection.get_server_version().major
        finally:
            await connection.close()

    postgresql = f"PostgreSQL {asyncio.run(ask())}"
    return {"sqlite": f"SQLite {sqlite3.sqlite_version}", "postgresql": postgresql, "distributed": postgresql}


def made() -> dict[str, str]:
    """The text of each file."""
    with server() as running, running.database() as pg_url, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        for url in (file, pg_url):
            migrate(url)
        seed_sqlite(file, THREADS, _REASONING)
        seed_postgresql(pg_url, THREADS, _REASONING)
        versions = _versions(pg_url)
        texts = {}
        for kind in KINDS:
            for name, text in asyncio.run(plans(kind, str(file) if kind == "sqlite" else pg_url)).items():
                texts[f"{kind}/{name}.txt"] = f"-- Of {versions[kind]}, with {THREADS:,} threads.\n\n{text}"
        return texts


def main() -> int:
    stored = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.glob("*/*.txt"))}
    texts = made()
    if "--write" in sys.argv[1:]:
        for name in stored.keys() - texts.keys():
            stored[name].unlink()
        for name, text in texts.items():
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    differences: list[str] = []
    for name in sorted(stored.keys() | texts.keys()):
        before, now = stored[name].read_text(encoding="utf-8") if name in stored else "", texts.get(name, "")
        differences += difflib.unified_diff(before.splitlines(), now.splitlines(), name, "now", lineterm="")
    print("\n".join(differences) or "The plans are those of the files.")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
