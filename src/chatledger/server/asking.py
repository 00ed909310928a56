"""What a token of scope `ask` may store: questions of its user, and nothing that claims to come from somebody else.

A route that such a token may call at all takes its ledger as `Asking`. Here is what such a route still refuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatledger.models import ChatMessage
from chatledger.server.access import Caller
from chatledger.server.problems import OutOfScope

_OF_A_QUESTION = frozenset({"role", "content", "name", "message_id", "custom_data"})
_IGNORED = frozenset({"thread_id", "branch", "seq", "violations", "answers"})
"""Fields that an append ignores."""
_PLAIN = ChatMessage(role="user")


def refuse_beyond_ask(caller: Caller, **given: bool) -> None:
    """Raises OutOfScope with the name of the first field that is given, unless the caller may write."""
    if caller.may("write"):
        return
    for name, is_given in given.items():
        if is_given:
            raise OutOfScope(caller.scope, "write", name)


def refuse_all_but_questions(
    caller: Caller, messages: Iterable[ChatMessage], *, of: str = "messages", besides: frozenset[str] = frozenset()
) -> None:
    """Raises OutOfScope for a message of another role than user, or with a field that no question has, such as a run or
    the usage of a model. `besides` are further fields that may be set.
    """
    if caller.may("write"):
        return
    for index, message in enumerate(messages):
        if message.role != "user":
            raise OutOfScope(caller.scope, "write", f"{of}[{index}] with the role {message.role}")
        for name in message.model_fields_set - _OF_A_QUESTION - _IGNORED - besides:
            if getattr(message, name) != getattr(_PLAIN, name):
                raise OutOfScope(caller.scope, "write", f"{of}[{index}] with {name}")
