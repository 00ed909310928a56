"""The arguments that calls had before 0.1.0. Who still passes one gets a TypeError that names the new way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_POSTGRESQL = ("schema", "pooler", "pool_size", "max_overflow", "replica", "rls", "distributed")
_OPEN = {name: f"pass postgresql=PostgreSQL({name}=…)" for name in _POSTGRESQL} | {
    "keys": "pass encryption=ring, or encryption=Encryption(function)",
    "plaintext": "pass encryption=Encryption(keys, plaintext=…)",
}
_EXPECTED = "pass expected=, the mark of what you have read, or 0 for a branch without a message"
_NEW_THREAD = {
    "after": "pass reply_to=message, or alternative_to=message in its place",
    "user_id": "call it on ledger.user(user_id)",
    "kind": "pass create=NewThread(kind=…)",
    "title": "pass create=NewThread(title=…)",
}

REMOVED: Mapping[str, Mapping[str, str]] = {
    "open": _OPEN | {"engine": "pass the engine in place of the URL: open(engine)"},
    "Transaction": _OPEN,
    "append": {
        "payload": "pass messages=Payload(value, format)",
        "format": "pass a Payload: append(thread_id, Payload(value, format))",
        "kv_expected": "pass kv={key: Put(value, expected=…)}",
        "expected_version": _EXPECTED,
        **_NEW_THREAD,
    },
    "history": {
        "min_position": "read from ledger.replica(position)",
        "newest": "pass a window: history(thread_id, Newest(count))",
        "last": "pass a window: history(thread_id, Turns(count)) or Tokens(budget)",
        "limit": "pass a window: history(thread_id, Oldest(count)) or Newest(count)",
        "before": "pass it in the window: Newest(count, before=…)",
        "after": "pass it in the window: Oldest(count, after=…)",
        "last_turns": "pass a window: history(thread_id, Turns(count))",
        "max_tokens": "pass a window: history(thread_id, Tokens(budget))",
        "count_tokens": "pass it in the window: Tokens(budget, count)",
        "partials": "drafts are never among the messages; history.draft has the one at the end",
        "user_id": "read through ledger.user(user_id)",
        "format": "write the history: (await history(thread_id)).encode(format)",
        "view": "call messages.prompt(thread_id, format)",
    },
    "stream": {
        "expected_version": _EXPECTED,
        **_NEW_THREAD,
        "message_id": "pass message=ChatMessage.assistant(message_id=…)",
        "name": "pass message=ChatMessage.assistant(name=…)",
        "interval": "pass pace=Pace(interval=…)",
        "size": "pass pace=Pace(size=…)",
        "lease": "pass pace=Pace(lease=…)",
    },
}
"""By call, what to write in place of each argument that it lost. An argument goes in here with the commit that removes
it: `tests/storage/repositories/test_removed.py` refuses an entry that a call still takes.
"""


def names_removed(call: str) -> Callable[[F], F]:
    """Of a call that refuses an argument because it lost it, say what to pass. A call that is right pays nothing but
    one more Python call, and type checkers see the signature as it is.
    """
    removed = REMOVED[call]

    def decorate(function: F) -> F:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError:
                name = next((name for name in kwargs if name in removed), None)
                if name is None:
                    raise
            raise TypeError(f"{call}() has no {name}: {removed[name]}")

        if inspect.iscoroutinefunction(function) and hasattr(inspect, "markcoroutinefunction"):  # Python 3.12
            inspect.markcoroutinefunction(called)
        return cast(F, called)

    return decorate
