"""What a token of scope `ask` may store: questions of its user, and nothing that claims to come from somebody else.

A route that such a token may call at all takes its ledger as `Asking`. Here is what such a route still refuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatledger.models import ChatMessage, OpaquePart, ThinkPart
from chatledger.server.callers.access import Caller
from chatledger.server.problems import OutOfScope

_OF_A_QUESTION = frozenset({"role", "content", "name", "message_id", "custom_data"})
_IGNORED = frozenset({"thread_id", "branch", "seq", "violations", "answers"})
"""Fields that an append ignores."""
_PLAIN = ChatMessage(role="user")
_NOT_A_PERSONS = (ThinkPart, OpaquePart)
"""Reasoning is a model's, and an opaque part may be anything to a format: reasoning, a call, a tool's result."""


def refuse_beyond_ask(caller: Caller, **fields: bool) -> None:
    """Raises OutOfScope with the name of the first field that is given, unless the caller may write."""
    if caller.may("write"):
        return
    for name, is_given in fields.items():
        if is_given:
            raise OutOfScope(caller.scope, "write", name)


def refuse_all_but_questions(
    caller: Caller, messages: Iterable[ChatMessage], *, of: str = "messages", besides: frozenset[str] = frozenset()
) -> None:
    """Raises OutOfScope for a message of another role than user, with a field that no question has, such as a run or
    the usage of a model, or with a part that no person writes. `besides` are further fields that may be set.
    """
    if caller.may("write"):
        return
    for index, message in enumerate(messages):
        if message.role != "user":
            raise OutOfScope(caller.scope, "write", f"{of}[{index}] with the role {message.role}")
        for name in message.model_fields_set - _OF_A_QUESTION - _IGNORED - besides:
            if getattr(message, name) != getattr(_PLAIN, name):
                raise OutOfScope(caller.scope, "write", f"{of}[{index}] with {name}")
        for part in message.content if isinstance(message.content, list) else ():
            if isinstance(part, _NOT_A_PERSONS):
                raise OutOfScope(caller.scope, "write", f"{of}[{index}] with content of the kind {_kind(part)}")


def _kind(part: ThinkPart | OpaquePart) -> str:
    """The kind as it was sent."""
    return f"{part.type or part.kind:.80}" if isinstance(part, OpaquePart) else part.kind
