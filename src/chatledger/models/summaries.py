"""Sums over many rows: the usage of runs, the scores of models beside each other, and the counts of a ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from chatledger.models.base import Model, Text
from chatledger.models.json import Json, JsonObject
from chatledger.models.runs import RunStatus, Usage

RunPrices: TypeAlias = Callable[[str, Usage, datetime], Decimal | None]
"""The cost of a run by its model, its usage and the time at which it started. None if the function does not know it."""

FrameTable: TypeAlias = Literal["messages", "calls", "runs", "scores"]
"""The tables that `ledger.frames` reads."""

IntervalMethod: TypeAlias = Literal["wilson", "t"]
"""How an interval was computed: Wilson's for a share of yes, Student's t for a mean of numbers."""


class UsageSummary(Model):
    """The usage of a group of runs. Only the fields that `by` names have a value; of these, None is the group of the
    runs without one.
    """

    user_id: Text | None = None
    """The user of the threads."""
    agent: Text | None = None
    """The agent of the runs."""
    model: Text | None = None
    """The model of the runs."""
    day: date | None = None
    """The day, in UTC, on which the runs started."""
    thread_id: Text | None = None
    """The thread of the runs."""
    status: RunStatus | None = None
    """The status of the runs."""
    metadata: JsonObject | None = None
    """The chosen keys of the runs' metadata, with their values."""
    runs: int
    """The number of runs."""
    failed: int
    """The number of runs with the status `failed`."""
    input_tokens: int | None = None
    """The sum of the runs that report it; None if none does."""
    output_tokens: int | None = None
    """The sum of the runs that report it; None if none does."""
    total_tokens: int | None = None
    """The same. A run without a total counts with its input and output tokens."""
    cost: Decimal | None = None
    """The exact sum of the costs, the estimated ones included. None if no run has a cost."""
    runs_without_cost: int
    """The number of runs that are not in `cost`, because they have no cost and none was estimated."""
    estimated_cost: Decimal | None = None
    """The part of `cost` that was estimated with `prices`. None if nothing was."""
    estimated_runs: int = 0
    """The number of runs whose cost was estimated."""


class FeedbackComparison(Model):
    """The scores under one key of the runs of one model, agent or value of the metadata, with what these runs cost."""

    value: Json | None = None
    """The model, the agent or the value. None for runs without one."""
    count: int
    """The number of current scores."""
    mean: float
    """The mean of the scores."""
    share: float | None = None
    """The share of the scores above 0.5, as a fraction; None if any of the compared scores is below 0 or above 1."""
    low: float | None = None
    """The lower end of the 95 % interval of the mean. None for a single score that is not yes or no."""
    high: float | None = None
    """The upper end."""
    method: IntervalMethod
    """How the interval was computed: "wilson" if each of the compared scores is 0 or 1, else "t"."""
    runs: int
    """The number of runs that have these scores. The kept scores of erased threads have no run."""
    mean_cost: Decimal | None = None
    """The mean cost of the runs that have a cost."""
    mean_tokens: float | None = None
    """The mean number of tokens of the runs that report tokens."""
    runs_without_cost: int
    """The number of runs that are not in `mean_cost`."""


class LedgerStats(Model):
    """The counts of a ledger, or of one day or model. Only the field that `by` names has a value."""

    day: date | None = None
    """The day, in UTC: the day on which messages and scores were created, and on which runs started."""
    model: Text | None = None
    """The model of the runs. None for what belongs to no run, or to a run without a model."""
    messages: int
    """The number of messages on all branches."""
    threads: int
    """The number of threads that have these messages."""
    users: int
    """The number of users who own these threads."""
    runs: int
    """The number of runs."""
    input_tokens: int | None = None
    """As in UsageSummary."""
    output_tokens: int | None = None
    """As in UsageSummary."""
    total_tokens: int | None = None
    """As in UsageSummary."""
    cost: Decimal | None = None
    """As in UsageSummary."""
    runs_without_cost: int
    """As in UsageSummary."""
    estimated_cost: Decimal | None = None
    """As in UsageSummary."""
    scores: int
    """The number of current scores."""
