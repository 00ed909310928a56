"""What encryption costs: the same calls on a ledger with keys and on one without, in turns, in one database each.

    python -m tests.postgres --durable python -m benchmarks.encryption

prints the ratios of docs/contribute/cells.md, and the bytes of a turn.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import asyncpg

from benchmarks.measure import Call, Rounds, Sample, race
from benchmarks.turns import turns
from chatledger import KeyRing, Ledger, Newest
from chatledger.admin import migrate

KEYS = KeyRing({"2026": bytes(range(32))})
LONG = 200
"""Turns of the threads that are read: 1,000 messages."""
APPENDS = Rounds(count=400, seconds=60)
LOADS = Rounds(count=60, seconds=40, warm_up=5, alone=True)
SIZED = 1_000


async def measure(url: str) -> list[tuple[str, Sample, Sample]]:
    """(case, without keys, with)."""
    plain, keyed = Ledger.open(url, tenant="plain"), Ledger.open(url, tenant="keyed", encryption=KEYS)
    async with plain as one, keyed as two:
        ledgers = {"plain": one, "keyed": two}
        for ledger in ledgers.values():
            await _fill(ledger)
        rows = []
        for case, calls, rounds in (
            ("append of one turn", {name: _append(ledger) for name, ledger in ledgers.items()}, APPENDS),
            ("history of 1,000 messages", {name: _load(ledger, None) for name, ledger in ledgers.items()}, LOADS),
            ("history of the last 50", {name: _load(ledger, 50) for name, ledger in ledgers.items()}, LOADS),
        ):
            samples = await race(calls, rounds)
            rows.append((case, samples["plain"], samples["keyed"]))
        return rows


async def _fill(ledger: Ledger) -> None:
    for name in ("read", "written"):
        await ledger.threads.create(name)
    for number in range(LONG):
        await ledger.messages.append("read", turns()[number % 64].models)


def _append(ledger: Ledger) -> Call:
    async def append(number: int) -> None:
        await ledger.messages.append("written", turns()[number % 64].models)

    return append


def _load(ledger: Ledger, last: int | None) -> Call:
    async def load(_number: int) -> None:
        await ledger.messages.history("read", None if last is None else Newest(last))

    return load


async def turn_bytes(url: str, keys: KeyRing | None) -> float:
    """Bytes of a turn in the tables and indexes."""
    before = await _size(url)
    async with Ledger.open(url, tenant=f"sized {keys is not None}", encryption=keys) as ledger:
        threads = [(await ledger.threads.create()).thread_id for _ in range(30)]
        for number in range(SIZED):
            await ledger.messages.append(threads[number % 30], turns()[number % 64].models)
    return (await _size(url) - before) / SIZED


async def _size(url: str) -> int:
    if "://" not in url:
        return os.stat(url).st_size
    connection = await asyncpg.connect(url)
    try:
        size: int = await connection.fetchval(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'chatledger' AND c.relkind = 'r'"
        )
        return size
    finally:
        await connection.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        urls = {"SQLite": str(Path(folder) / "ledger.db"), "PostgreSQL": os.environ.get("CHATLEDGER_URL", "")}
        for name, url in urls.items():
            if not url:
                continue
            migrate(url)
            for case, plain, keyed in asyncio.run(measure(url)):
                ratio = keyed.ratio(plain)
                print(
                    f"{name:11} {case:26} {plain.median * 1e3:7.3f} ms -> {keyed.median * 1e3:7.3f} ms"
                    f"  {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
                )
            one, two = (asyncio.run(turn_bytes(url, keys)) for keys in (None, KEYS))
            print(f"{name:11} {'bytes of a turn':26} {one:7.0f}    -> {two:7.0f}     {two / one:.2f}")


if __name__ == "__main__":
    main()
