"""The transactions that are open in the running task, or in the task that started it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from chatledger.errors import StorageError
from chatledger.storage.databases.database import OpenDatabase


class Begun:
    """An open transaction on a database. One of another ledger may be open around it."""

    __slots__ = ("database", "open", "outer")

    def __init__(self, database: OpenDatabase, *, outer: Begun | None) -> None:
        self.database: OpenDatabase = database
        self.open: bool = True
        self.outer: Begun | None = outer


BEGUN: ContextVar[Begun | None] = ContextVar("chatledger_begun", default=None)


@contextmanager
def begun(database: OpenDatabase) -> Iterator[None]:
    transaction = Begun(database, outer=_innermost())
    token = BEGUN.set(transaction)
    try:
        yield
    finally:
        transaction.open = False
        with suppress(ValueError):  # the caller left it in another context than it entered, as test fixtures do
            BEGUN.reset(token)


def _innermost() -> Begun | None:
    """The open transaction that was begun last."""
    transaction = BEGUN.get()
    while transaction is not None and not transaction.open:
        transaction = transaction.outer
    return transaction


def is_inside_transaction() -> bool:
    """Whether a transaction is open, so that the task holds a connection, of whichever ledger."""
    return _innermost() is not None


def refuse_inside_transaction(database: OpenDatabase) -> None:
    """Raises StorageError if a transaction of this database is open."""
    transaction = _innermost()
    while transaction is not None:
        if transaction.open and transaction.database is database:
            raise StorageError(
                "a transaction of this ledger is open here (`async with ledger.begin() as tx`); until it ends, "
                "call tx and not the ledger"
            )
        transaction = transaction.outer
