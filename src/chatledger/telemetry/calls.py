"""Observes public calls. Where somebody asked for it, a ledger is made of subclasses whose public calls are wrapped.

Each wrapper tells the observer of the ledger that the call begins and ends. A ledger without an observer is made of the
plain classes, so there a call costs nothing more.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import lru_cache, wraps
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

from chatledger.models import Thread

T = TypeVar("T")

Shape: TypeAlias = Literal["call", "block", "iteration"]
"""A block is a transaction or a draft. During a block and an iteration, the caller's own code runs as well."""
End: TypeAlias = Callable[[BaseException | None, str | None], None]
"""Told how the call ended: with which error, and of which thread it turned out to be."""

VIEWS = {"tenant", "user", "metrics", "prepare"}
"""Calls that ask the database for nothing."""

_log = logging.getLogger("chatledger.calls")


class Observer(Protocol):
    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        """Called with the name of the call, such as `messages.append`, and the thread that it names, if it does."""
        ...


class SlowCalls:
    """Logs the calls that take so many seconds or more. Blocks and iterations take as long as their caller likes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        began = time.monotonic()

        def end(error: BaseException | None, found: str | None) -> None:
            seconds = time.monotonic() - began
            if shape == "call" and seconds >= self._seconds:
                outcome = "returned" if error is None else f"raised {type(error).__name__}"
                _log.warning("%s of thread %s %s after %.3f seconds", name, shown(thread_id or found), outcome, seconds)

        return end


class Observers:
    """Several observers as one. The one that was told of the beginning first is told of the end last."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        ends = [observer.begin(name, thread_id, shape) for observer in self._observers]

        def end(error: BaseException | None, found: str | None) -> None:
            for one in reversed(ends):
                one(error, found)

        return end


def shown(thread_id: str | None) -> str:
    """A thread's id for a log: on one line, and not longer than a line."""
    return "-" if thread_id is None else ascii(thread_id[:80])


class _HasScope(Protocol):
    """What a repository, a ledger and a transaction have: a scope with the observer of the ledger."""

    _scope: Any


def observed(kind: type[T], noun: str, observer: Observer | None) -> type[T]:
    """The class itself, or a subclass that tells the observer. `noun`: the name before the dot; "" for a ledger."""
    return kind if observer is None else cast(type[T], _observed(cast(Any, kind), noun))


@lru_cache(maxsize=64)
def _observed(kind: type[Any], noun: str) -> type[Any]:
    functions = inspect.getmembers_static(kind, inspect.isfunction)
    place = noun and f"{noun}."
    calls = {
        name: _wrap(function, place + name)
        for name, function in functions
        if not name.startswith("_") and name not in VIEWS
    }
    return _subclass(kind, calls)


def _subclass(kind: type[Any], members: Mapping[str, Any]) -> type[Any]:
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), {**named, **members})


def _wrap(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    find_thread = _thread_finder(function)

    @wraps(function)
    async def call(self: _HasScope, *args: Any, **kwargs: Any) -> Any:
        end = self._scope.observer.begin(name, find_thread(args, kwargs), "call")
        try:
            result = await function(self, *args, **kwargs)
        except BaseException as error:
            end(error, None)
            raise
        end(None, result.thread_id if isinstance(result, Thread) else None)
        return result

    @wraps(function)
    def other(self: _HasScope, *args: Any, **kwargs: Any) -> Any:
        result, thread_id = function(self, *args, **kwargs), find_thread(args, kwargs)
        observer: Observer = self._scope.observer
        if isinstance(result, AsyncIterator):
            return _iterate(result, lambda: observer.begin(name, thread_id, "iteration"))
        assert isinstance(result, AbstractAsyncContextManager), name
        block: Any = result
        block.__class__ = _block(type(result))  # a draft stays a draft
        block.begin_observed = lambda: observer.begin(name, thread_id, "block")
        return block

    return call if inspect.iscoroutinefunction(function) else other


def _thread_finder(function: Callable[..., Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], str | None]:
    """Finds the argument `thread_id` in a call."""
    names = list(inspect.signature(function).parameters)[1:]
    if "thread_id" not in names:
        return lambda args, kwargs: None
    at = names.index("thread_id")

    def find(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        found = args[at] if len(args) > at else kwargs.get("thread_id")
        return found if isinstance(found, str) else None

    return find


async def _iterate(items: AsyncIterator[Any], begin: Callable[[], End]) -> AsyncIterator[Any]:
    end, failure = begin(), None
    try:
        async with aclosing(cast(Any, items)):
            async for item in items:
                yield item
    except GeneratorExit:  # the caller has had enough
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        end(failure, None)


@lru_cache(maxsize=64)
def _block(kind: type[Any]) -> type[Any]:
    """A subclass of a context manager that tells the observer when it is entered and left."""

    async def enter(self: Any) -> Any:
        self.end_observed = self.begin_observed()
        try:
            return await kind.__aenter__(self)
        except BaseException as error:
            self.end_observed(error, None)
            raise

    async def leave(self: Any, cause: Any, error: BaseException | None, traceback: Any) -> Any:
        try:
            done = await kind.__aexit__(self, cause, error, traceback)
        except BaseException as failure:
            self.end_observed(failure, None)
            raise
        self.end_observed(error, None)
        return done

    return _subclass(kind, {"__aenter__": enter, "__aexit__": leave})
