"""Tombstones, which record that and how much was erased."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime

ErasureKind: TypeAlias = Literal["thread", "user", "tenant"]
"""What was erased: one thread, a user, or a tenant."""


class Erasure(Model):
    """A tombstone: the record that something was erased. It holds no content and no id of the erased object."""

    erasure_id: str
    """The id of the tombstone."""
    kind: ErasureKind
    """What was erased."""
    subject: str
    """A digest of the erased id, keyed by a random secret of the tenant. `erasures.find`
    finds the tombstone by it.
    """
    rows: dict[str, int]
    """The number of erased rows by table name."""
    scores: int
    """The number of scores that were kept, as numbers, for `feedback.summary`."""
    created_at: UtcDatetime
    """The time of the erasure in UTC."""

    @property
    def total(self) -> int:
        """The number of erased rows in all tables."""
        return sum(self.rows.values())
