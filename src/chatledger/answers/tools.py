"""Tools: what an agent hands them, and what becomes of what they return."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DraftLost, InvalidArgument, RunLost
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue, loads

UNKNOWN = "The tool was interrupted. It is unknown whether it ran."
"""The result of a call that an earlier attempt began, if the tool must not run again."""
ERASED = "The call was erased, so no tool runs for it."


class Pending(Exception):
    """Raised by a tool: leave the call open, and pause the answer until `answers.resume`."""

    reason: str | None
    """Why the tool waits, for whoever decides."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Call:
    """A call for a tool to run."""

    call_id: str
    """The id that the model gave it; empty if it gave none."""
    name: str
    """The name of the tool."""
    arguments: JsonValue
    """The arguments as JSON; a text that is no JSON stays a text."""
    idempotency_key: str
    """The same at each attempt, and known to nobody else: hand it to the effect."""
    again: bool
    """Whether an earlier attempt may have begun it."""
    approved: bool
    """Whether somebody approved it after `Pending`."""


def read_arguments(arguments: Any) -> JsonValue:
    if not isinstance(arguments, str):
        return arguments if arguments is not None else {}
    try:
        parsed: JsonValue = loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments
    return parsed


async def result_of(run_tool: Callable[[Call], Any], call: Call, timeout: float | None) -> ChatMessage:
    """Raises Pending."""
    try:
        async with asyncio.timeout(timeout):
            if inspect.iscoroutinefunction(run_tool):
                returned = await run_tool(call)
            else:  # a blocking tool must not keep the worker from its beats
                returned = await asyncio.to_thread(run_tool, call)
                returned = await returned if inspect.isawaitable(returned) else returned
    except (Pending, RunLost, DraftLost):
        raise
    except TimeoutError:
        text = f"The tool took longer than {timeout:g} seconds." if timeout is not None else "The tool timed out."
        return ChatMessage(role="tool", content=text, is_error=True)
    except Exception as error:
        return ChatMessage(role="tool", content=f"{type(error).__name__}: {error}", is_error=True)
    if isinstance(returned, ChatMessage):
        return returned
    if not isinstance(returned, str):
        raise InvalidArgument("run_tool", f"must return a text or a ChatMessage, not {type(returned).__name__}")
    return ChatMessage(role="tool", content=returned)
