"""The window of a branch that a call asks for. Its arguments are checked before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from chatledger.arguments import FUNCTION_OR_NONE, INT_OR_NONE, STR_OR_NONE, require
from chatledger.errors import InvalidCursor, LimitExceeded
from chatledger.models import ChatMessage
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import encode_key

END = 2**62
"""A seq beyond every other. It stands for the open end of a branch's own interval."""
MAX_BRANCH = 2**31 - 1
SMALL = 1_000
"""The most messages that PostgreSQL reads in one statement."""


@dataclass(frozen=True, slots=True)
class Window:
    """`thread` is the key as stored. `branch` None is the active branch. Without a size the window is the whole branch.

    At most one size is given: `limit` (with `before` or `after`), `last`, `last_turns` or `max_tokens`.
    """

    tenant: Tenant
    thread: str
    thread_id: str
    branch: int | None = None
    limit: int | None = None
    before: int | None = None
    after: int | None = None
    last: int | None = None
    last_turns: int | None = None
    max_tokens: int | None = None
    count_tokens: Callable[[ChatMessage], int] | None = None
    run_id: str | None = None
    user_id: str | None = None

    @classmethod
    def of(cls, tenant: Tenant, thread_id: str, branch: int | None = None, **options: Any) -> Self:
        """Raises InvalidCursor for windows that contradict each other, LimitExceeded for a size below zero."""
        window = cls(tenant, encode_key(thread_id, "thread_id"), thread_id, branch, **options)
        window._check_types()
        if options:
            window._check_sizes()
        return window

    def _check_types(self) -> None:
        numbers = (self.branch, self.limit, self.before, self.after, self.last, self.last_turns, self.max_tokens)
        if not {*map(type, numbers)} <= INT_OR_NONE.plain:
            require(INT_OR_NONE, branch=self.branch, limit=self.limit, before=self.before, after=self.after)
            require(INT_OR_NONE, last=self.last, last_turns=self.last_turns, max_tokens=self.max_tokens)
        if self.run_id is not None or self.user_id is not None or self.count_tokens is not None:
            require(STR_OR_NONE, run_id=self.run_id, user_id=self.user_id)
            require(FUNCTION_OR_NONE, count_tokens=self.count_tokens)

    def _check_sizes(self) -> None:
        sizes = {
            "limit": self.limit,
            "last": self.last,
            "last_turns": self.last_turns,
            "max_tokens": self.max_tokens,
        }
        given = [name for name, size in sizes.items() if size is not None]
        if len(given) > 1:
            raise InvalidCursor(None, f"{' and '.join(given)} are different windows; give one")
        if given and given[0] != "limit" and (self.before is not None or self.after is not None):
            raise InvalidCursor(self.before or self.after, f"before and after do not go with {given[0]}")
        if self.max_tokens is not None and self.run_id is not None:
            raise InvalidCursor(None, "max_tokens counts whole turns; it does not go with run_id")
        for name, size in sizes.items():
            if size is not None and size < 0:
                raise LimitExceeded(name, size, END)
        for cursor in (self.before, self.after):
            if cursor is not None and not 0 <= cursor <= END:
                raise InvalidCursor(cursor, "not the seq of a message")

    @property
    def place(self) -> dict[str, Any]:
        """The parameters that name the branch in a statement."""
        return {"tenant": self.tenant.key, "thread": self.thread, "branch": branch_column(self.branch)}

    @property
    def is_small(self) -> bool:
        """Whether one statement may read the window: it has few messages, or is a whole branch, which may have few."""
        if self.run_id is not None or self.last_turns is not None or self.max_tokens is not None:
            return False
        size = self.limit if self.last is None else self.last
        return size is None or size <= SMALL


def branch_column(branch: int | None) -> int | None:
    """The branch as a parameter of its column. A number that does not fit the column becomes one that no branch has."""
    return branch if branch is None or 0 <= branch <= MAX_BRANCH else -1
