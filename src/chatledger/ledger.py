"""Ledger and Transaction: storage joined to a lifetime.

A Ledger is a database that this process opened; each call on it is a transaction of its own. A Transaction is several
calls with one commit, on the ledger's connection or on the caller's. Both have the same nouns.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from chatledger.errors import StorageError
from chatledger.models import Appended, ChatMessage, FormattedHistory, Limits, Repair, RulesLevel
from chatledger.storage.agents import AgentRepository
from chatledger.storage.branches import BranchRepository
from chatledger.storage.caller import ConnectionWork
from chatledger.storage.database import Database, Work
from chatledger.storage.drafts import INTERVAL, SIZE, Draft, Pace
from chatledger.storage.engine import read_url
from chatledger.storage.erasures import ErasureRepository
from chatledger.storage.feedback import FeedbackRepository
from chatledger.storage.messages import MessageRepository
from chatledger.storage.opening import only_postgresql, open_engine, open_postgresql, open_replica, open_sqlite
from chatledger.storage.outputs import OutputRepository
from chatledger.storage.partials import PartialRepository
from chatledger.storage.pooled import PostgresqlDatabase
from chatledger.storage.replica import Replica, TenantReplica
from chatledger.storage.request import LEASE, AppendRequest, closes_calls, make_request
from chatledger.storage.runs import RunRepository
from chatledger.storage.scope import TenantScope
from chatledger.storage.sql import OneStatement, Sql
from chatledger.storage.tables import SCHEMA
from chatledger.storage.text import encode_key, encode_text
from chatledger.storage.threads import ThreadRepository
from chatledger.storage.tokens import CountTokens

T = TypeVar("T")

DEFAULT_TENANT = "default"


class Nouns:
    """The repositories of one scope, and the two calls that speak other people's formats."""

    def __init__(self, scope: TenantScope) -> None:
        encode_key(scope.tenant, "tenant")
        self._scope = scope
        self.threads = ThreadRepository(scope)
        self.messages = MessageRepository(scope)
        self.branches = BranchRepository(scope)
        self.runs = RunRepository(scope)
        self.feedback = FeedbackRepository(scope)
        self.outputs = OutputRepository(scope)
        self.agents = AgentRepository(scope)
        self.erasures = ErasureRepository(scope)
        self.partials = PartialRepository(scope)

    def stream(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        branch: int | None = None,
        expected_version: int | None = None,
        message_id: str | None = None,
        name: str | None = None,
        format: str | None = None,  # noqa: A002
        rules: RulesLevel | None = None,
        on_open_calls: Literal["error", "close"] = "error",
        interval: float = INTERVAL,
        size: int = SIZE,
        lease: float = LEASE,
    ) -> Draft:
        """An assistant message that is stored while it is said: `async with ledger.stream(…) as draft`, then
        `await draft.feed(delta)` for each piece.

        What was fed is written once `interval` seconds have gone by or `size` bytes have come. A normal exit completes
        the message, an exception or a cancellation marks it interrupted. If the process dies, others take the message
        for abandoned `lease` seconds after its last write: the next append interrupts it.

        `format`: the draft is fed with the events of a provider's stream (openai-chat, anthropic, openai-responses), as
        dicts or as the SDK's objects. Entering raises what `messages.append` raises; UnknownFormat is raised here.
        """
        from chatledger.formats.streams import get_stream

        decode = None if format is None else get_stream(format)
        if lease <= interval:
            raise ValueError("lease must be longer than interval")
        request = make_request(
            self._scope.tenant,
            thread_id,
            [ChatMessage(role="assistant", state="partial", message_id=message_id, name=name)],
            limits=self._scope.limits,
            run_id=run_id,
            branch=branch,
            expected_version=expected_version,
            rules=rules,
            default_rules=self._scope.rules,
            close_open_calls=closes_calls(on_open_calls),
            lease=lease,
        )
        return Draft(self._scope, request, pace=Pace(interval, size), decode=decode)

    async def append(
        self,
        thread_id: str,
        payload: object,
        *,
        format: str | None = None,  # noqa: A002 - the word of the design, of the tables and of the command line
        run_id: str | None = None,
        branch: int | None = None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        rules: RulesLevel | None = None,
        on_open_calls: Literal["error", "close"] = "error",
    ) -> Appended:
        """`messages.append` for a payload in a format: a list of its messages, dicts or the framework's own objects.

        Without `format` the payload is recognised, or UnknownFormat raised. DecodeError names the place of what is not
        of the format; nothing is written then.
        """
        from chatledger.formats import get_codec, recognise  # a format is loaded when it is used

        codec = recognise(payload) if format is None else get_codec(format)
        decoded = codec.decode(payload, rules=rules or self._scope.rules)
        return await self.messages.append(
            thread_id,
            decoded.messages,
            run_id=run_id,
            branch=branch,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
            rules=rules,
            on_open_calls=on_open_calls,
        )

    async def history(
        self,
        thread_id: str,
        *,
        format: str,  # noqa: A002
        view: Literal["stored", "model"] = "stored",
        as_: Literal["models", "dicts"] | None = None,
        carry: bool = False,
        branch: int | None = None,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        last: int | None = None,
        last_turns: int | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | None = None,
        run_id: str | None = None,
        user_id: str | None = None,
        partials: bool = True,
        min_position: str | None = None,
    ) -> FormattedHistory:
        """`messages.history` as another format writes it: `.payload` is what that format's own API takes.

        What was stored in the same format comes back as it was. For the rest, `.losses` says what the format cannot
        express; `carry` keeps that in a free slot of the format, where it has one. `as_` asks for the format's own
        objects or for dicts; by default it is what came in. `partials=False` is for what a model is to read: few
        formats can say that a message is still being written.

        `view="model"` is for sending: what the provider behind the format accepts, with each thing that was done to
        that end in `.repairs`. No row is changed, nothing is carried, and a history that the provider would have taken
        is given as it is stored. `max_tokens` then counts the stored messages, not what a repair adds. Raises
        UnknownFormat for a format that no provider stands behind.
        """
        from chatledger.formats import get_codec, in_kind
        from chatledger.formats.model_view import get_provider, model_view

        codec = get_codec(format)
        if view not in ("stored", "model"):  # another word would send a provider what it refuses
            raise ValueError(f"view must be 'stored' or 'model', not {view!r}")
        if view == "model":
            get_provider(codec.name)  # before anything is read
        history = await self.messages.history(
            thread_id,
            branch=branch,
            limit=limit,
            before=before,
            after=after,
            last=last,
            last_turns=last_turns,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            run_id=run_id,
            user_id=user_id,
            partials=partials,
            min_position=min_position,
        )
        repairs: Sequence[Repair] = ()
        if view == "model":
            encoded, repairs = model_view(codec, history.messages)
        else:
            encoded = codec.encode(history.messages, carry=carry)
        return FormattedHistory(
            payload=in_kind(codec, encoded.payload, history.messages, as_),
            messages=history.messages,
            version=history.version,
            losses=tuple(encoded.losses),
            repairs=tuple(repairs),
            next_cursor=history.next_cursor,
        )


