"""Runs: each is one execution of an agent, with an id that the application chooses, and its usage."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json, JsonObject

RunStatus: TypeAlias = Literal["running", "completed", "failed", "cancelled"]

Tokens: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]


Cost: TypeAlias = Annotated[Decimal, Field(allow_inf_nan=False, max_digits=1_000)]
_EXACT = Context(prec=2_001)
"""Enough digits for any sum of two costs: the default context would round at 28."""


class Usage(Model):
    """The usage of a run. None means "not reported", also as a sum of Nones; 0 means "none used". `cost` is exact."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    total_tokens: Tokens | None = None
    details: dict[Text, Tokens] | None = None
    cost: Cost | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            total_tokens=_sum(self.total_tokens, other.total_tokens),
            details=_sum_details(self.details, other.details),
            cost=_sum_costs(self.cost, other.cost),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return left if right is None else right if left is None else left + right


def _sum_costs(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    return left if right is None else right if left is None else _EXACT.add(left, right)


def _sum_details(left: dict[str, int] | None, right: dict[str, int] | None) -> dict[str, int] | None:
    if left is None or right is None:
        return left if right is None else right
    return {key: left.get(key, 0) + right.get(key, 0) for key in {**left, **right}}


class Run(Model):
    """One execution of an agent. A run that an append creates has no agent or model until `runs.start` sets them."""

    run_id: Text
    thread_id: Text
    agent: Text | None = None
    model: Text | None = None
    status: RunStatus = "running"
    input: Json | None = None
    usage: Usage | None = None
    error: Text | None = None
    metadata: JsonObject | None = None
    started_at: UtcDatetime
    ended_at: UtcDatetime | None = None
