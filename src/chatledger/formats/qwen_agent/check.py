"""The rules that the documentation states and the real package does not hold.

Real conversations break them (nameless results, calls with broken arguments), so they are never on by default:
`check` reports, and `model_validate(data, context=DOCUMENTED)` refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationInfo

from chatledger.formats.qwen_agent.constants import CONTENT_TYPES, FUNCTION, ROLES

if TYPE_CHECKING:
    from chatledger.formats.qwen_agent.calls import FunctionCall
    from chatledger.formats.qwen_agent.messages import Message

DOCUMENTED: dict[str, str] = {"rules": "documented"}
"""Validation context of the stricter rules. It strips the name of a call, and then refuses what `check` reports."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that the documentation does not allow, and where in the message it is."""

    path: str
    detail: str


def check(message: Message) -> list[Problem]:
    """What the documentation would not allow of the message, ours or the real one, in the order of its fields."""
    problems = list(_role_problems(message))
    for field in ("content", "reasoning_content"):
        problems += _item_problems(field, getattr(message, field))
    if message.function_call is not None:
        problems += call_problems(message.function_call, "function_call.")
    return problems


def call_problems(call: FunctionCall, prefix: str = "") -> list[Problem]:
    problems = []
    if not call.name.strip():
        problems.append(Problem(f"{prefix}name", "a function call needs a name"))
    elif call.name != call.name.strip():
        problems.append(Problem(f"{prefix}name", f"the name {call.name!r} has spaces around it"))
    if not _is_json(call.arguments):
        problems.append(Problem(f"{prefix}arguments", "the arguments are not JSON"))
    return problems


def is_documented(info: ValidationInfo) -> bool:
    return info.context is not None and info.context.get("rules") == DOCUMENTED["rules"]


def refuse(problems: Sequence[Problem]) -> None:
    """Raise ValueError, which Pydantic makes a ValidationError, if there is any problem."""
    if problems:
        raise ValueError("; ".join(f"{problem.path}: {problem.detail}" for problem in problems))


def _role_problems(message: Message) -> Iterator[Problem]:
    if message.role not in ROLES:
        yield Problem("role", f"the role {message.role!r} is none of {', '.join(ROLES)}")
    if message.role == FUNCTION and not message.name:
        yield Problem("name", "a function message needs the name of its function")


def _item_problems(field: str, items: Any) -> Iterator[Problem]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        given = [kind for kind in CONTENT_TYPES if getattr(item, kind) is not None]
        if len(given) != 1:
            yield Problem(f"{field}[{index}]", f"one kind of content is allowed, not {' and '.join(given) or 'none'}")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
