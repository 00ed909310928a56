"""What is left of what was erased: that it was, how much it was, and numbers if they were to be kept."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime

ErasureKind: TypeAlias = Literal["thread", "user", "tenant"]


class Erasure(Model):
    """A tombstone. `rows` is what went, by table; `scores` how many numbers were kept of it.

    It holds no id: `subject` is a digest by which `erasures.find_thread` and `find_user` find it again for whoever
    knows the id.
    """

    erasure_id: str
    kind: ErasureKind
    subject: str
    rows: dict[str, int]
    scores: int
    created_at: UtcDatetime

    @property
    def total(self) -> int:
        return sum(self.rows.values())
