"""The window of a branch that a call asks for. Its arguments are checked before anything is read."""

from __future__ import annotations

import struct
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self
from zlib import crc32

from chatledger.arguments import INT_OR_NONE, STR_OR_NONE, require
from chatledger.errors import InvalidArgument, InvalidCursor
from chatledger.models import ChatMessage, windows
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import encode_key, ends_partial, read_mark

END = 2**62
"""A seq beyond every other. It stands for the open end of a branch's own interval."""
MAX_BRANCH = 2**31 - 1
SMALL = 1_000
"""Maximum number of messages that PostgreSQL reads in one statement."""


@dataclass(frozen=True, slots=True)
class Section:
    """What a window shows of a branch, in one consistent state: finished messages, and the one that is being written at
    the end of the branch, if the window reaches it. The positions are None if there is nothing beyond.
    """

    thread: str
    thread_id: str
    branch: int
    messages: list[ChatMessage]
    draft: ChatMessage | None
    last_seq: int
    mark: windows.Mark
    before: int | None = None
    """The seq before which an earlier window ends."""
    after: int | None = None
    """The seq after which a later window begins."""


@dataclass(frozen=True, slots=True)
class Window:
    """`thread` is the key as stored. `branch` None is the active branch. Without a size the window is the whole branch.

    At most one size is given: `limit` (with `before` or `after`), `newest` (with `before`), `last_turns` or
    `max_tokens`. `drafts` False leaves out the message at the end that is being written: the path ends before it, and
    the section has it as its draft.
    """

    tenant: Tenant
    thread: str
    thread_id: str
    branch: int | None = None
    limit: int | None = None
    before: int | None = None
    after: int | None = None
    newest: int | None = None
    last_turns: int | None = None
    max_tokens: int | None = None
    count_tokens: Callable[[ChatMessage], int] | None = None
    run_id: str | None = None
    drafts: bool = True

    @classmethod
    def of(cls, tenant: Tenant, thread_id: str, branch: int | None = None) -> Self:
        """The whole branch. Raises InvalidArgument and LimitExceeded."""
        if type(branch) not in INT_OR_NONE.plain:
            require(INT_OR_NONE, branch=branch)
        return cls(tenant, encode_key(thread_id, "thread_id"), thread_id, branch)

    @classmethod
    def shown(
        cls, tenant: Tenant, thread_id: str, part: windows.Window | None, branch: int | None, run_id: str | None
    ) -> Window:
        """What a history reads of a branch. Raises InvalidArgument for arguments that do not go together, and
        InvalidCursor for a position of another thread or branch.
        """
        window = replace(cls.of(tenant, thread_id, branch), drafts=False)
        if run_id is not None:
            require(STR_OR_NONE, run_id=run_id)
            window = replace(window, run_id=run_id)
        if part is None:
            return window
        match part:
            case windows.Newest(count, before):
                of_branch, at = read_position("before", before, window.thread, branch)
                return replace(window, newest=count, branch=of_branch, before=at)
            case windows.Oldest(count, after):
                of_branch, at = read_position("after", after, window.thread, branch)
                return replace(window, limit=count, branch=of_branch, after=at)
            case windows.Turns(count):
                return replace(window, last_turns=count)
            case windows.Tokens(budget, count_tokens):
                if run_id is not None:
                    raise InvalidArgument("run_id", "does not go with Tokens, which count whole turns")
                return replace(window, max_tokens=budget, count_tokens=count_tokens)
        raise InvalidArgument("window", f"must be Newest, Oldest, Turns or Tokens, not {type(part).__name__}")

    @property
    def place(self) -> dict[str, Any]:
        """The parameters that name the branch in a statement."""
        of_thread = {"tenant": self.tenant.key, "user": self.tenant.user, "thread": self.thread}
        return {**of_thread, "branch": branch_column(self.branch)}

    @property
    def size(self) -> int | None:
        """The number of messages that the window counts; None if it counts none."""
        return self.limit if self.newest is None else self.newest

    @property
    def is_backward(self) -> bool:
        """Whether the size counts from the end of the window."""
        return self.newest is not None or self.before is not None

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


# --- Positions --------------------------------------------------------------------------------------------------------

_CURSOR = struct.Struct(">BBIIq")
_FORM = 2


def write_position(thread: str, branch: int, seq: int) -> windows.Cursor:
    """A cursor: the position on its branch, bound to the thread, as an opaque text of 24 characters."""
    packed = _CURSOR.pack(_FORM, 0, crc32(thread.encode()), branch, seq)
    return windows.Cursor(urlsafe_b64encode(packed).decode())


def read_position(
    name: str, position: windows.Position | None, thread: str, branch: int | None
) -> tuple[int | None, int | None]:
    """The branch and the seq before or after which a window begins or ends. A mark is the end of its branch: whatever
    came since is after it, and the message that was being written then is too. Raises InvalidArgument for a seq without
    a branch, and InvalidCursor.
    """
    if position is None:
        return branch, None
    if not isinstance(position, str):
        if branch is None:
            raise InvalidArgument(name, "is a seq, which names no branch: pass branch= as well, or a cursor")
        if not 0 <= position <= END:
            raise InvalidCursor(position, "not the seq of a message")
        return branch, position
    at = _read_cursor(position, thread) or _read_end(name, position, thread)
    if branch is not None and branch != at[0]:
        raise InvalidCursor(position, f"is of branch {at[0]}, not of branch {branch}")
    return at


def _read_cursor(cursor: str, thread: str) -> tuple[int, int] | None:
    try:
        form, _, checksum, branch, seq = _CURSOR.unpack(b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, struct.error):
        return None
    if form != _FORM or not 0 <= seq <= END or branch > MAX_BRANCH:
        return None
    if checksum != crc32(thread.encode()):
        raise InvalidCursor(cursor, "is of another thread")
    return branch, seq


def _read_end(name: str, position: str, thread: str) -> tuple[int, int]:
    try:
        mark = read_mark(position, thread, name)
    except InvalidArgument as error:
        detail = "is of another thread" if "another thread" in str(error) else "is no cursor of a history, and no mark"
        raise InvalidCursor(position, detail) from error
    end = mark.version - (1 if ends_partial(position) else 0)
    return mark.branch, end + 1 if name == "before" else end
