"""What a ledger needs of a database, whichever it is.

A scope is where a repository's work happens: the ledger, where each call is a transaction of its own, or a transaction,
whose owner commits. It has four methods; a repository never opens, never commits and never sees which database it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from chatledger.models import Appended, Limits, RulesLevel
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.sql import OneStatement, Sql
from chatledger.storage.rows.encryption import Seal

T = TypeVar("T")


class Work(Protocol):
    """Runs storage functions, each in one visit to the database."""

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        """`snapshot`: the query is more than one statement, and all of them see one state."""
        ...

    async def fetch(self, statement: OneStatement[T]) -> T:
        """A read that needs no snapshot, since it is one statement where others may write between two."""
        ...

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        """In a transaction: whole or not at all. `single`: it is one statement where a statement is a round trip, so
        that it needs no other transaction than its own.
        """
        ...

    async def append(self, request: AppendRequest) -> Appended: ...


class Scope(Work, Protocol):
    """Work on behalf of one tenant."""

    async def read_at(self, position: str, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        """From the replica if there is one that has come to that position, else as `read`. Raises InvalidCursor."""
        ...

    @property
    def tenant(self) -> str: ...

    @property
    def rules(self) -> RulesLevel: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def seal(self) -> Seal | None:
        """What the tenant's words are sealed with; who works on this scope's Sql need not ask."""
        ...


class Database(Work, Protocol):
    """A database that a ledger opened."""

    one_connection: bool
    """Whether a read has to wait for an open transaction, because there is one connection for everything."""

    one_loop: bool
    """Whether it can be used in no event loop but that in which it was opened."""

    is_server: bool
    """Whether it is a process of its own, which works while this one does something else."""

    def seen_by(self, tenant: str) -> Work:
        """Work on behalf of one tenant, whose name comes as it is stored."""
        ...

    async def position(self) -> str:
        """Where the database is: what was committed up to now is before it."""
        ...

    def transaction(self, tenant: str) -> AbstractAsyncContextManager[Work]:
        """Several calls, one commit; an exception rolls all of them back."""
        ...

    async def close(self) -> None: ...
