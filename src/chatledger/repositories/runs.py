"""Starts, finishes and lists the runs of agents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from types import NoneType
from typing import Any, get_args

from chatledger.annexes import load
from chatledger.arguments import DICT_OR_NONE, INT, STR, STR_OR_NONE, Kind, require
from chatledger.errors import RunNotFound
from chatledger.ids import new_id
from chatledger.models import Deleted, Page, Run, RunPrices, RunStatus, Usage, UsageSummary
from chatledger.models.base import read_moment, refuse_own_fields, refusing
from chatledger.models.json import JsonValue
from chatledger.models.secrets import masked_text
from chatledger.models.weight import apart
from chatledger.storage.changes.deletion import delete_run
from chatledger.storage.databases.scope import Scope
from chatledger.storage.lists.cursors import page_size
from chatledger.storage.repositories.runs import find_run, finish_run, list_runs, start_run, without_secrets
from chatledger.storage.schema.text import encode_key

_STATUS = Kind("'running', 'completed', 'failed' or 'cancelled'", words=get_args(RunStatus))
_USAGE_OR_NONE = Kind("Usage or None", Usage, NoneType)


class RunRepository:
    """The runs of agents: `ledger.runs`, and `tx.runs` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def start(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        input: JsonValue = None,  # noqa: A002 - the column's name
        metadata: dict[str, Any] | None = None,
    ) -> Run:
        """Store a run with the status `running`, and return it.

            run = await ledger.runs.start(thread_id, agent="support", model="gpt-5", input={"question": "Tokyo?"})

        The ledger makes a `run_id` if you pass none. If the run exists, because an append named it first, the call
        fills in the fields that it lacks. Raises ThreadNotFound, and RunConflict if a field has another value already,
        or if the run belongs to another thread.

        Keys and passwords are never stored: a value in `input` or `metadata` under a name such as `api_key`,
        `authorization` or `password` becomes `"***"` (`SECRET_NAMES` in `chatledger.models.secrets`).
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, run_id=run_id, agent=agent, model=model)
        require(DICT_OR_NONE, metadata=metadata)
        with refusing():
            run = Run(
                run_id=new_id() if run_id is None else run_id,
                thread_id=thread_id,
                agent=agent,
                model=model,
                input=input,
                metadata=metadata,
                started_at=datetime.now(UTC),
            )
        run = await apart(lambda: without_secrets(run), run.input, run.metadata)
        encode_key(run.run_id, "run_id")
        encode_key(thread_id, "thread_id")
        return await self._scope.write(lambda sql: start_run(sql, self._scope.tenant, run))

    async def finish(
        self, run_id: str, *, status: RunStatus, usage: Usage | None = None, error: str | None = None
    ) -> Run:
        """End the run with a status, and return it. The same call again changes nothing.

            await ledger.runs.finish(run.run_id, status="completed", usage=Usage(input_tokens=812, output_tokens=96))

        Without `usage`, the run keeps the sum of its drafts: a draft with a run adds its provider's usage to the run
        when it ends. A given `usage` replaces that sum. If the ledger cancelled the run, because a draft of it was
        interrupted, the run can still be ended with another status. `error` says why it failed. It may quote a request,
        so text in it that looks like a key is stored as `"***"`.

        Raises RunNotFound, and RunConflict if the run has ended with another outcome.
        """
        require(STR, run_id=run_id)
        require(_STATUS, status=status)
        require(_USAGE_OR_NONE, usage=usage)
        if usage is not None:
            refuse_own_fields(usage, Usage, "usage", "its details")
        require(STR_OR_NONE, error=error)
        with refusing("usage"):
            usage = None if usage is None else Usage.model_validate(dict(usage))
        error = None if error is None else masked_text(error)
        run = await self._scope.write(lambda sql: finish_run(sql, self._scope.tenant, run_id, status, usage, error))
        self._scope.hint(encode_key(run.thread_id, "thread_id"))
        return run

    async def get(self, run_id: str) -> Run:
        """The run. Raises RunNotFound."""
        require(STR, run_id=run_id)
        run = await self.find(run_id)
        if run is None:
            raise RunNotFound(run_id)
        return run

    async def find(self, run_id: str) -> Run | None:
        """The run, or None if it does not exist."""
        require(STR, run_id=run_id)
        return await self._scope.read(lambda sql: find_run(sql, self._scope.tenant, run_id))

    async def delete(self, run_id: str) -> Deleted:
        """Delete the run for good, with its scores. Returns the number of rows by table. Its messages stay, and belong
        to no run; each branch of the thread gets another mark.

        Raises RunNotFound, and RunConflict while a message of it is being written or a call is open. Locks the thread.
        """
        require(STR, run_id=run_id)
        return await self._scope.write(lambda sql: delete_run(sql, self._scope.tenant, run_id), removes=True)

    async def list(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Run]:
        """A page of the runs of a thread, or of all runs, in the order of their ids. Ids that the ledger makes are in
        the order of time, to the millisecond.

        With `status`, only runs of that status. No index contains the status, so a page reads at most 10,000 runs to
        find them. It may therefore have fewer items than `limit`, or none, although more follow: read on while there is
        a `next_cursor`.

        `limit` is the maximum number of runs, 50 by default and 1,000 at most. The page's `damaged` has the errors of
        runs that cannot be read. Raises InvalidCursor and LimitExceeded.
        """
        require(STR_OR_NONE, thread_id=thread_id, cursor=cursor)
        if status is not None:
            require(_STATUS, status=status)
        require(INT, limit=limit)
        tenant, size = self._scope.tenant, page_size(limit)
        return await self._scope.read(lambda sql: list_runs(sql, tenant, thread_id, status, size, cursor))

    async def usage(
        self,
        by: str | Sequence[str] = (),
        *,
        thread_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[UsageSummary]:
        """The number of runs, their tokens and their cost, summed by the words of `by`: "user" (of the thread),
        "agent", "model", "day" (of the start, in UTC), "thread", "status" and "metadata.KEY", a key of the runs'
        metadata. Without a word, one sum of all. The list is in order of the groups, and a group of None comes last.

        A run that started at `since` is included, one that started at `until` is not. Sums are exact.

        With `prices=True`, the price list of the package genai-prices gives a cost, in dollars, to each run that has
        none: by its model, its input and output tokens, and the time of its start. It is an estimate, which takes the
        run for one request; `estimated_cost` says how much of `cost` is estimated. Nothing is stored, and no server is
        asked. Instead of True, `prices` can be a function: it gets the model, the usage and the time of the start, and
        returns a Decimal, or None if it does not know. Raises MissingExtra without the extra `prices`.

        One statement, which reads each chosen run. A key of the metadata takes a row for each run into memory, and a
        statement for 250 of them; `prices` takes a row for each run without a cost, and the price list about 80 µs for
        it. Raises DamagedCell if a cost or a value to group by cannot be read, and LimitExceeded if the different
        values of the metadata have more than 8 Mi characters.
        """
        require(STR_OR_NONE, thread_id=thread_id, agent=agent, model=model)
        chosen = (thread_id, agent, model, read_moment("since", since), read_moment("until", until))
        report_usage = load("chatledger.reports.usage:report_usage", "runs.usage")
        sums: Sequence[UsageSummary] = await report_usage(self._scope, by, chosen, prices)
        return sums
