# Made by `python -m tests.blocking.stub` of the asynchronous classes, whose docstrings say what each call does.

import os
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow
from sqlalchemy.ext.asyncio import AsyncEngine

from chatledger.errors import ChatLedgerError
from chatledger.models import (
    Alternative,
    Appended,
    Branch,
    ChatMessage,
    Cursor,
    Deleted,
    Delta,
    Erasure,
    Feedback,
    FeedbackComparison,
    FeedbackSummary,
    FrameTable,
    Hit,
    KvValue,
    LedgerStats,
    Limits,
    Loss,
    Mark,
    Messages,
    Metrics,
    Newest,
    NewThread,
    OpenDraft,
    Page,
    Progress,
    Revision,
    RulesLevel,
    Run,
    RunPrices,
    RunStatus,
    Thread,
    ThreadChange,
    Tokens,
    Turns,
    Usage,
    UsageSummary,
)
from chatledger.models.json import JsonValue
from chatledger.models.kv import Put
from chatledger.models.windows import Window
from chatledger.repositories.erasures import Owner
from chatledger.repositories.history import History, Prompt, PromptFormat
from chatledger.repositories.threads import Unset
from chatledger.rules import CheckedThread
from chatledger.storage.append.request import OnOpenCalls
from chatledger.storage.databases.postgresql.options import PostgreSQL
from chatledger.storage.drafts.draft import Pace
from chatledger.storage.lists.thread_list import ThreadOrder
from chatledger.storage.repositories.kv import KvScope
from chatledger.storage.rows.keys import Encryption, KeyRing
from chatledger.telemetry.settings import OpenTelemetry

__all__ = ["Draft", "Ledger", "Transaction", "open"]

