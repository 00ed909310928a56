"""The agents that a server may ask."""

from __future__ import annotations

import logging

from chatledger.errors import InvalidArgument
from chatledger.ledger import Ledger
from chatledger.repositories import scope_of
from chatledger.server.state import State

_log = logging.getLogger("chatledger.server")


def agent_of(state: State, name: str | None) -> str:
    """Raises InvalidArgument for an agent that the server does not have."""
    if name is None and len(state.agents) == 1:
        return next(iter(state.agents))
    if name not in state.agents or name is None:
        has = f"the agents {', '.join(sorted(state.agents))}" if state.agents else "no agents"
        raise InvalidArgument("agent", f"must be one of the server's: it has {has}")
    return name


def warn_unless_served(ledger: Ledger, state: State, agent: str) -> None:
    """Once an agent: other processes may run it, but whoever mounts the application may expect that this one does."""
    guard = scope_of(ledger).guard
    served = guard is not None and any(agent in worker.agents for worker in guard.workers)
    if not served and agent not in state.unserved:
        state.unserved.add(agent)
        _log.warning(
            "this process does not run the agent %r: a mounted application is not told when the server starts, so "
            "enter ledger.answers.serve(agents, all_tenants=True) in the lifespan of the application around it",
            agent,
        )