class Ledger(Nouns):
    """A database of conversations, seen as one tenant. Made by `Ledger.open`; safe to share between tasks."""

    def __init__(self, work: _Guarded, scope: TenantScope, *, owner: bool) -> None:
        super().__init__(scope)
        self._work = work
        self._database = work.database
        self._owner = owner

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | None = None,
        *,
        engine: AsyncEngine | None = None,
        tenant: str = DEFAULT_TENANT,
        rules: RulesLevel = "strict",
        schema: str = SCHEMA,
        pooler: Literal["session", "transaction"] = "session",
        limits: Limits | None = None,
        migrate: bool | None = None,
        rls: bool | None = None,
        replica: str | AsyncEngine | None = None,
    ) -> Opening:
        """A ledger, by `async with Ledger.open(…) as ledger` or `ledger = await Ledger.open(…)` and `close()`.

        `url` is a path, `sqlite:///…` or `postgresql://…`; by default CHATLEDGER_URL, else ./chatledger.db. `engine` is
        the application's own instead, and is never disposed. A SQLite file is made, or brought up to date after a
        copy; on PostgreSQL the schema is left alone unless `migrate` is True. `rls=True` requires
        PostgreSQL's row-level security, which is told of the tenant in every transaction; by default it is if it is on.
        `replica`, the URL or engine of a standby, answers histories that are asked for with a `min_position`.

        Raises SchemaMismatch with the command that mends it, and StorageError if the database cannot be reached.
        """
        if url is not None and engine is not None:
            raise ValueError("give a url or an engine, not both")

        async def opened() -> Ledger:
            database = await _open_database(url, engine, schema, pooler, migrate, rls)
            standby = await _open_replica(replica, database, schema, pooler)
            work = _Guarded(database, standby)
            return cls(work, work.scope(tenant, rules, limits or Limits()), owner=True)

        return Opening(opened)

    def tenant(self, name: str) -> Ledger:
        """The same database seen as another tenant. Closing it does nothing: the pool is this ledger's."""
        scope = self._work.scope(name, self._scope.rules, self._scope.limits)
        return Ledger(self._work, scope, owner=False)

    async def position(self) -> str:
        """A place in the database's history that all that is committed by now comes before: give it to a reader as the
        `min_position` of its `history`. One round trip; on SQLite always the same, and always reached.
        """
        self._work.refuse_read()
        return await self._database.position()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        """Several writes, one commit: it commits on exit and rolls back on an exception.

        Write through what it gives, not through the ledger. On SQLite it holds the file's one write lock meanwhile.
        """
        self._work.refuse_write()
        async with self._database.transaction(encode_text(self._scope.tenant)) as work:
            begun = _Begun(self._database, outer=_innermost())
            token = _BEGUN.set(begun)
            try:
                scope = TenantScope(work, self._scope.tenant, self._scope.rules, self._scope.limits)
                yield Transaction.over(scope)
            finally:
                begun.open = False
                with suppress(ValueError):  # left in another context than it was entered in, as a test's fixture is
                    _BEGUN.reset(token)

    @property
    def has_server(self) -> bool:
        """Whether the database is a process of its own, which works while this one does something else."""
        return self._database.is_server

    async def close(self) -> None:
        """Give the connections back; an application's own engine keeps its own. The ledger is of no use after that."""
        if self._owner:
            _refuse_inside_transaction(self._database)
            self._work.closed = True
            await self._database.close()
            if self._work.replica is not None:
                await self._work.replica.database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class Transaction(Nouns):
    """Several calls, one commit. `tx.<noun>` is what `ledger.<noun>` is, inside this transaction.

    `Transaction(connection)` works in a transaction that the caller has begun on an AsyncConnection of theirs, and
    commits with it. Each call is a savepoint there: what is refused does not end the caller's transaction. With `rls`
    each call first tells row-level security of its tenant.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        *,
        tenant: str = DEFAULT_TENANT,
        rules: RulesLevel = "strict",
        schema: str = SCHEMA,
        limits: Limits | None = None,
        rls: bool = False,
    ) -> None:
        postgresql = connection.dialect.name == "postgresql"
        if rls and not postgresql:
            raise only_postgresql()
        secured = encode_key(tenant, "tenant") if rls else None
        work = ConnectionWork(connection, schema if postgresql else None, check=True, tenant=secured)
        super().__init__(TenantScope(work, tenant, rules, limits or Limits()))

    @classmethod
    def over(cls, scope: TenantScope) -> Transaction:
        """A transaction that the ledger began."""
        transaction = cls.__new__(cls)
        Nouns.__init__(transaction, scope)
        return transaction

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None


class Opening:
    """A ledger that is about to be opened: await it, or enter it."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened
        self._ledger: Ledger | None = None

    def __await__(self) -> Generator[Any, None, Ledger]:
        return self._opened().__await__()  # type: ignore[no-any-return]

    async def __aenter__(self) -> Ledger:
        self._ledger = await self
        return self._ledger

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._ledger is not None
        await self._ledger.close()


