"""OpenTelemetry by the real SDK: a span for every public call, the counters as metrics, and no content in any of it.

The calls are read from the objects and their signatures, so one that is added is called as well.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from chatledger import ChatLedgerError, InvalidArgument, Ledger, OpenTelemetry, Payload, PostgreSQL, VersionConflict
from chatledger.repositories import REPOSITORIES
from tests.conftest import Database
from tests.conversations import turn, user
from tests.hostile.calls import calls_of, make
from tests.storage.repositories.test_users import SECRET, usual
from tests.storage.repositories.test_users import bob as bob

WITHOUT = {"open", "over", "tenant", "user", "replica", "metrics", "threads.prepare"}
"""Calls that ask the database for nothing, and opening, which has no observer yet."""


@dataclass
class Seen:
    """A telemetry of its own for a test, and all that it exported."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        self.telemetry = OpenTelemetry(tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self) -> list[ReadableSpan]:
        """Those since the last call."""
        found = list(self.exporter.get_finished_spans())
        self.exporter.clear()
        return found

    def points(self) -> dict[str, list[Any]]:
        """The points of each metric by its name."""
        data = self.reader.get_metrics_data()
        assert data is not None
        every = [metric for one in data.resource_metrics for scope in one.scope_metrics for metric in scope.metrics]
        return {metric.name: list(metric.data.data_points) for metric in every}


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.tracers.shutdown()
    seen.meters.shutdown()


@pytest.fixture
async def ledger(database: Database, seen: Seen) -> AsyncIterator[Ledger]:
    """In the place of the usual one: also the fixture `bob` is of this ledger."""
    async with database.open(telemetry=seen.telemetry) as opened:
        yield opened


def shown(seen: Seen) -> str:
    """All that leaves the process."""
    spans = "".join(span.to_json() for span in seen.exporter.get_finished_spans())
    data = seen.reader.get_metrics_data()
    return spans + ("" if data is None else data.to_json())


async def test_every_public_call_has_a_span(ledger: Ledger, bob: Ledger, seen: Seen, database: Database) -> None:
    given = await usual(bob)
    owner = ledger.tenant("default")  # to close it closes nothing
    for call in calls_of(owner):
        seen.spans()
        if call.name not in WITHOUT:
            await make(call, {name: given[name] for name in call.asked})
            names = [span.name for span in seen.exporter.get_finished_spans()]
            assert call.name in names, f"{call.name} has no span, but {names}"
            for span in seen.exporter.get_finished_spans():
                attributes = dict(span.attributes or {})
                assert attributes["db.operation.name"] == span.name
                assert attributes["db.system.name"] == database.kind
                assert span.kind is SpanKind.CLIENT
            if "thread_id" in call.asked:
                own = next(span for span in seen.exporter.get_finished_spans() if span.name == call.name)
                assert dict(own.attributes or {})["gen_ai.conversation.id"] == "bob's"
    assert len(list(calls_of(owner))) > 50


async def test_no_content_and_no_user_leaves_the_process(ledger: Ledger, bob: Ledger, seen: Seen) -> None:
    given = await usual(bob)
    for call in calls_of(bob):
        if call.name not in WITHOUT:
            await make(call, {name: given[name] for name in call.asked})
    await ledger.user("grace").threads.create("of a user", title=SECRET)
    with suppress(ChatLedgerError):
        await ledger.kv.put(("user", "grace"), SECRET, SECRET, expected=7)  # the error quotes the key
    told = shown(seen)
    assert "kv.put" in told
    assert SECRET not in told
    assert "grace" not in told


async def test_a_span_tells_which_database_and_which_thread(ledger: Ledger, seen: Seen, database: Database) -> None:
    thread = await ledger.threads.create()
    (created,) = seen.spans()
    attributes = dict(created.attributes or {})
    assert attributes["gen_ai.conversation.id"] == thread.thread_id
    if database.kind == "postgresql":
        assert attributes["db.namespace"] == database.url.rpartition("/")[2]
        assert attributes["server.address"] == "127.0.0.1"
        assert isinstance(attributes["server.port"], int)
    else:
        assert attributes.keys() == {"db.system.name", "db.operation.name", "gen_ai.conversation.id"}


async def test_a_failure_is_told_by_its_type(ledger: Ledger, seen: Seen) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    with pytest.raises(VersionConflict):
        await ledger.messages.append("t", turn(), expected=0)
    span = seen.spans()[-1]
    assert dict(span.attributes or {})["error.type"] == "VersionConflict"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()


