"""Comparing the scores of models, and summing the usage of runs: each reads all rows that it counts.

Two scores a run, by two users, and one score in fifty replaced an earlier one. The bare statement joins and averages
every score, without asking which of them are current: no comparison in SQL can be faster on these tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import asyncpg

from benchmarks.cases import OURS, Extent
from benchmarks.measure import Call, Rounds, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, milliseconds
from chatledger import Ledger

TARGET = Target(300, " ms")
ROUNDS = Rounds(count=7, seconds=90, warm_up=1, alone=True)
MODELS = 5
REPLACED = 50
_BARE = """
SELECT model, count(*), avg(score) FROM {schema}feedback f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
WHERE f.tenant_id = 'default' AND key = 'helpful' GROUP BY model
"""


async def postgres_score_rows(url: str, extent: Extent) -> list[Row]:
    connection = await asyncpg.connect(url)
    try:
        say(f"seeding {_scores(extent):,} scores")
        await connection.execute(
            _script(extent, "chatledger.", "timestamptz 'epoch' + ({}) * interval '1 second'", "CAST({} AS numeric)")
        )
        await connection.execute("VACUUM ANALYZE")

        async def bare(_number: int) -> None:
            assert len(await connection.fetch(_BARE.format(schema="chatledger."))) == MODELS

        return await _rows(url, extent, bare)
    finally:
        await connection.close()


async def sqlite_score_rows(path: str, extent: Extent) -> list[Row]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        say(f"seeding {_scores(extent):,} scores")
        connection.executescript(f"BEGIN; {_script(extent, '', '({}) * 1000000', '{}')} COMMIT; ANALYZE")

        async def bare(_number: int) -> None:
            assert len(connection.execute(_BARE.format(schema="")).fetchall()) == MODELS

        return await _rows(path, extent, bare)
    finally:
        connection.close()


def _scores(extent: Extent) -> int:
    return 10 * extent.longest


async def _rows(url: str, extent: Extent, bare: Call) -> list[Row]:
    scores, runs = _scores(extent), _scores(extent) // 2
    async with Ledger.open(url, timeout=60) as ledger:

        async def compare(_number: int) -> None:
            found = await ledger.feedback.compare("helpful")
            assert (len(found), sum(one.count for one in found)) == (MODELS, scores)

        async def usage(_number: int) -> None:
            found = await ledger.runs.usage(by=("user", "model", "day"))
            assert sum(one.runs for one in found) == runs

        rows = await _race(
            f"compare {scores:,} scores of {runs:,} runs", {OURS: compare, "every score, bare": bare}, TARGET
        )
        return rows + await _race(f"usage of {runs:,} runs by user, model, day", {OURS: usage}, None)


async def _race(case: str, calls: Mapping[str, Call], target: Target | None) -> list[Row]:
    rows = []
    for who, sample in (await race(calls, ROUNDS)).items():
        median, p95, spread = milliseconds(sample.median), milliseconds(sample.percentile(95)), f"{sample.spread:.0%}"
        own = target if who == OURS else None
        rows.append(Row(case, who, median, p95, spread, target=own, judged=sample.median * 1000))
    return rows


def _script(extent: Extent, schema: str, moment: str, cost: str) -> str:
    scores, runs = _scores(extent), _scores(extent) // 2

    def numbers(last: int) -> str:
        return f"""
    WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
    """

    at = moment.format("n")
    return f"""
    {numbers(1_000)}
    INSERT INTO {schema}threads (tenant_id, thread_id, user_id, active_branch, created_at, active_at)
    SELECT 'default', 'thread ' || n, 'user ' || (n % 97), 0, {at}, {at} FROM numbers;
    {numbers(runs)}
    INSERT INTO {schema}runs (tenant_id, run_id, thread_id, agent, model, status, input_tokens, output_tokens,
                              total_tokens, cost, started_at)
    SELECT 'default', 'run ' || n, 'thread ' || (n % 1000 + 1), 'agent ' || (n % 3), 'model ' || (n % {MODELS}),
           'completed', n % 4001, n % 301, n % 4001 + n % 301, {cost.format("'0.00' || (1 + n % 97)")}, {at}
    FROM numbers;
    {numbers(scores + scores // REPLACED)}
    INSERT INTO {schema}feedback (tenant_id, feedback_id, run_id, key, score, kwargs, created_at, user_id)
    SELECT 'default', 'score ' || n, 'run ' || ((n - 1) % {scores} / 2 + 1), 'helpful',
           CASE WHEN n * 7919 % 10 < n % {MODELS} + 3 THEN 1 ELSE 0 END, '{{}}', {at}, 'user ' || (n % 2)
    FROM numbers;
    """