async def _open_database(
    url: str | os.PathLike[str] | None,
    engine: AsyncEngine | None,
    schema: str,
    pooler: str,
    migrate: bool | None,
    rls: bool | None,
) -> Database:
    if engine is not None:
        return await open_engine(engine, schema=schema, rls=rls)
    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        if rls:
            raise only_postgresql()
        return await open_sqlite(address, migrate=migrate is not False)
    return await open_postgresql(address, schema=schema, pooler=pooler, migrate=migrate is True, rls=rls)


async def _open_replica(
    replica: str | AsyncEngine | None, database: Database, schema: str, pooler: str
) -> Replica | None:
    if replica is None:
        return None
    if not isinstance(database, PostgresqlDatabase):
        raise StorageError("a replica is PostgreSQL's; a SQLite file has none")
    try:
        return open_replica(replica, schema=schema, pooler=pooler, rls=database.rls)
    except BaseException:
        await database.close()
        raise


# --- The ledger inside its own transaction ----------------------------------------------------------------------------


class _Begun:
    """A transaction that this task, or one that started it, has open on a database."""

    __slots__ = ("database", "open", "outer")

    def __init__(self, database: Database, *, outer: _Begun | None) -> None:
        self.database = database
        self.open = True
        self.outer = outer


_BEGUN: ContextVar[_Begun | None] = ContextVar("chatledger_begun", default=None)


