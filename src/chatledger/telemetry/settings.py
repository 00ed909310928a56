"""What a program passes to `Ledger.open` for spans and metrics. The part that records them is loaded with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from chatledger.annexes import load
from chatledger.telemetry.calls import Observer
from chatledger.telemetry.counters import Counters

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class OpenTelemetry:
    """Spans and metrics of ledgers. Several ledgers may share one.

        async with Ledger.open(url, telemetry=OpenTelemetry()) as ledger: ...

    `tracer_provider` and `meter_provider` are the global ones by default. Raises MissingExtra if opentelemetry-api is
    not installed.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        instruments = load("chatledger.telemetry.otel:Instruments", "OpenTelemetry")
        self._instruments: Any = instruments(tracer_provider, meter_provider)

    def observe(
        self, counters: Counters, database: Mapping[str, str | int], queue_length: Callable[[], int]
    ) -> Observer:
        """The observer of one ledger, which the ledger asks for. `database` has the attributes of its database."""
        observer: Observer = self._instruments.observe(counters, database, queue_length)
        return observer
