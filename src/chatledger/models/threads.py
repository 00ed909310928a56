"""Threads (one conversation each), their branches, and the result of a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from chatledger.arguments import DICT_OR_NONE, RULES_OR_NONE, STR_OR_NONE, require
from chatledger.models.base import Model, Text, UtcDatetime, read_moment
from chatledger.models.json import JsonObject, JsonValue
from chatledger.models.messages import ChatMessage
from chatledger.models.windows import Mark

RulesLevel: TypeAlias = Literal["lenient", "strict", "ordered"]
"""How strictly messages are judged. lenient: keeps a message that breaks a rule, and records that in its `violations`.
strict: refuses it with RuleViolation. ordered: strict, and also refuses an order that some providers refuse (R13).
"""


class Thread(Model):
    """One conversation of a tenant."""

    thread_id: Text
    """The id of the thread, unique in its tenant, of 1 to 512 bytes."""
    user_id: Text | None = None
    """The user who owns the thread. It is set when the thread is created, and never changes."""
    title: Text | None = None
    """A title for people."""
    metadata: JsonObject | None = None
    """Data of the application about the thread."""
    rules: RulesLevel | None = None
    """The level at which messages are judged; None for the level of the ledger."""
    active_branch: int = 0
    """The branch that calls use by default."""
    created_at: UtcDatetime
    """The time when the thread was created, in UTC."""
    active_at: UtcDatetime
    """The time of the last write in UTC, exact to a second."""
    kind: Text | None = None
    """A word of the application's, by which `threads.list` can filter. It is set when the thread is created, and never
    changes.
    """
    archived_at: UtcDatetime | None = None
    """The time when the thread was archived; None unless it is archived."""
    version: int = 0
    """The number of updates by `threads.update`. Pass it as `expected=` to update only what you have read."""
    message_count: int = 0
    """The number of messages of the active branch."""
    preview: Text | None = None
    """The beginning of the last user or assistant text of the active branch, at most 200 characters. None if the last
    50 positions have no such text, or if the text is encrypted in more than 8,192 bytes.
    """


@dataclass(frozen=True, slots=True)
class NewThread:
    """The thread that a write creates if there is none: `create=NewThread(title="Weather")`. It belongs to the user of
    the ledger. In a thread that exists, it changes nothing.
    """

    title: str | None = None
    """A title for people."""
    kind: str | None = None
    """A word of the application's, by which lists can filter."""
    metadata: Mapping[str, JsonValue] | None = None
    """Data of the application about the thread."""
    rules: RulesLevel | None = None
    """The level at which messages are judged; None for the level of the ledger."""
    created_at: datetime | None = None
    """The time when the thread was created, with its zone; None: now."""

    def __post_init__(self) -> None:
        require(STR_OR_NONE, title=self.title, kind=self.kind)
        require(DICT_OR_NONE, metadata=self.metadata)
        require(RULES_OR_NONE, rules=self.rules)
        if self.created_at is not None:
            object.__setattr__(self, "created_at", read_moment("created_at", self.created_at))


class Branch(Model):
    """One path through a thread. A fork shares the messages up to its fork point, and copies none."""

    thread_id: Text
    """The thread of the branch."""
    branch: int
    """The number of the branch in its thread. The first branch is 0."""
    forked_from: int | None = None
    """The branch that stores the last shared message; None if no message is shared."""
    forked_at: int | None = None
    """The seq of the last shared message; None if no message is shared: in the first branch, and in a fork at 0."""
    last_seq: int
    """The last position of the branch; 0 if it is empty. It grows with each message and each change."""
    mark: Mark
    """The state of the branch, as in a history of it: pass it as `expected=`, so that nothing is written after a
    change.
    """
    active: bool
    """Whether this is the active branch of the thread, which calls use by default."""
    created_at: UtcDatetime
    """The time when the branch was created, in UTC."""


class Alternative(Model):
    """One of the messages that follow the same message, such as two answers to one question."""

    message: ChatMessage
    """The message. `message.branch` is the branch that stores it."""
    branch: int
    """The branch to activate to see the message: the requested branch if that shows it, else the newest that does."""
    current: bool
    """Whether the message stands on the requested branch."""


class Deleted(Model):
    """The number of rows that a deletion removed, by table."""

    rows: dict[Text, int]
    """The number of removed rows by table name."""

    @property
    def total(self) -> int:
        """The number of removed rows in all tables."""
        return sum(self.rows.values())
