"""OpenTelemetry: a span for each public call, and the counters as metrics.

Names and attributes are those of the semantic conventions for database clients, and `gen_ai.conversation.id` of those
for generative AI. No attribute holds content, the words of an error, or the id of a user.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakSet, finalize

from chatledger.errors import MissingExtra
from chatledger.telemetry.calls import End, Observer, Shape
from chatledger.telemetry.counters import Counters

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation
    from opentelemetry.trace import Tracer, TracerProvider

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""The histogram boundaries for durations that the conventions recommend."""
_SIZES = (256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
_CONVERSATION = "gen_ai.conversation.id"
_Attributes: TypeAlias = Mapping[str, str | int]
_UNITS = {
    "appends": "{append}",
    "messages": "{message}",
    "bytes": "By",
    "replays": "{append}",
    "conflicts": "{conflict}",
    "unknown_outcomes": "{append}",
    "retries": "{attempt}",
    "lost_connections": "{connection}",
    "pool_waits": "{wait}",
    "pool_wait_seconds": "s",
}


class Instruments:
    """The tracer and the meters of an OpenTelemetry. Raises MissingExtra if opentelemetry-api is not installed."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise MissingExtra("otel", "OpenTelemetry") from None
        self._tracer = trace.get_tracer("chatledger", tracer_provider=tracer_provider)
        self._open: WeakSet[_ObservedLedger] = WeakSet()
        self._ended: dict[tuple[tuple[str, str | int], ...], Counter[str]] = defaultdict(Counter)
        meter = metrics.get_meter("chatledger", meter_provider=meter_provider)
        meter.create_observable_up_down_counter("chatledger.queue_length", [self._queue_lengths], "{write}")
        # The ledgers count in any case, so these cost an append nothing.
        for name, unit in _UNITS.items():
            meter.create_observable_counter(f"chatledger.{name}", [partial(self._totals, name)], unit)
        self._histograms = _Histograms(meter)

    def observe(self, counters: Counters, database: _Attributes, queue_length: Callable[[], int]) -> Observer:
        """The observer of one ledger. `database` has the attributes of its database."""
        observer = _ObservedLedger(self._tracer, self._histograms, counters, database, queue_length)
        counters.listener = observer.record
        self._open.add(observer)
        finalize(observer, self._ended[tuple(database.items())].update, counters.values)
        return observer

    def _totals(self, name: str, _: CallbackOptions) -> Iterable[Observation]:
        """The totals by database of all ledgers ever observed, closed ones included, since a counter must not fall."""
        totals = {database: float(ended[name]) for database, ended in self._ended.items()}
        for ledger in list(self._open):
            totals[tuple(ledger.database.items())] += ledger.counters.values[name]
        return _observations(totals)

    def _queue_lengths(self, _: CallbackOptions) -> Iterable[Observation]:
        lengths: Counter[tuple[tuple[str, str | int], ...]] = Counter()
        for ledger in list(self._open):
            lengths[tuple(ledger.database.items())] += ledger.queue_length()
        return _observations(lengths)


def _observations(values: Mapping[tuple[tuple[str, str | int], ...], float]) -> Iterable[Observation]:
    from opentelemetry.metrics import Observation

    return [Observation(value, dict(database)) for database, value in values.items()]


class _Histograms:
    def __init__(self, meter: Meter) -> None:
        def histogram(name: str, unit: str, boundaries: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=boundaries)

        self.duration = histogram("db.client.operation.duration", "s", _SECONDS)
        self.of = {
            "pool_wait_seconds": histogram("db.client.connection.wait_time", "s", _SECONDS),
            "bytes": histogram("chatledger.append.size", "By", _SIZES),
        }


class _ObservedLedger:
    def __init__(
        self,
        tracer: Tracer,
        histograms: _Histograms,
        counters: Counters,
        database: _Attributes,
        queue_length: Callable[[], int],
    ) -> None:
        from opentelemetry import context, trace

        self.counters = counters
        self.database = dict(database)
        self.queue_length = queue_length
        self._histograms = histograms
        self._tracer = tracer
        self._client, self._error = trace.SpanKind.CLIENT, trace.StatusCode.ERROR
        self._attach, self._detach, self._put = context.attach, context.detach, trace.set_span_in_context

    def record(self, name: str, amount: float) -> None:
        self._histograms.of[name].record(amount, self.database)

    def begin(self, name: str, thread_id: str | None, shape: Shape) -> End:
        began = time.perf_counter()
        attributes: dict[str, str | int] = {**self.database, "db.operation.name": name}
        place = attributes if thread_id is None else {**attributes, _CONVERSATION: thread_id}
        span = self._tracer.start_span(name, kind=self._client, attributes=place)
        # Between two items, the caller's code runs in its own context, so the span of an iteration is not made current.
        token = None if shape == "iteration" else self._attach(self._put(span))

        def end(error: BaseException | None, thread_found: str | None) -> None:
            if token is not None:
                self._detach(token)
            if error is not None:
                attributes["error.type"] = kind = type(error).__name__
                span.set_attribute("error.type", kind)
                span.set_status(self._error)  # without the error's text, which may quote ids and keys
            elif thread_id is None and thread_found is not None:
                span.set_attribute(_CONVERSATION, thread_found)
            span.end()
            self._histograms.duration.record(time.perf_counter() - began, attributes)

        return end
