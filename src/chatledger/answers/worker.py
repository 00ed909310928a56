"""A worker: the part of a process that runs agents, keeps its answers, and continues those that others left."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from chatledger.answers.leases import Found, beat, claim, expire, forget_dead, look, to_end
from chatledger.answers.stop import Ending, end_answer, stop_answer
from chatledger.answers.stored import StoredAnswer
from chatledger.answers.turn import Agent, Paused, Turn, WentOn, has_open_calls
from chatledger.errors import ChatLedgerError, DraftLost, EncryptionError, RunLost, StorageError
from chatledger.ids import new_id
from chatledger.ledger import ledger_of
from chatledger.models import ChatMessage
from chatledger.models.secrets import masked_text
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.find import get_message
from chatledger.storage.schema.text import encode_key

_log = logging.getLogger("chatledger.answers")

AT_ONCE = 20
"""The most answers that a worker takes up after one look, so that several workers share what a dead one left."""
_REST = 60.0
"""Seconds between two looks for what seldom happens."""
WENT_ON = "the conversation went on"


@dataclass(slots=True)
class Working:
    """An answer that this worker makes."""

    answer: StoredAnswer
    task: asyncio.Task[None] | None = None
    turn: Turn | None = None


@dataclass(slots=True, eq=False)
class Worker:
    """Runs the agents of one `answers.serve`."""

    scope: Scope
    agents: Mapping[str, Agent]
    lease: float
    most: int
    attempts: int
    longest_pause: timedelta | None
    all_tenants: bool
    worker_id: str = field(default_factory=new_id)
    working: dict[tuple[str, str], Working] = field(default_factory=dict)
    """By tenant and run."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    leaving: bool = False
    _confirmed: float = 0.0
    """When the last beat that succeeded was sent, by `time.monotonic`."""
    _claims_from: float = 0.0
    """No answer is taken up before: after an outage, the others renew their leases first."""
    _left_out: dict[str, float] = field(default_factory=dict)
    """The tenants whose answers cannot be read here, as without keys, and until when they are left out."""
    _rested: float = -_REST

    # --- Its answers

    @property
    def free(self) -> int:
        return 0 if self.leaving else self.most - len(self.working)

    @property
    def is_here(self) -> bool:
        """Whether the loop that runs is the worker's."""
        return asyncio.get_running_loop() is self.loop

    def wake(self) -> None:
        """Look at once, from any loop."""
        with suppress(RuntimeError):  # its loop is closed
            self.loop.call_soon_threadsafe(self.woken.set)

    def serves(self, scope: Scope, agent: str) -> bool:
        same = self.all_tenants or scope.tenant.name == self.scope.tenant.name
        return same and agent in self.agents

    def find(self, scope: Scope, run_id: str) -> Working | None:
        return self.working.get((scope.tenant.name, run_id))

    async def hold(self) -> bool:
        """Make sure that the worker has a lease, before it gets its first answer. Whether it has one."""
        if time.monotonic() - self._confirmed < self.lease / 2:
            return True
        with suppress(ChatLedgerError):
            await self._beat()
            return True
        return False

    def work(
        self, scope: Scope, answer: StoredAnswer, question: ChatMessage | None = None, mark: str | None = None
    ) -> None:
        """Begin the attempt, in a task of its own."""
        key = (scope.tenant.name, answer.run.run_id)
        if key not in self.working:
            working = self.working[key] = Working(answer)
            working.task = asyncio.create_task(self._answer(scope, working, question, mark))

    # --- Its lease

    async def keep(self) -> None:
        """Renew the lease, give up what was lost, and take up what nobody works on."""
        await asyncio.sleep(random.uniform(0, self.lease / 4))  # noqa: S311 - only that processes do not beat together
        while True:
            began = time.monotonic()
            self.woken.clear()
            try:
                await self._keep_once()
            except ChatLedgerError as error:
                _log.warning("a worker could not look after its answers: %s", type(error).__name__)
                self._claims_from = time.monotonic() + self.lease
                if self.working and time.monotonic() - self._confirmed >= self.lease:
                    self._cancel(list(self.working))  # others may have taken them up
            except Exception:
                _log.exception("a worker failed to look after its answers")
            late = time.monotonic() - began
            if late > self.lease / 2:
                _log.warning("the look after answers took %.1f s of a lease of %.1f s", late, self.lease)
            pause = self.lease / 4 * random.uniform(0.9, 1.1)  # noqa: S311
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, pause)):
                    await self.woken.wait()

    async def _keep_once(self) -> None:
        if self.working:
            await self._beat()
        held = set(self.working)
        now = time.monotonic()
        self._left_out = {tenant: until for tenant, until in self._left_out.items() if until > now}
        most = min(AT_ONCE, self.free) if now >= self._claims_from else 0
        own, abandoned = await self._look(most)
        lost = [key for key, working in self.working.items() if key in held and working.answer.attempt != own.get(key)]
        self._cancel(lost)
        # An attempt of this worker may have ended without an end of its answer, while the database was away.
        again = [Found(*key, attempt, self.worker_id) for key, attempt in own.items() if key not in self.working]
        random.shuffle(abandoned)
        for left in [*again, *abandoned]:
            if self.free > 0:
                await self._take_up(left)
        if now - self._rested >= _REST:
            self._rested = now
            await self._rest()

    async def _beat(self) -> None:
        sent = time.monotonic()
        database, tenant = self.scope.here(), self.scope.tenant
        await database.write(tenant, lambda sql: beat(sql, self.worker_id, self.lease), single=True)
        self._confirmed = sent

    async def _look(self, most: int) -> tuple[dict[tuple[str, str], int], list[Found]]:
        tenant = None if self.all_tenants else self.scope.tenant.name
        agents, left_out = list(self.agents), list(self._left_out)
        read = await self.scope.here().read(
            self.scope.tenant,
            lambda sql: look(sql, self.worker_id, agents, tenant=tenant, most=most, left_out=left_out),
            snapshot=True,
        )
        own, abandoned = read
        return {(lease.tenant, lease.run_id): lease.attempt for lease in own}, abandoned

    async def _take_up(self, left: Found) -> None:
        if (left.tenant, left.run_id) in self.working or not await self.hold():
            return
        scope = self.scope.of_tenant(left.tenant)
        try:
            answer = await scope.write(lambda sql: claim(sql, scope.terms, left, self.worker_id, self.attempts))
        except RunLost:  # another worker was faster
            return
        except EncryptionError:
            self._left_out[left.tenant] = time.monotonic() + _REST
            _log.warning("the answers of a tenant cannot be read here: its keys are missing")
            return
        if answer is not None:
            _log.info("took up run %s, attempt %s", answer.run.run_id, answer.attempt)
            self.work(scope, answer)

    async def _rest(self) -> None:
        """Forget dead workers, and end what nobody goes on with."""
        if self.all_tenants:
            await self.scope.here().write(self.scope.tenant, forget_dead)
        longest, tenant = self.longest_pause, None if self.all_tenants else self.scope.tenant.name
        database = self.scope.here()
        over = await database.read(self.scope.tenant, lambda sql: to_end(sql, tenant, longest), snapshot=True)
        for owner, run_id, reason in over:
            scope = self.scope.of_tenant(owner)
            end = partial(stop_answer, terms=scope.terms, run_id=run_id, reason=reason)
            with suppress(ChatLedgerError):
                await scope.write(end)

    def _cancel(self, lost: Iterable[tuple[str, str]]) -> None:
        for key in lost:
            working = self.working.get(key)
            if working is not None and working.task is not None:
                working.task.cancel()

    # --- An attempt

    async def _answer(self, scope: Scope, working: Working, question: ChatMessage | None, mark: str | None) -> None:
        answer = working.answer
        owner = replace(scope, tenant=scope.tenant.seen_by(answer.user_id))
        try:
            ending = await self._attempt(owner, working, question, mark)
            if ending is not None:
                status, error = ending
                closes = working.turn is not None and has_open_calls(working.turn)
                thread = encode_key(answer.run.thread_id, "thread_id")
                await owner.write(
                    lambda sql: end_answer(sql, owner.terms, answer, status, error, closes=closes), moves=thread
                )
        except ChatLedgerError as failure:  # the lease ends, and another attempt goes on
            _log.warning("run %s could not be ended: %s", answer.run.run_id, type(failure).__name__)
        finally:
            self.working.pop((scope.tenant.name, answer.run.run_id), None)

    async def _attempt(
        self, owner: Scope, working: Working, question: ChatMessage | None, mark: str | None
    ) -> tuple[Ending, str | None] | None:
        """How the answer ends; None if it does not end by this attempt."""
        answer = working.answer
        try:
            if question is None:
                window = Window.of(owner.tenant, answer.run.thread_id)
                question = await owner.read(lambda sql: get_message(sql, window, answer.question_id), snapshot=True)
            turn = working.turn = Turn(ledger_of(owner), owner, answer, question, mark)
            await self.agents[answer.run.agent or ""](turn)
        except (Paused, RunLost, DraftLost):  # it waits, was stopped, or another attempt goes on
            return None
        except WentOn:
            return "cancelled", WENT_ON
        except Exception as failure:
            if isinstance(failure, StorageError) and failure.retryable:  # whoever finds the database again goes on
                return None
            _log.exception("run %s failed", answer.run.run_id)
            return "failed", masked_text(f"{type(failure).__name__}: {failure}")
        return "completed", None

    async def end(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Cancel tasks until they end: one whose cancellation was lost on the way is cancelled again after a lease."""
        left = set(tasks)
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=self.lease)

    async def leave(self) -> None:
        """Leave all answers, so that another worker continues them at once."""
        self.leaving = True
        await self.end([working.task for working in self.working.values() if working.task is not None])
        with suppress(ChatLedgerError):
            await self.scope.here().write(self.scope.tenant, lambda sql: expire(sql, self.worker_id), single=True)
