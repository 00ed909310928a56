"""The counters of an open database, counted where the events happen."""

from __future__ import annotations

from collections.abc import Callable

from chatledger.models import Metrics

_ELSEWHERE = {"queue_length", "running", "cells"}
"""Those that others count."""


class Counters:
    """The values by their names in `Metrics`. `listener` is called with each measured amount, such as the bytes of an
    append or the seconds of a wait; None without telemetry.
    """

    __slots__ = ("listener", "values")

    def __init__(self) -> None:
        self.values: dict[str, float] = dict.fromkeys(
            (name for name in Metrics.model_fields if name not in _ELSEWHERE), 0
        )
        self.listener: Callable[[str, float], None] | None = None

    def add(self, name: str) -> None:
        self.values[name] += 1

    def measure(self, name: str, amount: float) -> None:
        self.values[name] += amount
        if self.listener is not None:
            self.listener(name, amount)
