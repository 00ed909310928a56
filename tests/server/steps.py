"""Counts what the event loop does at once: nobody else is served meanwhile."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from asyncio import events
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

CALLS = 40_000
"""Most functions that a step of the loop may call: some milliseconds."""
CHARACTERS = 300_000
"""Most characters of JSON that a step of the loop may read or write: a millisecond."""


@dataclass(slots=True)
class Steps:
    """The most that one step of the loop did. A time would depend on what else the machine does."""

    calls: int = 0
    """Functions that were called."""
    characters: int = 0
    """Characters of JSON that were read or written."""
    _called: int = 0
    _written: int = 0

    @property
    def is_short(self) -> bool:
        return self.calls < CALLS and self.characters < CHARACTERS

    def _run(self, handle: Any) -> None:
        self._called = self._written = 0
        sys.setprofile(self._note)
        try:
            _RUN(handle)
        finally:
            sys.setprofile(None)
        self.calls = max(self.calls, self._called)
        self.characters = max(self.characters, self._written)

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self._called += 1

    def _noting(self, text: str) -> str:
        if threading.current_thread() is threading.main_thread():
            self._written += len(text)
        return text


_RUN = events.Handle._run


@asynccontextmanager
async def counted() -> AsyncIterator[Steps]:
    """The steps of the loop within the block."""
    steps = Steps()
    encode, decode = json.JSONEncoder.encode, json.JSONDecoder.decode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events.Handle, "_run", lambda handle: steps._run(handle))
        patch.setattr(json.JSONEncoder, "encode", lambda own, value: steps._noting(encode(own, value)))
        patch.setattr(json.JSONDecoder, "decode", lambda own, text, *rest: decode(own, steps._noting(text), *rest))
        await asyncio.sleep(0)  # so that a step begins here
        yield steps
        await asyncio.sleep(0)