async def test_spans_stand_below_the_span_around_them(ledger: Ledger, seen: Seen) -> None:
    tracer = seen.tracers.get_tracer("application")
    await ledger.threads.create("t")
    with tracer.start_as_current_span("request"):
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
        async with ledger.messages.stream("t") as draft:
            await ledger.threads.find("t")
            await draft.feed("x")
        async for _ in ledger.messages.iterate("t"):
            assert trace.get_current_span().get_span_context() is not None
            assert trace.get_current_span().name == "request"  # type: ignore[attr-defined]
        await ledger.messages.append("t", Payload([{"role": "user", "content": "x"}], "openai-chat"))
    spans = seen.spans()
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    below = {(span.name, names.get(span.parent.span_id)) for span in spans if span.parent is not None}
    assert below == {
        ("messages.append", "begin"),
        ("begin", "request"),
        ("threads.find", "messages.stream"),
        ("messages.stream", "request"),
        ("messages.iterate", "request"),
        ("messages.history", "request"),
        ("messages.append", "request"),
    }


async def test_a_cancelled_call_ends_its_span(ledger: Ledger, seen: Seen) -> None:
    await ledger.threads.create("t")
    seen.spans()
    call = asyncio.create_task(ledger.messages.append("t", turn()))
    await asyncio.sleep(0)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    (span,) = seen.spans()
    assert dict(span.attributes or {})["error.type"] == "CancelledError"


async def test_the_counters_are_metrics(ledger: Ledger, seen: Seen, database: Database) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("x", message_id="m")])
    await ledger.messages.append("t", [user("x", message_id="m")])
    await ledger.tenant("other").threads.create("t")
    await ledger.tenant("other").messages.append("t", turn())
    with suppress(VersionConflict):
        await ledger.messages.append("t", turn(), expected=0)
    points = seen.points()
    for name, value in ledger.metrics():
        if value and name not in ("queue_length", "running"):
            (point,) = points[f"chatledger.{name}"]
            assert point.value == pytest.approx(value)
            assert point.attributes["db.system.name"] == database.kind
    assert points["chatledger.appends"][0].value == 2
    assert points["chatledger.conflicts"][0].value == 1
    assert points["chatledger.append.size"][0].sum == ledger.metrics().bytes
    assert points["chatledger.queue_length"][0].value == 0
    durations = {
        (point.attributes["db.operation.name"], point.attributes.get("error.type")): point.count
        for point in points["db.client.operation.duration"]
    }
    assert durations == {
        ("threads.create", None): 2,
        ("messages.append", None): 3,
        ("messages.append", "VersionConflict"): 1,
    }


async def test_a_counter_does_not_fall_with_its_ledger(database: Database, seen: Seen) -> None:
    for number in (1, 2, 3):
        async with database.open(telemetry=seen.telemetry) as one:
            await one.messages.append("t", turn(), create=True)
        del one
        gc.collect()
        (point,) = seen.points()["chatledger.appends"]
        assert point.value == number


async def test_a_wait_for_the_pool_is_a_metric(pg_database: Database, seen: Seen) -> None:
    async with pg_database.open(telemetry=seen.telemetry, postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger:
        async with ledger.begin() as tx:
            await tx.threads.count()
            waiting = asyncio.create_task(ledger.threads.count())
            await asyncio.sleep(0.02)
        await waiting
        waits = seen.points()["db.client.connection.wait_time"][0]
        assert waits.count == ledger.metrics().pool_waits >= 1
        assert waits.sum == pytest.approx(ledger.metrics().pool_wait_seconds)


async def test_a_ledger_without_telemetry_is_made_of_the_plain_classes(database: Database) -> None:
    async with database.open() as ledger:
        assert type(ledger) is Ledger
        assert ledger._scope.observer is None
        assert ledger._scope.counters.listener is None
        for noun in REPOSITORIES:
            kind = type(getattr(ledger, noun))
            assert kind is getattr(importlib.import_module(kind.__module__), kind.__qualname__)


@pytest.mark.parametrize("telemetry", [True, "otel", object(), OpenTelemetry])
def test_another_telemetry_is_refused(telemetry: Any) -> None:
    with pytest.raises(InvalidArgument, match="telemetry must be an OpenTelemetry or None"):
        Ledger.open("t.db", telemetry=telemetry)


def test_without_the_extra_an_error_names_it() -> None:
    script = """
import sys
sys.modules["opentelemetry"] = None
import chatledger
import chatledger.errors
try:
    chatledger.OpenTelemetry()
except chatledger.errors.MissingExtra as error:
    print(error.extra, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "otel OpenTelemetry needs an extra: pip install 'chatledger[otel]'\n"
