"""Windows by turns or tokens, as query parameters: what fits a prompt."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from chatledger.errors import InvalidArgument
from chatledger.models import Tokens, Turns
from chatledger.server.answers.pages import counting
from chatledger.server.client_limits import ServerLimits

MOST_TOKENS = 1_000_000
"""Maximum of `tokens`, since a window by tokens is not limited by a number of messages."""

TurnsQuery = Annotated[int | None, Query(ge=1, description="Only the newest turns, that many.")]
TokensQuery = Annotated[
    int | None,
    Query(ge=1, le=MOST_TOKENS, description="Only the newest turns that fit into that many, at four letters a token."),
]


def newest_turns(limits: ServerLimits, turns: int | None, tokens: int | None) -> Turns | Tokens | None:
    """The window, None without both. Raises InvalidArgument beyond the limits of the server."""
    if turns is not None and turns > limits.page:
        raise InvalidArgument("turns", f"must be at most {limits.page}")
    if turns is not None:
        return Turns(turns)
    return None if tokens is None else Tokens(tokens, counting())


def require_one(**parameters: object) -> None:
    """Raises InvalidArgument for parameters that do not go together."""
    names = [name for name, value in parameters.items() if value is not None]
    if len(names) > 1:
        raise InvalidArgument(names[1], f"cannot be combined with {names[0]}; pass one of them")
