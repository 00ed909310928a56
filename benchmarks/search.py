"""A search among the messages of one user, of a heavier user, and of one long thread.

Each message is 360 characters of made-up words in Latin, Cyrillic, Chinese and Arabic letters, with frequencies by rank
as in speech. A word that stands nowhere is the worst case: every message is read. There is no bare contender, so the
targets are times.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cases import OURS, Extent
from benchmarks.measure import Call, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, milliseconds
from chatledger import ChatMessage, Ledger

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзийклмнопрстуфхцчшщыэюя",
    "的一是不了人我在有他这中大来上国",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
)
NOWHERE = "qqzzqq"
CHARACTERS = 360
BATCH = 500
HEAPS: Mapping[str, tuple[int, int, Target | None]] = {
    "a user with 1,000 messages": (40, 25, Target(20, " ms")),
    "a user with 10,000": (200, 50, Target(120, " ms")),
}
"""Threads, messages in each, and the target of the 95th percentile."""
LONG = 100_000


async def search_rows(url: str, extent: Extent) -> list[Row]:
    rows: list[Row] = []
    async with Ledger.open(url) as ledger:
        words = _Words()
        for name, (threads, length, target) in HEAPS.items():
            say(f"seeding {threads * length:,} messages")
            for number in range(threads):
                await _fill(ledger, words, f"{name} {number}", length, name)
            calls = {
                "a word that stands nowhere": _call(ledger, NOWHERE, {"user_id": name}, 0),
                "a common word": _call(ledger, words.common, {"user_id": name}, 20),
            }
            rows += await _race(f"search, {name}", calls, extent, target)
        if extent.longest >= LONG:
            say(f"seeding a thread of {LONG:,} messages")
            await _fill(ledger, words, "long", LONG, None)
            calls = {
                "a word that stands nowhere": _call(ledger, NOWHERE, {"thread_id": "long"}, 0),
                "a common word": _call(ledger, words.common, {"thread_id": "long"}, 20),
            }
            rows += await _race(f"search, a thread of {LONG:,}, all pages", calls, extent, None)
    return rows


async def _race(case: str, calls: Mapping[str, Call], extent: Extent, target: Target | None) -> list[Row]:
    seen = await race(calls, extent.loads)
    rows: list[Row] = []
    for name, sample in seen.items():
        worst = sample.percentile(95)
        figures = (milliseconds(sample.median), milliseconds(worst), f"{sample.spread:.0%}")
        rows.append(Row(f"{case}, {name}", OURS, *figures, target=target, judged=worst * 1000))
    return rows


def _call(ledger: Ledger, query: str, options: Mapping[str, Any], hits: int) -> Call:
    async def search(_number: int) -> None:
        cursor = None
        while True:
            page = await ledger.messages.search(query, cursor=cursor, **options)
            cursor = page.next_cursor
            if page.complete:
                break
        assert len(page) == hits

    return search


async def _fill(ledger: Ledger, words: _Words, thread: str, length: int, user_id: str | None) -> None:
    said, owner = words.messages(), ledger if user_id is None else ledger.user(user_id)
    for start in range(0, length, BATCH):
        batch = [next(said) for _ in range(min(BATCH, length - start))]
        await owner.messages.append(thread, batch, create=True)


class _Words:
    def __init__(self) -> None:
        self._chance = random.Random(7)
        self._scripts = [[self._word(letters) for _ in range(5_000)] for letters in SCRIPTS]
        self.common = self._scripts[0][1]

    def _word(self, letters: str) -> str:
        return "".join(self._chance.choice(letters) for _ in range(self._chance.randint(3, 9)))

    def messages(self) -> Iterator[ChatMessage]:
        while True:
            for role in ("user", "assistant"):
                script = self._chance.choice(self._scripts)
                ranks = (int(5_000 ** self._chance.random()) - 1 for _ in range(CHARACTERS // 6))
                yield ChatMessage(role=role, content=" ".join(script[rank] for rank in ranks))
