"""Observes public calls. A ledger with an observer is made of subclasses whose public calls are wrapped.

Each wrapper tells the ledger's observer when a call begins and ends. A ledger without an observer is made of the plain
classes, so its calls cost nothing extra.
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
"""A block is a transaction or a draft. During a block or an iteration, the caller's own code runs as well."""
End: TypeAlias = Callable[[BaseException | None, str | None], None]
"""Called at the end of a call with its error, if any, and the id of the thread that it returned, if any."""

VIEWS = {"tenant", "user", "replica", "metrics"}
"""Calls that send nothing to the database."""

_log = logging.getLogger("chatledger.calls")


class Observer(Protocol):
    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        """Called with the name of the call, such as `messages.append`, and the id of the thread in its arguments, or
        None.
        """
        ...


class SlowCalls:
    """Logs calls that take at least `seconds`. It ignores blocks and iterations, whose callers decide how long they
    take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        began = time.monotonic()

        def end(error: BaseException | None, thread_found: str | None) -> None:
            seconds = time.monotonic() - began
            if shape == "call" and seconds >= self._seconds:
                outcome = "returned" if error is None else f"raised {type(error).__name__}"
                _log.warning(
                    "%s of thread %s %s after %.3f seconds", name, shown(thread_id or thread_found), outcome, seconds
                )

        return end


class Observers:
    """Several observers as one. They are told of the end of a call in reverse order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        ends = [observer.begin(name, thread_id, shape) for observer in self._observers]

        def end(error: BaseException | None, thread_found: str | None) -> None:
            for end_of in reversed(ends):
                end_of(error, thread_found)

        return end


def shown(thread_id: str | None) -> str:
    """A thread's id for a log: on one line, with at most 80 characters of the id."""
    return "-" if thread_id is None else ascii(thread_id[:80])


class _HasScope(Protocol):
    """A repository, ledger or transaction: an object with a scope, which holds the ledger's observer."""

    _scope: Any


def observed(kind: type[T], noun: str, observer: Observer | None) -> type[T]:
    """The class itself, or with an observer a subclass that tells it of each call. `noun` is the part before the dot
    of a call's name; "" for a ledger.
    """
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

    return call if inspect.iscoroutinefunction(inspect.unwrap(function)) else other


def _thread_finder(function: Callable[..., Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], str | None]:
    """A function that finds the argument `thread_id` in the arguments of a call."""
    names = list(inspect.signature(function).parameters)[1:]
    if "thread_id" not in names:
        return lambda args, kwargs: None
    at = names.index("thread_id")

    def find(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        argument = args[at] if len(args) > at else kwargs.get("thread_id")
        return argument if isinstance(argument, str) else None

    return find


async def _iterate(items: AsyncIterator[Any], begin: Callable[[], End]) -> AsyncIterator[Any]:
    end, failure = begin(), None
    try:
        async with aclosing(cast(Any, items)):
            async for item in items:
                yield item
    except GeneratorExit:  # the caller stopped the iteration
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        end(failure, None)


@lru_cache(maxsize=64)
def _block(kind: type[Any]) -> type[Any]:
    """A subclass of a context manager that tells the observer when the block is entered and left."""

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
