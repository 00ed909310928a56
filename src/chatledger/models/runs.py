"""Runs: each is one execution of an agent, with an id that the application chooses, and its usage."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import Json, JsonObject

RunStatus: TypeAlias = Literal["running", "completed", "failed", "cancelled"]
"""The status of a run: running, or how it ended."""

Tokens: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
"""A number of tokens."""

_COST_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "maxLength": 800, "pattern": r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"},
    ]
}
"""Pydantic would allow any text."""
_COST_DIGITS = 1_000
_COST_TEXT = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")


def _require_digits(cost: Any) -> Any:
    """Python would also read spaces, underscores and the digits of other scripts."""
    if isinstance(cost, str) and not _COST_TEXT.fullmatch(cost):
        raise ValueError("must be a decimal number that is not negative, such as 0.0021")
    return cost


def _require_few_digits(cost: Decimal) -> Decimal:
    """Pydantic counts the digits of a cost, and none of 0e999, which PostgreSQL writes out."""
    exponent = cost.as_tuple().exponent
    if isinstance(exponent, int) and abs(exponent) > _COST_DIGITS:
        raise ValueError(f"must have at most {_COST_DIGITS:,} digits")
    return cost


Cost: TypeAlias = Annotated[
    Decimal,
    Field(allow_inf_nan=False, max_digits=_COST_DIGITS, ge=0),
    BeforeValidator(_require_digits),
    AfterValidator(_require_few_digits),
    WithJsonSchema(_COST_SCHEMA, mode="validation"),
]
"""An exact amount of at most 1,000 digits, not negative."""
EXACT = Context(prec=2_001)
"""Enough digits for any sum of two costs: the default context would round at 28."""


class Usage(Model):
    """The tokens and the cost of a run. None means "not reported", and 0 means "none used".

    Usages can be added: `first + second`. A field is None in the sum if both have None.
    """

    input_tokens: Tokens | None = None
    """The tokens that the model read."""
    output_tokens: Tokens | None = None
    """The tokens that the model wrote."""
    total_tokens: Tokens | None = None
    """All tokens, as the provider reported them. The ledger does not compute it."""
    details: dict[Text, Tokens] | None = None
    """Further counts by name, such as cached or reasoning tokens."""
    cost: Cost | None = None
    """The cost as an exact Decimal, in the application's own currency."""

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
    return left if right is None else right if left is None else EXACT.add(left, right)


def _sum_details(left: dict[str, int] | None, right: dict[str, int] | None) -> dict[str, int] | None:
    if left is None or right is None:
        return left if right is None else right
    return {key: left.get(key, 0) + right.get(key, 0) for key in {**left, **right}}


class Run(Model):
    """One execution of an agent on a thread. A run that an append creates has no agent or model until `runs.start` sets
    them.
    """

    run_id: Text
    """The id of the run, unique in its tenant, of 1 to 512 bytes."""
    thread_id: Text
    """The thread that the run belongs to."""
    agent: Text | None = None
    """The name of the agent."""
    model: Text | None = None
    """The name of the model."""
    status: RunStatus = "running"
    """Whether the run is running, or how it ended."""
    input: Json | None = None
    """The input of the run, any JSON. Values under names such as `api_key` are stored as `"***"`."""
    usage: Usage | None = None
    """The tokens and the cost; None if nothing was reported."""
    error: Text | None = None
    """Why the run failed. Text that looks like a key is stored as `"***"`."""
    metadata: JsonObject | None = None
    """Data of the application about the run. Values under names such as `api_key` are stored as `"***"`."""
    started_at: UtcDatetime
    """The time when the run was stored first, in UTC."""
    ended_at: UtcDatetime | None = None
    """The time when the run ended, in UTC; None while it is running."""
