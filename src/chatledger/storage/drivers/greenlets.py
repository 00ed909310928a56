"""Plain code over an asynchronous driver: one greenlet for a whole unit of work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sqlalchemy.util import greenlet_spawn

from chatledger.storage.drivers.errors import translate

T = TypeVar("T")


async def in_greenlet(function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in a greenlet, where the driver may be awaited; the driver's errors come out as ours."""
    return await translated(greenlet_spawn(function, *arguments))


async def translated(work: Awaitable[T]) -> T:
    """The driver's errors come out as ours."""
    try:
        return await work
    except Exception as error:
        ours = translate(error)
        if ours is None:
            raise
        raise ours from error
