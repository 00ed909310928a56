"""Calls whose values are wrong say in words what to write: what a type checker finds is in `tests/typing`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import ChatLedgerError, ChatMessage, Cursor, Ledger, Newest

MESSAGE = ChatMessage.user("x")
WRONG: dict[str, tuple[Callable[[Any, Any, ChatMessage], Awaitable[object]], str]] = {
    "a bare text": (
        lambda own, _, first: own.append("t", "Hello"),
        "messages is a text, which says not whose it is: pass ChatMessage.user(text)",
    ),
    "dicts": (
        lambda own, _, first: own.append("t", [{"role": "user", "content": "x"}]),
        "messages must be a list of ChatMessage, not of dict; Payload(…, format) takes other formats",
    ),
    "a number as a window": (
        lambda own, _, first: own.history("t", 50),
        "window must be Newest, Oldest, Turns or Tokens, not int",
    ),
    "a message as a position": (
        lambda own, _, first: own.history("t", Newest(5, before=first)),  # type: ignore[arg-type]
        "before must be a cursor, a mark or a seq; a message has .seq, not ChatMessage",
    ),
    "a text that is no cursor": (
        lambda own, _, first: own.history("t", Newest(5, before=Cursor("nonsense"))),
        "cursor 'nonsense': ",
    ),
    "a seq without its branch": (
        lambda own, _, first: own.history("t", Newest(5, before=3)),
        "before is a seq, which names no branch: pass branch= as well, or a cursor",
    ),
    "the cursor of another branch": (
        lambda own, other, first: own.history("t", Newest(5, before=other), branch=0),
        "branch",
    ),
    "a cursor as a mark": (
        lambda own, other, first: own.append("t", MESSAGE, expected=other),
        "expected is not a mark: pass the mark of a history or of an append as it is",
    ),
    "a seq as a message": (
        lambda own, _, first: own.append("t", MESSAGE, reply_to=3),
        "reply_to must be a ChatMessage or its id, not int",
    ),
    "an id that nobody has": (
        lambda own, _, first: own.append("t", MESSAGE, reply_to="nobody"),
        "thread 't' has no message 'nobody'",
    ),
    "two places": (
        lambda own, _, first: own.append("t", MESSAGE, reply_to=first, alternative_to=first),
        "alternative_to cannot be combined with reply_to; pass one of them",
    ),
    "a branch that is not empty": (
        lambda own, _, first: own.append("t", MESSAGE, expected=0),
        "is at version 2, not 0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_call_says_what_to_write(ledger: Ledger, name: str) -> None:
    await ledger.messages.append("t", [ChatMessage.user("?"), ChatMessage.assistant("!")], create=True)
    first = (await ledger.messages.history("t")).messages[0]
    await ledger.messages.append("t", [ChatMessage.user("??"), ChatMessage.assistant("!!")], alternative_to=first)
    other = (await ledger.messages.history("t", Newest(1))).previous_cursor
    before = await ledger.messages.history("t")
    call, said = WRONG[name]
    with pytest.raises((ChatLedgerError, TypeError)) as refused:
        await call(ledger.messages, other, first)
    assert said in str(refused.value)
    assert await ledger.messages.history("t") == before