def _innermost() -> _Begun | None:
    """The transaction that is open here and was begun last; one of another ledger may be open around it."""
    begun = _BEGUN.get()
    while begun is not None and not begun.open:
        begun = begun.outer
    return begun


def _refuse_inside_transaction(database: Database) -> None:
    """On SQLite such a write would wait for ever for the transaction around it; elsewhere it would not be in it."""
    begun = _innermost()
    while begun is not None:
        if begun.open and begun.database is database:
            raise StorageError("inside `async with ledger.begin() as tx` write through tx, not through the ledger")
        begun = begun.outer


class _Guarded:
    """The ledger's database, which takes no write inside an open `begin()`, and nothing after the end."""

    def __init__(self, database: Database, replica: Replica | None) -> None:
        self.database = database
        self.replica = replica
        self.closed = False

    def scope(self, tenant: str, rules: RulesLevel, limits: Limits) -> TenantScope:
        stored = encode_key(tenant, "tenant")
        work = _GuardedWork(self, self.database.seen_by(stored))
        replica = None
        if self.replica is not None:
            replica = TenantReplica(self.replica, self.refuse_read, stored if self.replica.database.rls else None)
        return TenantScope(work, tenant, rules, limits, replica)

    def refuse_read(self) -> None:
        self._refuse_closed()
        if self.database.one_connection:  # a read waits for the transaction around it as a write does
            _refuse_inside_transaction(self.database)

    def refuse_write(self) -> None:
        self._refuse_closed()
        _refuse_inside_transaction(self.database)

    def _refuse_closed(self) -> None:
        """An engine that was disposed would quietly open connections anew, which nobody closes."""
        if self.closed:
            raise StorageError("this ledger is closed")


class _GuardedWork:
    """The ledger's own work for a tenant: each call a transaction."""

    def __init__(self, guard: _Guarded, work: Work) -> None:
        self._guard = guard
        self._work = work

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        self._guard.refuse_read()
        return await self._work.read(query, snapshot=snapshot)

    async def fetch(self, statement: OneStatement[T]) -> T:
        self._guard.refuse_read()
        return await self._work.fetch(statement)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        self._guard.refuse_write()
        return await self._work.write(command, single=single)

    async def append(self, request: AppendRequest) -> Appended:
        self._guard.refuse_write()
        return await self._work.append(request)
