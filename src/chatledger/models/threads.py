"""Threads (one conversation each), their branches, and the result of a deletion."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import JsonObject
from chatledger.models.messages import ChatMessage

RulesLevel: TypeAlias = Literal["lenient", "strict", "ordered"]


class Thread(Model):
    """A conversation. `rules` is its own level; None means the level of the ledger.

    `message_count` and `preview` describe the active branch. `preview` is the beginning, at most 200 characters, of the
    last user or assistant text. It is None if the last 50 positions have none, and if that text is encrypted in more
    than 8,192 bytes.

    `active_at` is the time of the last write, exact to a second. `kind` is a word of the application's, set when the
    thread is created. `archived_at` is None unless the thread is archived. `revision` counts the updates.
    """

    thread_id: Text
    user_id: Text | None = None
    title: Text | None = None
    metadata: JsonObject | None = None
    rules: RulesLevel | None = None
    active_branch: int = 0
    created_at: UtcDatetime
    active_at: UtcDatetime
    kind: Text | None = None
    archived_at: UtcDatetime | None = None
    revision: int = 0
    message_count: int = 0
    preview: Text | None = None


class Branch(Model):
    """One path through a thread. It shares the messages up to and including seq `forked_at`, the last of which belongs
    to branch `forked_from`. Both are None if it shares none: in the first branch, and in a fork at 0.
    """

    thread_id: Text
    branch: int
    forked_from: int | None = None
    forked_at: int | None = None
    version: int
    active: bool
    created_at: UtcDatetime


class Alternative(Model):
    """A message that stands in one place of a thread, beside others that follow the same message before it.

    `message.branch` stores it. `branch` is the one to activate to see it: the branch that was asked for, if that shows
    it, else the one that was made last of those that do. `current`: it stands on the branch that was asked for.
    """

    message: ChatMessage
    branch: int
    current: bool


class Deleted(Model):
    """The number of rows that a deletion removed, by table."""

    rows: dict[Text, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())
