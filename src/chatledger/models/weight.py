"""What the event loop may do itself, and what goes to a thread so that other callers do not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel

from chatledger.models.messages import ToolCall

T = TypeVar("T")

LIGHT = 1_000
"""The weight of what the event loop handles in one step. A value weighs 1, and so do so many characters:"""
_CHARACTERS = 256
_PARSED = 4
"""Characters of the arguments of a call that weigh 1: a format may parse them, and values can be that short."""


def is_light(*values: object) -> bool:
    """Whether work on the values is short. Looks at no more of them than that."""
    left, pending = LIGHT, list(values)
    while pending and left > 0:
        item = pending.pop()
        left -= 1
        if isinstance(item, str):
            left -= len(item) // _CHARACTERS
            continue
        if isinstance(item, ToolCall) and isinstance(item.arguments, str):
            left -= len(item.arguments) // _PARSED
        if isinstance(item, BaseModel):
            item = vars(item)
        if isinstance(item, Mapping) and len(item) < left:
            pending += item
            pending += item.values()
        elif isinstance(item, (list, tuple)) and len(item) < left:
            pending += item
        elif isinstance(item, (Mapping, list, tuple)):
            return False
    return left > 0


async def apart(work: Callable[[], T], *values: object) -> T:
    """The result of work on the values: in a thread, unless they are light."""
    return work() if is_light(*values) else await asyncio.to_thread(work)
