"""Forks, lists and activates the branches of a thread."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.arguments import BOOL, INT, INT_OR_NONE, STR, STR_OR_NONE, require
from chatledger.models import Branch, ChatMessage, Mark
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history.places import read_place
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.branches import activate_branch, branches_of, fork_at, get_branch


class BranchRepository:
    """The branches of threads: `ledger.branches`, and `tx.branches` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def fork(
        self,
        thread_id: str,
        at: ChatMessage | str | None,
        *,
        branch: int | None = None,
        activate: bool = True,
        expected: Mark | None = None,
    ) -> Branch:
        """Create a branch that shares the messages up to and including `at`, a message or its id; None shares nothing.
        It copies no message. `messages.append(…, reply_to=…)` forks and appends in one call.

        The branch that it forks is `branch`, or else the active one, or the one that stores the message if the active
        one does not have it. The new branch becomes the active one, unless `activate=False`. With `expected`, the mark
        of a history or of an append, it raises VersionConflict if that branch changed since.

        Raises ThreadNotFound, BranchNotFound, MessageNotFound, and RuleViolation if a shared message is still partial
        or, unless the thread is lenient, if a shared call has no result yet. Also LimitExceeded, if the thread has
        1,000 branches or the path 99 forks; `threads.copy` makes a thread without.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        require(BOOL, activate=activate)
        require(STR_OR_NONE, expected=expected)
        place = read_place(thread_id, at, named="at")
        return await fork_at(self._scope, thread_id, place, branch=branch, activate=activate, expected=expected)

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
        return await branches_of(self._scope, thread_id)

    async def get(self, thread_id: str, branch: int | None = None) -> Branch:
        """A branch (None: the active one), with its mark, without reading messages. Raises ThreadNotFound and
        BranchNotFound.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        window = Window.of(self._scope.tenant, thread_id, branch)
        return await self._scope.read(lambda sql: get_branch(sql, window))
