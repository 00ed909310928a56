"""Threads (one conversation each), their branches, and what deleting one removed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime
from chatledger.models.json import JsonObject

RulesLevel: TypeAlias = Literal["lenient", "strict", "ordered"]


class Thread(Model):
    """A conversation. `rules` is its own level, None if the ledger's holds.

    `message_count` and `last_text` are those of the active branch; `active_at` is when it was last written to, exact
    to a second.
    """

    thread_id: str
    user_id: str | None = None
    title: str | None = None
    metadata: JsonObject | None = None
    rules: RulesLevel | None = None
    active_branch: int = 0
    created_at: UtcDatetime
    active_at: UtcDatetime
    message_count: int = 0
    last_text: str | None = None


class Branch(Model):
    """One line through a thread. It shares the messages up to and including seq `forked_at`, the last of which rests on
    branch `forked_from`; both are None where it shares none: the first branch, and a fork at 0.
    """

    thread_id: str
    branch: int
    forked_from: int | None = None
    forked_at: int | None = None
    version: int
    active: bool
    created_at: UtcDatetime


class Deleted(Model):
    """What a deletion removed: the number of rows by table."""

    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())
