"""Who chooses the ids of threads, runs and scores.

They are unique in a tenant. So a user who may choose them can find out that another user has an id, and can take an id
before the other user does. A server that makes them itself (`ids="server"`) refuses those of a user's token with the
same words whether the id is free or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from chatledger.arguments import Kind
from chatledger.errors import InvalidArgument, RunNotFound
from chatledger.ids import derived_id
from chatledger.ledger import Ledger
from chatledger.repositories import scope_of
from chatledger.server.callers.access import Caller
from chatledger.storage.repositories.runs import find_runs

IdsBy: TypeAlias = Literal["client", "server"]
"""Who makes the ids that users' tokens store under: whoever sends a request, or the server."""
IDS_BY = Kind("client or server", words=get_args(IdsBy))


def refuse_chosen(ids: IdsBy, caller: Caller, **chosen: object) -> None:
    """Raises InvalidArgument with the name of the first id that is given, if the server makes the caller's ids."""
    if not chooses(ids, caller):
        for name, value in chosen.items():
            if value is not None and value is not False:
                raise InvalidArgument(name, f"is refused: {_MADE}")


_MADE = "this server makes the ids of what a user's token stores; an Idempotency-Key makes a creation safe to repeat"


async def require_own_runs(ledger: Ledger, run_ids: Iterable[str | None]) -> None:
    """Raises RunNotFound for a run that the caller does not have, where an append would create it. One statement, and
    none without a run.
    """
    asked = sorted({run_id for run_id in run_ids if run_id is not None})
    own = await find_runs(scope_of(ledger), asked) if asked else {}
    for run_id in asked:
        if run_id not in own:
            raise RunNotFound(run_id)


def chooses(ids: IdsBy, caller: Caller) -> bool:
    """Whether the caller may choose ids: an administrator always may."""
    return ids == "client" or caller.user_id is None


def made_of(key: str | None, caller: Caller, *where: str) -> str | None:
    """The id of what a request with that idempotency key creates, the same for a repeat; None without a key."""
    return None if key is None else derived_id(*where, caller.user_id or "", key)
