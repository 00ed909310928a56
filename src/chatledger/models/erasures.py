"""Tombstones, which record that and how much was erased."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime

ErasureKind: TypeAlias = Literal["thread", "user", "tenant"]


class Erasure(Model):
    """A tombstone. `rows` counts the erased rows by table, `scores` the numeric scores that were kept.

    It holds no id: `subject` is a digest of the id, by which `erasures.find_thread` and `find_user` find the tombstone.
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
