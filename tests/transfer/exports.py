"""What a fixed set of conversations becomes in tables, views and exports, as texts by name, on either database.

    python -m tests.transfer.exports URL FOLDER > recorded.json

fills an empty database and prints the digests; with `--texts` it prints the texts, to compare those of two checkouts.
An older checkout can run this file too: it uses only names that both have.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow.parquet as pq

from chatledger import ChatMessage, Feedback, Ledger, ToolCall, Usage

SAMPLES = Path(__file__).parents[2] / "samples"
FORMATS = (
    *("agent-framework", "agent-service", "anthropic", "google-adk", "kosong/0.23", "kosong/0.30", "langchain"),
    *("message-file", "openai-chat", "openai-responses", "pydantic-ai", "qwen-agent"),
)
NOON = datetime(2025, 5, 1, 12, tzinfo=UTC)
EXPORTS: dict[str, Sequence[str]] = {
    "export": ("--all",),
    **{f"export {name}": ("--all", "--format", name) for name in FORMATS},
    "training data": ("--all", "--jsonl"),
    "training data for a model": ("--all", "--jsonl", "--format", "openai-chat", "--view", "model"),
    "lines": ("--all", "--container", "lines"),
}
_RECENT = re.compile(
    r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z|\+00)?)?"
    r"|(?<![\d.])(?:176[89]|17[789]\d|1[89]\d\d)\d{6}(?:\.\d+|\d{6})?(?![\d.])"
)
"""A time from 2026 on, as text, seconds or microseconds. What the data says happened before, so it is the test's."""
_REWORDED = ("a assistant message", "an assistant message")
"""The words of a finding, which were corrected since: messages are stored with the rules that they break."""
_CHANCE = {"stamp", "digest_secret", "seconds", "database_id"}
"""Columns with values that differ in each run."""


# --- The conversations ------------------------------------------------------------------------------------------------


def fill(url: str) -> None:
    """Import every sample, and store what no sample has: runs, scores, a branch, values and a user."""
    _command("migrate", "--url", url)
    for path in sorted(SAMPLES.iterdir()):
        if path.suffix != ".md":  # ids derive from the name, which is else the path
            _command("import", str(path), "--source", path.name, "--url", url)
    asyncio.run(_fill(url))


async def _fill(url: str) -> None:
    async with Ledger.open(url) as ledger:
        await ledger.threads.create("t", title="Größe \U0001f600", metadata={"b": [1, 2.5, None]}, created_at=NOON)
        await ledger.runs.start("t", run_id="r", agent="desk", model="large", input={"q": 1}, metadata={"a": "b"})
        await ledger.messages.append("t", _turn(), run_id="r")
        usage = Usage(input_tokens=7, output_tokens=5, details={"cached": 2}, cost="0.25")
        await ledger.runs.finish("r", status="completed", usage=usage)
        scores = [("f1", 4, None), ("f2", 2, None), ("f3", 5, "m4")]
        for number, (name, score, message) in enumerate(scores):
            who = "ada" if number else "bob"
            given: dict[str, Any] = {"message_id": message} if message else {}
            await ledger.feedback.record(
                Feedback(feedback_id=name, run_id="r", key="stars", score=score, user_id=who, created_at=NOON, **given)
            )
        await ledger.messages.append("t", [ChatMessage(role="user", content="Again?", message_id="m5")])
        await ledger.messages.append(
            "t", [ChatMessage(role="assistant", content="No.", message_id="m6", created_at=NOON)], run_id="r"
        )
        await ledger.kv.put(("thread", "t"), "plan", {"step": 1})
        await ledger.kv.put(("tenant",), "theme", "dark")


def _turn() -> list[ChatMessage]:
    call = ToolCall(id="c1", name="find", arguments='{"day": "2025-05-01"}')
    return [
        ChatMessage(role="user", content="How cold is Oslo?", message_id="m1", name="ada", created_at=NOON),
        ChatMessage(role="assistant", content=None, tool_calls=[call], message_id="m2", created_at=NOON),
        ChatMessage(role="tool", tool_call_id="c1", content="-3 °C", message_id="m3", created_at=NOON),
        ChatMessage(role="assistant", content="Three below.", message_id="m4", created_at=NOON, custom_data={"x": [1]}),
    ]


# --- What they become -------------------------------------------------------------------------------------------------


def texts(url: str, folder: Path) -> dict[str, str]:
    """Each export, and each table and view, without the times at which the test ran and without random values."""
    found = {name: _command("export", *options, "--url", url) for name, options in EXPORTS.items()}
    found["message file"] = _command("export", "t", "--format", "message-file", "--url", url)
    _command("export", "--parquet", str(folder / "frames"), "--url", url)
    for path in sorted((folder / "frames").glob("*.parquet")):
        table = pq.read_table(path)
        found[f"Arrow {path.stem}"] = table.schema.to_string() + _lines(table.to_pylist())
    for name, rows in _rows(url).items():
        found[name] = _lines(rows)
    return {name: _RECENT.sub("TIME", text).replace(*_REWORDED) for name, text in found.items()}


def digests(found: dict[str, str]) -> dict[str, str]:
    return {
        name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] for name, text in found.items()
    }


def _command(*words: str) -> str:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "chatledger.cli", *words], capture_output=True, env=environment, check=False
    )
    if done.returncode not in (0, 1, 3):  # 1 with findings, 3 for a format that cannot hold a message
        raise AssertionError(f"{words}: {done.stderr.decode()}")
    said = "" if words[0] != "export" or not done.returncode else done.stderr.decode()
    return done.stdout.decode() + said


def _lines(rows: list[dict[str, Any]]) -> str:
    shown = [
        {name: "CHANCE" if name in _CHANCE and value is not None else value for name, value in row.items()}
        for row in rows
    ]
    return "\n".join(sorted(_RECENT.sub("TIME", json.dumps(row, default=str, ensure_ascii=False)) for row in shown))


def _rows(url: str) -> dict[str, list[dict[str, Any]]]:
    return asyncio.run(_of_postgresql(url)) if "://" in url else _of_file(url)


def _of_file(path: str) -> dict[str, list[dict[str, Any]]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    kinds = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [name for (name,) in map(tuple, connection.execute(kinds))]
    found = {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names}
    connection.close()
    return found


async def _of_postgresql(url: str) -> dict[str, list[dict[str, Any]]]:
    connection = await asyncpg.connect(url)
    kinds = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'chatledger' ORDER BY 1"
    names = [row[0] for row in await connection.fetch(kinds)]
    found = {
        name: [dict(row) for row in await connection.fetch(f'SELECT * FROM chatledger."{name}"')] for name in names
    }
    await connection.close()
    return found


if __name__ == "__main__":
    url, folder = sys.argv[1], Path(sys.argv[2])
    fill(url)
    told = texts(url, folder)
    print(json.dumps(told if "--texts" in sys.argv else digests(told), indent=1, ensure_ascii=False))
