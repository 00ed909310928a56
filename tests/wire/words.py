"""What the answers of the tests consist of."""

from __future__ import annotations

import random
from collections.abc import Sequence

ODD = ("😀", "👩\u200d👧", "日本", "語", "e\u0301", "Ω")


def words(rng: random.Random, kind: str, count: int = 200) -> Sequence[str]:
    """About 20 kB of words; of `mixed` ones, a tenth are emoji, CJK and combining marks."""
    chosen = []
    for _ in range(count):
        word = "".join(rng.choice("abcdefghij klmno") for _ in range(100))
        chosen.append("".join(rng.choice(ODD) if kind == "mixed" and rng.random() < 0.1 else letter for letter in word))
    return chosen
