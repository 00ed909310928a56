"""Errors on the paths of an agent service. Its clients know a request that does not fit as a 422."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from chatledger.server.paths import path_within

PATH = "/agent-service"


def concerns(scope: Scope) -> bool:
    """Whether the request is one for an agent service."""
    return path_within(scope).startswith(f"{PATH}/")


def problem_for_service(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The problem with the status that it has here."""
    return {**problem, "status": 422 if problem["status"] == 400 else problem["status"]}
