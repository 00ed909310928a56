from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from chatledger import Ledger
from chatledger.message_file import MessageFile

Reopen: TypeAlias = Callable[[], Awaitable[MessageFile]]

WEATHER: dict[str, Any] = {"models": ["small", "large"], "context_window": 8000, "system_prompt": "Be brief."}


@pytest.fixture
async def reopen(ledger: Ledger) -> Reopen:
    """Another reader's view of the same file."""
    await ledger.threads.create("t")

    async def opened() -> MessageFile:
        return await MessageFile.open(ledger, "t")

    return opened


@pytest.fixture
async def file(reopen: Reopen) -> MessageFile:
    """A file with a default agent, nothing of it saved."""
    opened = await reopen()
    opened.add_agent_with_definition("weather", WEATHER)
    opened.set_default_agent("weather")
    return opened
