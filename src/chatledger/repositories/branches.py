"""Forks, activates and rewinds the branches of a thread."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.arguments import BOOL, INT, INT_OR_NONE, STR, STR_OR_NONE, require
from chatledger.models import Alternative, Branch, ChatMessage
from chatledger.storage.append.request import read_expected
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history.window import Window
from chatledger.storage.repositories.alternatives import find_alternatives
from chatledger.storage.repositories.branches import activate_branch, get_branch, list_branches, make_fork
from chatledger.storage.repositories.cursors import part_of
from chatledger.storage.repositories.removal import rewind


class BranchRepository:
    """The branches of threads: `ledger.branches`, and `tx.branches` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def fork(
        self,
        thread_id: str,
        at: int,
        *,
        branch: int | None = None,
        activate: bool = True,
        expected: str | None = None,
    ) -> Branch:
        """Create a branch that shares the messages up to and including seq `at` of `branch` (None: the active one). It
        copies no message. `messages.append(…, after=…)` forks and appends in one call.

        The first message appended to it has seq `at` + 1. With `at` 0 the branch shares nothing. It becomes the active
        branch, unless `activate=False`. With `expected`, the mark of a history or of an append, it raises
        VersionConflict if that branch changed since.

        Raises ThreadNotFound, BranchNotFound, InvalidCursor for a seq that the branch does not have, and RuleViolation
        if a shared message is still partial or, unless the thread is lenient, if a shared call has no result yet.
        """
        require(STR, thread_id=thread_id)
        require(INT, at=at)
        require(INT_OR_NONE, branch=branch)
        require(BOOL, activate=activate)
        require(STR_OR_NONE, expected=expected)
        window = Window.of(self._scope.tenant, thread_id, branch)
        mark = None if expected is None else read_expected(expected, window.thread, branch)
        return await self._scope.write(
            lambda sql: make_fork(sql, window, at, activate, mark, self._scope.rules), moves=window.thread
        )

    async def rewind(
        self, thread_id: str, to: int, *, branch: int | None = None, expected: str | None = None
    ) -> Sequence[ChatMessage]:
        """Remove all messages after seq `to` (0: all) from the branch (None: the active one), in place, and return them
        in order. It makes no branch. Another branch that shares some of the messages keeps them.

        The rewind takes the next position of the branch: its version grows, and no position is used again. The removed
        messages stay in `revisions`. With `expected`, a mark, it raises VersionConflict if the branch changed since. If
        no message follows `to`, nothing is written.

        Raises ThreadNotFound, BranchNotFound, InvalidCursor for a seq beyond the end, and DraftLive while the message
        at the end is being written.
        """
        require(STR, thread_id=thread_id)
        require(INT, to=to)
        require(INT_OR_NONE, branch=branch)
        require(STR_OR_NONE, expected=expected)
        window = Window.of(self._scope.tenant, thread_id, branch)
        mark = None if expected is None else read_expected(expected, window.thread, branch)
        return await self._scope.write(lambda sql: rewind(sql, window, to, mark), moves=window.thread)

    async def activate(self, thread_id: str, branch: int) -> Branch:
        """Make a branch the active one, which calls use by default, and return it. Raises ThreadNotFound and
        BranchNotFound.
        """
        require(STR, thread_id=thread_id)
        require(INT, branch=branch)
        window = Window.of(self._scope.tenant, thread_id, branch)
        return await self._scope.write(lambda sql: activate_branch(sql, window, branch), moves=window.thread)

    async def list(self, thread_id: str) -> Sequence[Branch]:
        """All branches of the thread, in the order of their creation. Raises ThreadNotFound."""
        require(STR, thread_id=thread_id)
        window = Window.of(self._scope.tenant, thread_id, None)
        return await self._scope.read(lambda sql: list_branches(sql, window))

    async def alternatives(
        self, thread_id: str, seq: int, *, branch: int | None = None, skip: int = 0, limit: int | None = None
    ) -> Sequence[Alternative]:
        """The alternatives of the message at `seq` of `branch` (None: the active one): that message, and the messages
        of other branches that follow the same message as it does. A user interface shows "2 of 3" with them.

            for number, one in enumerate(await ledger.branches.alternatives(thread_id, seq=2), start=1):
                print(number, one.message.text, "(shown)" if one.current else f"(activate branch {one.branch})")

        They come in the order of the branches that store them: `limit` of them (None: all), after the first `skip`. A
        branch that ends before the place has none. The call
        runs six short statements, however many alternatives there are. Raises ThreadNotFound, BranchNotFound, and
        MessageNotFound for a seq without a message.
        """
        require(STR, thread_id=thread_id)
        require(INT, seq=seq)
        require(INT_OR_NONE, branch=branch)
        part = part_of(skip, limit)
        window = Window.of(self._scope.tenant, thread_id, branch)
        return await self._scope.read(lambda sql: find_alternatives(sql, window, seq, part), snapshot=True)

    async def get(self, thread_id: str, branch: int | None = None) -> Branch:
        """A branch (None: the active one), with its mark, without reading messages. Raises ThreadNotFound and
        BranchNotFound.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        window = Window.of(self._scope.tenant, thread_id, branch)
        return await self._scope.read(lambda sql: get_branch(sql, window))
