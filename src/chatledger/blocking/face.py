"""Creates a synchronous class for each class with public calls. It has the same calls with the same arguments.

A call runs in the loop of the ledger's own thread, and the caller's thread waits for it. An async iterator becomes
a generator, and an asynchronous context manager one for `with`. `__init__.pyi` declares the types.
"""

from __future__ import annotations

import atexit
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context, ContextVar, Token, copy_context
from functools import update_wrapper, wraps
from types import TracebackType
from typing import Any, Self, cast

from chatledger import ledger as asynchronous
from chatledger.errors import StorageError
from chatledger.repositories.answers import Answer, AnswerRepository
from chatledger.repositories.branches import BranchRepository
from chatledger.repositories.drafts import DraftRepository
from chatledger.repositories.erasures import ErasureRepository
from chatledger.repositories.feedback import FeedbackRepository
from chatledger.repositories.kv import KvRepository
from chatledger.repositories.messages import MessageRepository
from chatledger.repositories.runs import RunRepository
from chatledger.repositories.threads import ThreadRepository
from chatledger.storage.databases.loops.loop_thread import LoopThread
from chatledger.storage.drafts.draft import Draft as AsynchronousDraft
from chatledger.telemetry.calls import VIEWS

_END = object()
_EXIT_TIMEOUT = 1.0
"""Seconds to wait at process exit for running calls of a ledger that was not closed."""


class Face:
    """An asynchronous object whose calls need no `await`."""

    def __init__(self, target: Any, thread: LoopThread) -> None:
        self._target = target
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        """An attribute of the asynchronous object, such as a repository or a field of a draft."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _faced(getattr(self._target, name), self._thread)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._target) if not name.startswith("_"))})


class Block:
    """An asynchronous context manager for `with`. It is entered and left in one context, as in one task. Inside the
    block, the caller's context has the variables that entering it set: the open transaction, the current span.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Any], thread: LoopThread) -> None:
        self._manager = manager
        self._thread = thread
        self._set: list[tuple[ContextVar[Any], Token[Any]]] = []

    def __enter__(self) -> Any:
        entered: list[Any] = []

        async def enter() -> None:
            entered.append(await self._manager.__aenter__())

        self._context = copy_context()
        try:
            self._thread.run(enter, context=self._context)
        except BaseException as error:
            if entered:  # an interrupt arrived after the block was entered
                self._leave(type(error), error, error.__traceback__)
            raise
        self._set = [(name, name.set(value)) for name, value in _differing(self._context)]
        return _faced(entered[0], self._thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        for name, token in reversed(self._set):
            with suppress(ValueError):  # the block is left in another thread than it was entered in
                name.reset(token)
        return self._leave(kind, error, traceback)

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._thread.run(lambda: self._manager.__aexit__(kind, error, traceback), context=self._context)


def _differing(context: Context) -> list[tuple[ContextVar[Any], Any]]:
    return [(name, value) for name, value in context.items() if name.get(_END) is not value]


def _iterate(items: Any, thread: LoopThread) -> Iterator[Any]:
    context = copy_context()

    async def step() -> Any:
        return await anext(items, _END)

    try:
        while (item := thread.run(step, context=context)) is not _END:
            yield item
    finally:
        if thread.is_here or thread.forked:  # garbage collection runs there, and waiting would hang
            thread.begin(items.aclose)
        else:
            with suppress(StorageError):  # the ledger is closed, which ended the iteration
                thread.run(items.aclose, context=context)


def _faced(value: Any, thread: LoopThread) -> Any:
    """The synchronous face of a value that has one, else the value itself."""
    for kind in type(value).__mro__:  # an observed class is a subclass
        if kind in FACES:
            return FACES[kind](value, thread)
    if isinstance(value, AsyncIterator):
        return _iterate(value, thread)
    return Block(value, thread) if isinstance(value, AbstractAsyncContextManager) else value


def _without_await(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__

    @wraps(function)
    def call(self: Face, *args: Any, **kwargs: Any) -> Any:
        target: Any = self._target

        async def work() -> Any:
            result = getattr(target, name)(*args, **kwargs)
            return await result if inspect.iscoroutine(result) else result

        return _faced(self._thread.run(work), self._thread)

    @wraps(function)
    def view(self: Face, *args: Any, **kwargs: Any) -> Any:
        return _faced(getattr(self._target, name)(*args, **kwargs), self._thread)

    return view if name in VIEWS else call


def _face(kind: type[Any], base: type[Face] = Face) -> type[Any]:
    """A synchronous class with the public calls and properties of `kind`."""
    members: dict[str, Any] = {
        "__doc__": kind.__doc__,
        "__module__": "chatledger.blocking",
        "__qualname__": kind.__name__,
    }
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_") or hasattr(base, name):
            continue
        if inspect.isfunction(member):
            members[name] = _without_await(member)
        elif isinstance(member, property):
            members[name] = _property(name, member)
    return type(kind.__name__, (base,), members)


def _property(name: str, member: property) -> property:
    return property(lambda self: getattr(self._target, name), doc=member.__doc__)


class _Entered(Face):
    """The base of a draft, which is its own context manager."""

    def __enter__(self) -> Self:
        self._block = Block(self._target, self._thread)
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, traceback)


class _Transaction(Face):
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None


_OPEN: set[_Ledger] = set()
"""The ledgers that `open` returned and that are not closed yet."""


class _Ledger(_Transaction):
    @classmethod
    def open(cls, *args: Any, **kwargs: Any) -> Self:
        thread = LoopThread("chatledger-blocking")

        async def opened() -> asynchronous.Ledger:
            return await asynchronous.Ledger.open(*args, **kwargs)

        try:
            ledger = cls(thread.run(opened), thread)
        except BaseException:
            thread.stop()
            raise
        _OPEN.add(ledger)
        return ledger

    def close(self, *, timeout: float | None = None) -> None:
        if self not in _OPEN or self._thread.forked:  # in a forked process the connections belong to the parent
            return
        self._thread.run(lambda: self._target.close(timeout=timeout))
        _OPEN.discard(self)
        self._thread.stop()

    def __exit__(self, *error: object) -> None:
        self.close()


Ledger = _face(asynchronous.Ledger, _Ledger)
update_wrapper(Ledger.open.__func__, cast(Any, asynchronous.Ledger.open).__func__)
update_wrapper(Ledger.close, asynchronous.Ledger.close)
Transaction = _face(asynchronous.Transaction, _Transaction)
Draft = _face(AsynchronousDraft, _Entered)

FACES: dict[type[Any], type[Any]] = {
    asynchronous.Ledger: Ledger,
    asynchronous.Transaction: Transaction,
    AsynchronousDraft: Draft,
    **{
        kind: _face(kind)
        for kind in (
            ThreadRepository,
            MessageRepository,
            BranchRepository,
            RunRepository,
            FeedbackRepository,
            ErasureRepository,
            DraftRepository,
            KvRepository,
            AnswerRepository,
            Answer,
        )
    },
}


@atexit.register
def _close_all() -> None:
    for ledger in list(_OPEN):
        with suppress(Exception):
            cast(Any, ledger).close(timeout=_EXIT_TIMEOUT)
