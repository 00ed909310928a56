"""The path of the two calls that people make most, on PostgreSQL: how many coroutines stack, and how many files a
reader passes. Each layer costs a reader more than it costs the processor, so none is added unseen.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import chatledger
from chatledger import Ledger, Newest, Oldest
from chatledger.types import Window
from tests.conftest import Database
from tests.conversations import turn

SMALL_WINDOWS: list[Window] = [Newest(8), Oldest(10), Newest(10, before=30)]
PACKAGE = str(Path(chatledger.__file__).parent)


@pytest.fixture
async def warm(pg_database: Database) -> AsyncIterator[Ledger]:
    """A warm ledger: it is connected, its statements are prepared, and the tip of the thread is cached."""
    async with Ledger.open(pg_database.url) as ledger:
        await ledger.threads.create("t")
        for _ in range(8):
            await ledger.messages.append("t", turn())
            for window in SMALL_WINDOWS:
                await ledger.messages.history("t", window, branch=0)
        yield ledger


def stacked(call: Any) -> list[str]:
    """Our coroutines from the call down to where it waits, along `cr_await`."""
    found: list[str] = []
    while isinstance(code := getattr(call, "cr_code", None), CodeType):
        if code.co_filename.startswith(PACKAGE):
            found.append(code.co_qualname)
        call = call.cr_await
    return found


async def followed(call: Coroutine[Any, Any, object]) -> tuple[list[str], set[str]]:
    """The coroutines that the call stacks at its deepest, and the files whose functions it runs."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename.removeprefix(PACKAGE))

    deepest: list[str] = []
    task = asyncio.ensure_future(call)
    sys.setprofile(note)
    try:
        while not task.done():
            await asyncio.sleep(0)
            deepest = max(deepest, stacked(call), key=len)
    finally:
        sys.setprofile(None)
    await task
    return deepest, files


async def test_an_append_stacks_at_most_seven_coroutines_and_passes_sixteen_files(warm: Ledger) -> None:
    coroutines, files = await followed(warm.messages.append("t", turn()))
    assert 4 <= len(coroutines) <= 7, coroutines
    assert len(files) <= 16, sorted(files)


@pytest.mark.parametrize("window", SMALL_WINDOWS, ids=["newest", "oldest", "page"])
async def test_a_small_history_stacks_five_coroutines_and_passes_fourteen_files(warm: Ledger, window: Window) -> None:
    coroutines, files = await followed(warm.messages.history("t", window, branch=0))
    assert 3 <= len(coroutines) <= 5, coroutines
    assert len(files) <= 14, sorted(files)  # the history that calls return is made above storage
