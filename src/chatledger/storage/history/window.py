"""The window of a branch that a call asks for. Its arguments are checked before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from chatledger.arguments import FUNCTION_OR_NONE, INT_OR_NONE, STR_OR_NONE, require
from chatledger.errors import InvalidArgument, InvalidCursor, LimitExceeded
from chatledger.models import ChatMessage
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import encode_key

END = 2**62
"""A seq beyond every other. It stands for the open end of a branch's own interval."""
MAX_BRANCH = 2**31 - 1
SMALL = 1_000
"""Maximum number of messages that PostgreSQL reads in one statement."""


@dataclass(frozen=True, slots=True)
class Window:
    """`thread` is the key as stored. `branch` None is the active branch. Without a size the window is the whole branch.

    At most one size is given: `limit` (with `before` or `after`), `newest` (with `before`), `last`, `last_turns` or
    `max_tokens`. `partials` False leaves out the message at the end that is being written: the path ends before it.
    """

    tenant: Tenant
    thread: str
    thread_id: str
    branch: int | None = None
    limit: int | None = None
    before: int | None = None
    after: int | None = None
    newest: int | None = None
    last: int | None = None
    last_turns: int | None = None
    max_tokens: int | None = None
    count_tokens: Callable[[ChatMessage], int] | None = None
    run_id: str | None = None
    partials: bool = True

    @classmethod
    def of(cls, tenant: Tenant, thread_id: str, branch: int | None = None, **options: Any) -> Self:
        """Raises InvalidArgument for arguments that cannot be combined, LimitExceeded for a size below zero, and
        InvalidCursor for a cursor that no message can have.
        """
        window = cls(tenant, encode_key(thread_id, "thread_id"), thread_id, branch, **options)
        window._check_types()
        if options:
            window._check_sizes()
        return window

    def _check_types(self) -> None:
        numbers = (self.branch, self.limit, self.before, self.after, self.newest, self.last, self.last_turns)
        if not {*map(type, numbers), type(self.max_tokens)} <= INT_OR_NONE.plain:
            require(INT_OR_NONE, branch=self.branch, limit=self.limit, before=self.before, after=self.after)
            require(INT_OR_NONE, newest=self.newest, last=self.last, last_turns=self.last_turns)
            require(INT_OR_NONE, max_tokens=self.max_tokens)
        if self.run_id is not None or self.count_tokens is not None:
            require(STR_OR_NONE, run_id=self.run_id)
            require(FUNCTION_OR_NONE, count_tokens=self.count_tokens)

    def _check_sizes(self) -> None:
        sizes = {
            "limit": self.limit,
            "newest": self.newest,
            "last": self.last,
            "last_turns": self.last_turns,
            "max_tokens": self.max_tokens,
        }
        given = [name for name, size in sizes.items() if size is not None]
        if len(given) > 1:
            raise InvalidArgument(given[1], f"cannot be combined with {given[0]}; pass one of them")
        for name in given:
            self._check_cursors_of(name)
            size = sizes[name] or 0
            if size < 0:
                raise LimitExceeded(name, size, END)
        if self.max_tokens is not None and self.run_id is not None:
            raise InvalidArgument(
                "max_tokens", "counts whole turns and cannot be combined with run_id; pass one of them"
            )
        if self.count_tokens is not None and self.max_tokens is None:
            raise InvalidArgument(
                "count_tokens", "is used only with max_tokens; pass max_tokens as well, or leave it out"
            )
        for cursor in (self.before, self.after):
            if cursor is not None and not 0 <= cursor <= END:
                raise InvalidCursor(cursor, "not the seq of a message")

    def _check_cursors_of(self, name: str) -> None:
        """Raises InvalidArgument if a window with the size of that name does not begin or end at a cursor."""
        if name == "newest" and self.after is not None:
            raise InvalidArgument(name, "counts backward and cannot be combined with after; pass limit to read forward")
        if name in ("last", "last_turns", "max_tokens") and (self.before is not None or self.after is not None):
            cursor = "before" if self.before is not None else "after"
            instead = "newest or limit" if cursor == "before" else "limit"
            raise InvalidArgument(
                name, f"reads the end of the branch and cannot be combined with {cursor}; pass {instead}"
            )

    @property
    def place(self) -> dict[str, Any]:
        """The parameters that name the branch in a statement."""
        return {"tenant": self.tenant.key, "thread": self.thread, "branch": branch_column(self.branch)}

    @property
    def size(self) -> int | None:
        """The number of messages that the window counts; None if it counts none."""
        if self.last is not None:
            return self.last
        return self.limit if self.newest is None else self.newest

    @property
    def is_backward(self) -> bool:
        """Whether the size counts from the end of the window."""
        return self.last is not None or self.newest is not None or self.before is not None

    @property
    def is_small(self) -> bool:
        """Whether one statement may read the window: it has few messages, or is a whole branch, which may have few."""
        if self.run_id is not None or self.last_turns is not None or self.max_tokens is not None:
            return False
        size = self.size
        return size is None or size <= SMALL


def branch_column(branch: int | None) -> int | None:
    """The branch as a parameter of its column. A number that does not fit the column becomes one that no branch has."""
    return branch if branch is None or 0 <= branch <= MAX_BRANCH else -1
