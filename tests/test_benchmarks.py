"""The benchmarks run: every case once or twice, to test its output and not its speed."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
from benchmarks import against, import_against, pool, postgres, seed, server_list, sqlite
from benchmarks import server as load
from benchmarks.against import BASE, NOW, Comparison, paired_ratio, take_turns
from benchmarks.against_worker import CASES, LONG, Block, Case, fill, measure
from benchmarks.cases import SHORT, Extent, Outcome, race_service
from benchmarks.measure import Ratio, Rounds, Sample
from benchmarks.million import RESTED, plan_rested, rested_rows
from benchmarks.page import write_page
from benchmarks.repeats import repeat_rows
from benchmarks.report import Row, Target, as_markdown, as_text
from benchmarks.rows import turn_rows
from benchmarks.turns import MESSAGES, Turn, turns, with_own_ids

from chatledger import ChatMessage, Ledger, Newest
from tests.conftest import Database

TINY = Extent(
    lengths=(0, 1_000),
    rounds=Rounds(count=8, seconds=5, warm_up=1),
    loads=Rounds(count=8, seconds=5, warm_up=1),
    slices=1,
    slice_seconds=0.1,
    imports=Rounds(count=2, seconds=5, warm_up=0),
    starts=2,
    size_turns=10,
    threads=4_000,
    giant=1_500,
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "SHORT_THREADS", 20)
    for module in ("cases", "postgres", "sqlite", "repeats"):
        monkeypatch.setattr(f"benchmarks.{module}.WRITERS", 2)


def cases(outcome: Outcome) -> set[str]:
    return {row.case for row in outcome.rows}


async def test_all_cases_on_postgresql_near_and_far(pg_database: Database) -> None:
    outcome = Outcome("PostgreSQL")
    await postgres._main(pg_database.url, TINY, outcome)
    near = {case for case in cases(outcome) if not case.startswith(postgres.AWAY)}
    assert near >= {
        "append at 1,000",
        "append at 1,000, CPU of the client",
        "load 1,000",
        "last 50 of 1,000",
        "2 writers, own threads",
        "memory of iterate()",
    }
    assert {f"{postgres.AWAY}{case}" for case in near - {"memory of iterate()"}} <= cases(outcome)
    assert sorted(outcome.plots) == ["1 ms away, append of one turn", "append of one turn"]


@pytest.mark.parametrize("name", ["append, load, writers", "bytes per turn", "lists", "scores", "frames", "repeats"])
def test_the_cases_on_sqlite(name: str) -> None:
    outcome = sqlite.sections(TINY)[name]()
    assert outcome.rows
    assert len(as_text(outcome.title, outcome.rows).splitlines()) == len(outcome.rows) + 5
    assert len(as_markdown(outcome.rows).splitlines()) == len(outcome.rows) + 2


async def test_repeats_on_postgresql_and_on_no_other_database_have_targets(pg_database: Database) -> None:
    rows = await repeat_rows(pg_database.url, TINY, judged=True)
    assert [row.case for row in rows] == [
        "2 writers, no repeats",
        "2 writers, 5 % repeats",
        "2 writers, 5 % refused",
        "2 writers, 5 % run conflicts",
        "2 writers, only repeats",
    ]
    assert [str(row.target) for row in rows if row.target] == ["≥ 0.8", "≥ 0.5", "≥ 0.5"]


GIANT = {
    "append at 0",
    "append at 1,500",
    "growth, 1,500 against 0",
    "append with own ids and a run, at 1,500",
    "last 50 of 1,500",
    "iterate()",
    "memory of iterate()",
    "first append to a rested thread",
    "first append to a rested thread, own ids and a run",
}


async def test_the_giant_thread_on_postgresql(pg_database: Database) -> None:
    outcome = Outcome("PostgreSQL")
    await postgres._million(pg_database.url, TINY, outcome)
    assert cases(outcome) == GIANT


def test_the_giant_thread_on_sqlite() -> None:
    assert cases(sqlite.sections(TINY)["a million messages"]()) == GIANT


def test_a_short_run_has_no_giant_thread() -> None:
    assert "a million messages" not in sqlite.sections(SHORT)


class Writer:
    """Notes the threads that it is told to append to."""

    def __init__(self) -> None:
        self.used: list[str] = []

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        self.used.append(thread)


async def test_each_rested_thread_is_appended_to_once() -> None:
    plan, writer = seed.Plan(), Writer()
    await rested_rows({"store": writer}, {"store": plan_rested(plan, TINY)}, TINY, "store")  # type: ignore[dict-item]
    calls = TINY.rounds.count + TINY.rounds.warm_up
    assert len(set(writer.used)) == len(writer.used) == 2 * calls
    assert {plan.lengths[thread] for thread in writer.used} == {RESTED}


async def test_the_messages_of_a_turn_get_their_own_ids_outside_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def copy(turn: Turn) -> Turn:
        log.append("copies")
        return with_own_ids(turn)

    def tell() -> float:
        log.append("clock")
        return 0.0

    class Logging(Writer):
        async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
            log.append("append")

    monkeypatch.setattr("benchmarks.cases.with_own_ids", copy)
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", tell)
    await race_service({"store": Logging()}, {"store": ["a thread"]}, Rounds(count=3, seconds=5, warm_up=2))  # type: ignore[dict-item]
    monkeypatch.undo()
    assert log == ["copies", "append"] * 2 + ["copies", "clock", "append", "clock"] * 3


def test_all_contenders_store_the_own_ids_of_a_turn() -> None:
    turn = with_own_ids(turns()[0])
    ids = [message.message_id for message in turn.models]
    assert len({*ids, None}) == MESSAGES + 1
    assert [row[1] for row in turn_rows(turn, 1, None).messages] == ids


def test_a_ratio_is_of_medians_and_says_how_far_to_trust_it() -> None:
    ratio = Sample([2.0, 2.0, 2.0, 4.0, 2.0]).ratio(Sample([1.0, 2.0, 1.0, 1.0, 1.0]))
    assert (ratio.value, ratio.low, ratio.high) == (2.0, 1.0, 4.0)


def test_a_page_shows_beside_each_target_what_the_run_before_gave(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin figures: make x -->\n<!-- end figures -->\n")

    def run(title: str, *ratios: str) -> list[str]:
        """The tables of the page after a run with these ratios of two stores, of which the second has a target."""
        targets = (None, Target(1.2))
        rows = [
            Row("load 50", f"store {at}", "1 ms", ratio=ratio, target=targets[at]) for at, ratio in enumerate(ratios)
        ]
        others = Outcome("SQLite 3: lists (fsync 9 µs)", [Row("load 50", "store 1", "7 kB", target=Target(5))])
        write_page(page, "a machine", [Outcome(title, rows), others], full=True)
        return [line for line in page.read_text().splitlines() if line.startswith("|")]

    heading = "| case | store | median | p95 | spread | before | ratio | target |  |"
    dashes = f"| {' | '.join(['---'] * 9)} |"
    assert run("PostgreSQL 15: append (fsync 1 µs)", "1", "1.50 (1.40–1.60)") == [
        heading,
        dashes,
        "| load 50 | store 0 | 1 ms |  |  |  | 1 |  |  |",
        "|  | store 1 | 1 ms |  |  |  | 1.50 (1.40–1.60) | ≤ 1.2 | reached |",
        heading,
        dashes,
        "| load 50 | store 1 | 7 kB |  |  |  |  | ≤ 5 | reached |",
    ]
    again = run("PostgreSQL 16: append (fsync 2 µs)", "1", "1.10 (1.00–1.20)")
    assert again[2:4] == [
        "| load 50 | store 0 | 1 ms |  |  |  | 1 |  |  |",
        "|  | store 1 | 1 ms |  |  | 1.50 | 1.10 (1.00–1.20) | ≤ 1.2 | reached |",
    ]
    assert again[6:] == ["| load 50 | store 1 | 7 kB |  |  | 7 kB |  | ≤ 5 | reached |"]
    assert run("PostgreSQL 16: another part (fsync 2 µs)", "1", "9")[3] == (
        "|  | store 1 | 1 ms |  |  |  | 9 | ≤ 1.2 | reached |"
    )


# --- The server -------------------------------------------------------------------------------------------------------


def test_the_server_stores_each_append_of_its_clients_once(database: Database) -> None:
    options = argparse.Namespace(clients=4, workers=2, pause=0.0, seconds=20.0, requests=60)
    figures = dict(load.measure(database.url, options))
    assert figures["failed"] == "0"
    assert "p99" in figures["append of 2 messages"]
    assert figures["appends stored exactly once"].startswith("all ")


async def test_an_append_that_is_missing_or_doubled_ends_the_run(database: Database) -> None:
    seen = load.Load(clients=1, pause=0, end=0, requests=0)
    seen.acknowledged["0.0"] = 2
    async with Ledger.open(database.url) as ledger:
        half = [ChatMessage(role="user", content="?", custom_data={"key": "0.0"})]
        await ledger.messages.append("load-0", half, create=True)
        with pytest.raises(AssertionError):
            await load.check(database.url, seen)
        await ledger.messages.append("load-0", half)
        await load.check(database.url, seen)


async def test_a_page_of_threads_is_one_statement_of_the_server(database: Database) -> None:
    await server_list.fill(database.url, messages=3)
    assert await server_list.count_statements(database.url) == 1


# --- The working tree beside a commit ---------------------------------------------------------------------------------


async def test_the_cases_of_both_sides_store_what_they_say(database: Database) -> None:
    await fill(database.url, 1)
    async with Ledger.open(database.url) as ledger:
        assert [len(await measure(ledger, case, 0)) for case in CASES] == [case.calls for case in CASES]
        threads = ("pairs", "own ids", "first 4", "tool calls", "transactions", "writers 1", "writers 0", "read")
        versions = {name: (await ledger.messages.history(name, Newest(1))).last_seq for name in threads}
    assert versions == {
        "pairs": LONG + 10,
        "own ids": LONG + 10,
        "first 4": 2,
        "tool calls": LONG + 25,
        "transactions": 30,
        "writers 1": 10,
        "writers 0": 10 + 160,
        "read": LONG,
    }


class Recorder:
    def __init__(self, name: str, log: list[tuple[str, int]]) -> None:
        self.name = name
        self.log = log

    def measure(self, case: Case, first: int) -> Block:
        self.log.append((self.name, first))
        return [(1.0, 0.5)] * case.calls


def test_two_sides_take_turns_and_either_goes_first_every_other_round() -> None:
    log: list[tuple[str, int]] = []
    case = CASES[0]
    blocks = take_turns({name: Recorder(name, log) for name in (BASE, NOW)}, case, 3)
    first, second, third = (number * case.calls for number in (1, 2, 3))
    assert log[2:] == [(BASE, first), (NOW, first), (NOW, second), (BASE, second), (BASE, third), (NOW, third)]
    assert blocks == dict.fromkeys((BASE, NOW), [[(1.0, 0.5)] * case.calls] * 3)


def test_a_paired_ratio_does_not_see_that_a_whole_round_was_slow() -> None:
    base, now = [[1.0], [1.0], [9.0], [9.0], [9.0]], [[2.0], [2.0], [18.0], [18.0], [27.0]]
    assert paired_ratio(base, now) == Ratio(2.0, 2.0, 3.0)


def test_a_comparison_is_a_line_of_the_table() -> None:
    base: list[Block] = [[(0.002, 0.001)]] * 5
    now: list[Block] = [[(0.004, 0.0005)]] * 5
    one, many = (Case(name, 1, CASES[0].prepare, turns) for name, turns in (("one", 0), ("many", 10)))
    assert against.table("SQLite", [Comparison(case, base, now) for case in (one, many)]).splitlines() == [
        "SQLite",
        "======",
        "case  base     now      now/base          CPU base  CPU now  now/base",
        "---------------------------------------------------------------------",
        "one   2.00 ms  4.00 ms  2.00 (2.00–2.00)  1.00 ms   0.50 ms  0.50 (0.50–0.50)",
        "many  5,000/s  2,500/s  2.00 (2.00–2.00)  0.10 ms   0.05 ms  0.50 (0.50–0.50)",
    ]


def test_an_import_beside_that_of_another_tree() -> None:
    source = against.ROOT / "src"
    line = import_against.compare("import chatledger", {BASE: source, NOW: source}, 5)
    assert re.fullmatch(
        r"import chatledger: base [\d.]+ ms, now [\d.]+ ms of CPU, now/base [\d.]+ \([\d.]+–[\d.]+\)",
        line,
    )


async def test_the_waits_for_a_pool(pg_database: Database) -> None:
    row = await pool.measure(pg_database.url, 2, 1, 0.2)
    assert len(row) == len(pool.HEADINGS)
    assert row[-1] == "0"
