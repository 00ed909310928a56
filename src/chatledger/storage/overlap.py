"""Work for the time in which the database is busy with a statement that was sent already."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@types.coroutine
def overlapping(work: Coroutine[Any, Any, R], meanwhile: Callable[[], T]) -> Generator[Any, Any, tuple[R, T]]:
    """Take `work` to where it first waits, call `meanwhile`, and go on with it: (its result, that of `meanwhile`).

    A task of its own would be sent off only after the loop's next turn, and so after `meanwhile`. What `meanwhile`
    raises is raised when `work` has ended, so that nothing is left half read.
    """
    made = None
    try:
        waits_for = work.send(None)
        made = _Made(meanwhile)
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # a cancellation, say: it is for the work to answer
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as end:
        return end.value, (made or _Made(meanwhile)).result()


class _Made:
    """What a function gave, or raised."""

    __slots__ = ("_error", "_value")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._error: Exception | None = None
        try:
            self._value = function()
        except Exception as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value
