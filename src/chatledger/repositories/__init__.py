"""The repositories that a ledger and a transaction share, and the calls that take or return a provider's format.

Storage and formats do not import each other; they meet here. A format's module is imported on first use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from chatledger.annexes import load
from chatledger.arguments import (
    FUNCTION_OR_NONE,
    STR_OR_NONE,
    Kind,
    require,
)
from chatledger.errors import ChatLedgerError
from chatledger.models import FrameTable, LedgerStats, Progress, RunPrices
from chatledger.models.base import read_moment
from chatledger.repositories.answers import AnswerRepository
from chatledger.repositories.branches import BranchRepository
from chatledger.repositories.drafts import DraftRepository
from chatledger.repositories.erasures import ErasureRepository
from chatledger.repositories.feedback import FeedbackRepository
from chatledger.repositories.kv import KvRepository
from chatledger.repositories.messages import MessageRepository
from chatledger.repositories.runs import RunRepository
from chatledger.repositories.threads import ThreadRepository
from chatledger.rules import CheckedThread
from chatledger.storage.check.threads import check
from chatledger.storage.databases.scope import Scope
from chatledger.telemetry.calls import observed

if TYPE_CHECKING:
    import pyarrow

REPOSITORIES: Mapping[str, type[Any]] = {
    "threads": ThreadRepository,
    "messages": MessageRepository,
    "branches": BranchRepository,
    "runs": RunRepository,
    "feedback": FeedbackRepository,
    "erasures": ErasureRepository,
    "drafts": DraftRepository,
    "kv": KvRepository,
    "answers": AnswerRepository,
}
_TABLE = Kind("'messages', 'calls', 'runs' or 'scores'", words=get_args(FrameTable))


class Repositories:
    """The calls that a ledger and a transaction share."""

    threads: ThreadRepository
    """Creates, finds, lists, updates and deletes threads."""
    messages: MessageRepository
    """Appends messages, reads histories, and changes stored messages."""
    branches: BranchRepository
    """Forks, activates and rewinds the branches of a thread."""
    runs: RunRepository
    """Starts, finishes and lists the runs of agents."""
    feedback: FeedbackRepository
    """Records, lists and summarizes scores."""
    erasures: ErasureRepository
    """Erases threads, users and tenants, and finds their tombstones."""
    drafts: DraftRepository
    """Lists and interrupts messages that are still being written, or were abandoned."""
    kv: KvRepository
    """Values of the application under keys: of a thread, a user or the tenant."""
    answers: AnswerRepository
    """Starts, stops and resumes answers that outlive the request, and runs the agents that make them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *REPOSITORIES]

    if not TYPE_CHECKING:  # to a type checker, every name would be one of Any

        def __getattr__(self, name: str) -> Any:
            """Make a repository when it is first used: the server makes a view of a user for each request."""
            if name not in REPOSITORIES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            repository = observed(REPOSITORIES[name], name, self._scope.observer)(self._scope)
            setattr(self, name, repository)
            return repository

    def check(self, thread_id: str | None = None, *, progress: Progress | None = None) -> AsyncIterator[CheckedThread]:
        """Check every thread in the order of their ids, or only the given one, and yield each with its findings: cells
        of all tables that cannot be read and, on the active branch, broken rules, R13 included, and open calls or a
        partial message at its end. At the end, damaged values of users and of the tenant, which are in no thread, come
        under the `thread_id` None.

        Reads every row of the tenant. Threads are read in batches, so memory stays bounded, and the number of
        statements grows with the number of batches. A damaged cell does not stop the check. `progress` receives the
        number of threads done and the number of all threads.

        Raises ThreadNotFound for the given thread, EncryptionError, and TenantOnly for all threads on a user's ledger.
        """
        require(STR_OR_NONE, thread_id=thread_id)
        require(FUNCTION_OR_NONE, progress=progress)
        if thread_id is None:
            self._scope.refuse_view("check of all threads")
        return check(self._scope, thread_id, progress)

    def frames(
        self,
        table: FrameTable,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Rows as Arrow record batches, which needs the extra `frames`: "messages" and "calls" of the active branch of
        each thread (a call with the result that answers it there), in the order of the threads' creation and of seq;
        "runs" in the order of their ids; "scores", those that count, in the order of the runs' ids and of time. The
        guide *Data frames and Parquet* lists the columns.

        A row fits each filter that is given. `since` and `until` are about the time of the message, of the message with
        the call, of the start of the run, or of the score; a row at `since` is included, one at `until` is not. `agent`
        and `model` are those of the run, so a message without a run fits neither. Texts are decrypted where the ledger
        has keys.

        A batch has at most 1,000 rows, and memory holds one batch. Each batch is read by itself, and is a consistent
        state; rows that are written meanwhile may be in a later batch. A row that cannot be read is passed to
        `on_damage` as its error, and left out. Without `on_damage` the error is raised.

        The types of columns are the same in every batch, and columns are added at the end only. Times are timestamps in
        UTC with microseconds, JSON is text, and half of a surrogate pair, which Arrow cannot hold, becomes U+FFFD.
        """
        require(_TABLE, table=table)
        require(STR_OR_NONE, model=model, agent=agent)
        require(FUNCTION_OR_NONE, on_damage=on_damage)
        chosen = (read_moment("since", since), read_moment("until", until), model, agent)
        read_frames = load("chatledger.reports.frames:read_frames", "ledger.frames")
        batches: AsyncIterator[pyarrow.RecordBatch] = read_frames(self._scope, table, chosen, on_damage)
        return batches

    async def stats(
        self,
        by: Literal["day", "model"] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[LedgerStats]:
        """How many messages, threads, users, runs, tokens and scores there are, and what they cost: in one sum, or by
        day (in UTC) or model, in this order, None last.

        Messages and scores count by the time at which they were created, runs by that at which they started. One at
        `since` is included, one at `until` is not. `prices` is that of
        `runs.usage`. Three statements, which read each message, run and score that is chosen.
        """
        moments = (read_moment("since", since), read_moment("until", until))
        read_stats = load("chatledger.reports.stats:read_stats", "ledger.stats")
        counts: Sequence[LedgerStats] = await read_stats(self._scope, by, moments, prices)
        return counts


def scope_of(ledger: Repositories) -> Scope:
    """The scope of a ledger or a transaction, for the parts of the library that call the functions of storage."""
    return ledger._scope  # noqa: SLF001 - the one place that reaches it from outside