class ThreadRepository:
    def create(
        self,
        thread_id: str | None = None,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        rules: RulesLevel | None = None,
        created_at: datetime | None = None,
        exist_ok: bool = False,
        kind: str | None = None,
    ) -> Thread: ...
    def copy(
        self,
        source: str,
        thread_id: str | None = None,
        *,
        until: ChatMessage | str | None = None,
        branch: int | None = None,
        title: str | Unset | None = ...,
    ) -> Thread: ...
    def get(self, thread_id: str) -> Thread: ...
    def find(self, thread_id: str) -> Thread | None: ...
    def update(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = ...,
        metadata: dict[str, Any] | Unset | None = ...,
        rules: RulesLevel | Unset | None = ...,
        archived: bool | Unset = ...,
        merge: bool = False,
        expected: int | None = None,
    ) -> Thread: ...
    def delete(self, thread_id: str, *, dry_run: bool = False) -> Deleted: ...
    def delete_inactive(
        self,
        *,
        older_than: timedelta | datetime,
        dry_run: bool = False,
        on_batch: Callable[[Deleted], None] | None = None,
    ) -> Deleted: ...
    def list(
        self,
        *,
        kind: str | None = None,
        archived: bool | None = False,
        since: datetime | None = None,
        until: datetime | None = None,
        order: ThreadOrder = "active",
        newest_first: bool = True,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Thread]: ...
    def search(
        self, query: str, *, kind: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]: ...
    def count(
        self,
        *,
        kind: str | None = None,
        archived: bool | None = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int: ...

class MessageRepository:
    def append(
        self,
        thread_id: str,
        messages: Messages,
        *,
        create: bool | NewThread = False,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        expected: Mark | Literal[0] | None = None,
        branch: int | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        kv: Mapping[str, JsonValue | Put] | None = None,
    ) -> Appended: ...
    def stream(
        self,
        thread_id: str,
        *,
        format: str | None = None,
        message: ChatMessage | None = None,
        create: bool | NewThread = False,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        expected: Mark | Literal[0] | None = None,
        branch: int | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        resume: bool = False,
        pace: Pace = ...,
    ) -> Draft: ...
    def attach(self, thread_id: str, message_id: str, token: str) -> Draft: ...
    def sync(
        self,
        thread_id: str,
        messages: Messages,
        *,
        create: bool | NewThread = False,
        run_id: str | None = None,
        expected: Mark | None = None,
        branch: int | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        on_difference: Literal["error", "branch"] = "error",
    ) -> Appended: ...
    def history(
        self, thread_id: str, window: Window | None = None, *, branch: int | None = None, run_id: str | None = None
    ) -> History: ...
    def prompt(
        self,
        thread_id: str,
        format: PromptFormat,
        window: Turns | Tokens | Newest | None = None,
        *,
        branch: int | None = None,
    ) -> Prompt: ...
    def iterate(self, thread_id: str, *, branch: int | None = None) -> Generator[ChatMessage]: ...
    def follow(
        self, thread_id: str, *, cursor: Cursor | Mark | None = None, deltas: bool = False
    ) -> Generator[ThreadChange]: ...
    def get(self, thread_id: str, message_id: str) -> ChatMessage: ...
    def revise(self, thread_id: str, message: ChatMessage | str, new: ChatMessage) -> ChatMessage: ...
    def revisions(
        self, thread_id: str, message: ChatMessage | str, *, skip: int = 0, limit: int | None = None
    ) -> Sequence[Revision]: ...
    def find(self, message_id: str) -> Sequence[ChatMessage]: ...
    def erase(self, thread_id: str, message: ChatMessage | str, *, dry_run: bool = False) -> ChatMessage: ...
    def search(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        roles: Sequence[str] | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[Hit]: ...
    def pop(self, thread_id: str, *, branch: int | None = None, expected: Mark | None = None) -> ChatMessage | None: ...
    def rewind(
        self, thread_id: str, to: ChatMessage | str | None, *, branch: int | None = None, expected: Mark | None = None
    ) -> Sequence[ChatMessage]: ...
    def alternatives(self, thread_id: str, message: ChatMessage | str) -> Sequence[Alternative]: ...
    def remove(self, thread_id: str, message: ChatMessage | str) -> ChatMessage: ...
    def close_open_calls(self, thread_id: str, *, reason: str = ..., branch: int | None = None) -> Appended: ...

class BranchRepository:
    def fork(
        self,
        thread_id: str,
        at: ChatMessage | str | None,
        *,
        branch: int | None = None,
        activate: bool = True,
        expected: Mark | None = None,
    ) -> Branch: ...
    def activate(self, thread_id: str, branch: int) -> Branch: ...
    def list(self, thread_id: str) -> Sequence[Branch]: ...
    def get(self, thread_id: str, branch: int | None = None) -> Branch: ...

class RunRepository:
    def start(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        input: JsonValue = None,
        metadata: dict[str, Any] | None = None,
    ) -> Run: ...
    def finish(
        self, run_id: str, *, status: RunStatus, usage: Usage | None = None, error: str | None = None
    ) -> Run: ...
    def get(self, run_id: str) -> Run: ...
    def find(self, run_id: str) -> Run | None: ...
    def delete(self, run_id: str) -> Deleted: ...
    def list(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Run]: ...
    def usage(
        self,
        by: str | Sequence[str] = ...,
        *,
        thread_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[UsageSummary]: ...

class FeedbackRepository:
    def record(self, feedback: Feedback | Any, *, idempotency_key: str | None = None) -> Feedback: ...
    def remove(self, feedback_id: str) -> Feedback: ...
    def list(
        self,
        *,
        run_id: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        key: str | None = None,
        events: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Feedback]: ...
    def summary(
        self,
        *,
        key: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
        user_id: str | None = None,
        events: bool = False,
    ) -> Sequence[FeedbackSummary]: ...
    def compare(
        self,
        key: str,
        by: str = "model",
        *,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> Sequence[FeedbackComparison]: ...

class ErasureRepository:
    def erase(self, owner: Owner, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure: ...
    def find(self, owner: Owner) -> Erasure | None: ...
    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Erasure]: ...

class DraftRepository:
    def list(self, *, abandoned_for: timedelta | float | None = None) -> Sequence[OpenDraft]: ...
    def interrupt(self, draft: OpenDraft) -> bool: ...

class KvRepository:
    def get(self, scope: KvScope, key: str) -> KvValue | None: ...
    def list(self, scope: KvScope, *, limit: int = 50, cursor: str | None = None) -> Page[KvValue]: ...
    def list_many(self, scopes: Sequence[KvScope], *, limit: int = 50) -> dict[KvScope, Page[KvValue]]: ...
    def put(
        self, scope: KvScope, key: str, value: JsonValue, *, merge: bool = False, expected: int | None = None
    ) -> KvValue: ...
    def delete(self, scope: KvScope, key: str, *, expected: int | None = None) -> bool: ...

class AnswerRepository:
    def serve(
        self,
        agents: Mapping[str, Callable[[Any], Awaitable[None]]],
        *,
        lease: float = 5.0,
        most: int = 100,
        attempts: int = 10,
        longest_pause: timedelta | None = None,
        all_tenants: bool = False,
    ) -> AbstractAsyncContextManager[None]: ...
    def start(
        self,
        thread_id: str,
        question: ChatMessage | str | None = None,
        *,
        agent: str | None = None,
        idempotency_key: str | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        when_live: Literal["error", "stop"] = "error",
        create: bool | NewThread = False,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Answer: ...
    def get(self, run_id: str) -> Answer: ...
    def stop(self, run_id: str) -> Run: ...
    def resume(
        self,
        run_id: str,
        results: Mapping[str, str | ChatMessage] | None = None,
        *,
        approve: Sequence[str] = ...,
        refuse: Mapping[str, str | None] | Sequence[str] = ...,
    ) -> Answer: ...

class Answer:
    run: Run
    question: ChatMessage
    mark: Mark
    replayed: bool
    waiting: Mapping[str, str | None]
    def wait(self) -> Run: ...
    def follow(self, *, cursor: Cursor | Mark | None = None, deltas: bool = True) -> Generator[ThreadChange]: ...

class Ledger:
    threads: ThreadRepository
    messages: MessageRepository
    branches: BranchRepository
    runs: RunRepository
    feedback: FeedbackRepository
    erasures: ErasureRepository
    drafts: DraftRepository
    kv: KvRepository
    answers: AnswerRepository
    def check(self, thread_id: str | None = None, *, progress: Progress | None = None) -> Generator[CheckedThread]: ...
    def frames(
        self,
        table: FrameTable,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> Generator[pyarrow.RecordBatch]: ...
    def stats(
        self,
        by: Literal["day", "model"] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[LedgerStats]: ...
    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | AsyncEngine | None = None,
        *,
        tenant: str = ...,
        rules: RulesLevel = "strict",
        limits: Limits | None = None,
        migrate: bool | None = None,
        timeout: float = ...,
        notify: bool = False,
        encryption: KeyRing | Encryption | None = None,
        postgresql: PostgreSQL | None = None,
        telemetry: OpenTelemetry | None = None,
        slow_call: float | None = None,
    ) -> Ledger: ...
    def tenant(self, name: str) -> Ledger: ...
    def user(self, user_id: str) -> Ledger: ...
    def replica(self, position: str) -> Ledger: ...
    def metrics(self) -> Metrics: ...
    def position(self) -> str: ...
    def ping(self, *, timeout: float = 2.0) -> float: ...
    def begin(self) -> AbstractContextManager[Transaction]: ...
    def reencrypt(self, *, progress: Progress | None = None) -> Mapping[str, int]: ...
    @property
    def has_server(self) -> bool: ...
    def close(self, *, timeout: float | None = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class Transaction:
    threads: ThreadRepository
    messages: MessageRepository
    branches: BranchRepository
    runs: RunRepository
    feedback: FeedbackRepository
    erasures: ErasureRepository
    drafts: DraftRepository
    kv: KvRepository
    answers: AnswerRepository
    def check(self, thread_id: str | None = None, *, progress: Progress | None = None) -> Generator[CheckedThread]: ...
    def frames(
        self,
        table: FrameTable,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> Generator[pyarrow.RecordBatch]: ...
    def stats(
        self,
        by: Literal["day", "model"] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[LedgerStats]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class Draft:
    messages: Sequence[ChatMessage]
    replayed: bool
    losses: Sequence[Loss]
    def __enter__(self) -> Self: ...
    @property
    def token(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def message(self) -> ChatMessage: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def finish_reason(self) -> str | None: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def unknown(self) -> Sequence[Any]: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def feed(self, delta: Delta | Any, *, offset: int | None = None) -> None: ...
    def flush(self) -> None: ...
    def complete(
        self, *, response_metadata: dict[str, Any] | None = None, custom_data: dict[str, Any] | None = None
    ) -> ChatMessage: ...
    def interrupt(self) -> ChatMessage: ...
    def leave(self) -> None: ...

open = Ledger.open
