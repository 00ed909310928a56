"""The files that a reader passes through for the two requests that clients make most."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from types import FrameType

import httpx

from tests.conftest import Database
from tests.distributed import DISTRIBUTED
from tests.storage.databases.test_call_depth import PACKAGE


async def files_of(ask: Callable[[], Awaitable[httpx.Response]]) -> set[str]:
    """The files whose functions a warm request runs in the event loop."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename.removeprefix(PACKAGE))

    for _ in range(3):
        assert (await ask()).is_success
    sys.setprofile(note)
    try:
        await ask()
    finally:
        sys.setprofile(None)
    return files


async def test_a_request_passes_few_files(client: httpx.AsyncClient, database: Database) -> None:
    body = {"messages": [{"role": "user", "content": "?"}], "create": True}
    append = await files_of(lambda: client.post("/v1/threads/t/messages", json=body))
    assert len({file for file in append if file.startswith("/repositories")}) == 2, sorted(append)
    one_table_a_statement = 2 if DISTRIBUTED and database.kind == "postgresql" else 0
    assert len(append) <= 46 + one_table_a_statement, sorted(append)
    history = await files_of(lambda: client.get("/v1/threads/t/messages?limit=10"))
    assert len({file for file in history if file.startswith("/repositories")}) == 2, sorted(history)
    assert len(history) <= 45, sorted(history)
