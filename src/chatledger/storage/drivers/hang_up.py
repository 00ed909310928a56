"""Closes a connection without a goodbye, and asks the server to cancel the statement that it may still run.

A server notices that a client has gone only when it sends an answer. A statement that waits for a lock sends none, so
without the request its server process would wait on, and hold one of the server's connections.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

CANCEL_TIMEOUT = 2.0
"""Seconds that a cancel request may take."""
_requests: set[asyncio.Task[None]] = set()
"""Those under way, of all event loops."""


def hang_up(driver: Any) -> None:
    """Close an asyncpg connection. Does not wait: the cancel request takes a connection of its own."""
    # asyncpg stops its own request when the connection is closed, and keeps the key of the server process to itself. A
    # version of it that keeps the key elsewhere only closes the connection.
    with suppress(AttributeError):
        if not driver.is_closed():
            _request(driver._addr, driver._params, driver._protocol)  # noqa: SLF001
    driver.terminate()


def _request(address: Any, parameters: Any, protocol: Any) -> None:
    request = asyncio.get_running_loop().create_task(
        _cancel(address, parameters, protocol.backend_pid, protocol.backend_secret)
    )
    _requests.add(request)
    request.add_done_callback(_requests.discard)


async def _cancel(address: Any, parameters: Any, pid: int, secret: int) -> None:
    from asyncpg import connect_utils

    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CANCEL_TIMEOUT):
            loop = asyncio.get_running_loop()
            key = {"backend_pid": pid, "backend_secret": secret}
            await connect_utils._cancel(loop=loop, addr=address, params=parameters, **key)  # noqa: SLF001


async def until_cancelled() -> None:
    """Wait for the requests of this event loop, which may be about to end."""
    loop = asyncio.get_running_loop()
    own = [request for request in _requests if request.get_loop() is loop]
    if own:
        await asyncio.wait(own)
