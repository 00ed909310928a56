"""What a program sees in an installation that lacks an annex: all else works, and a use of the annex names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chatledger.annexes import load

SOURCE = Path(__file__).parents[1] / "src"
ASK = """
import asyncio, sys
from chatledger import ChatMessage, Feedback, Ledger
from chatledger.errors import MissingExtra

async def main():
    async with Ledger.open(sys.argv[1]) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [ChatMessage(role="user", content="Tokyo?")], run_id="r")
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4))
        calls = {
            "runs.usage": ledger.runs.usage,
            "feedback.summary": ledger.feedback.summary,
            "feedback.compare": lambda: ledger.feedback.compare("stars"),
            "ledger.stats": ledger.stats,
            "ledger.frames": lambda: anext(ledger.frames("runs")),
        }
        for name, call in calls.items():
            try:
                await call()
            except MissingExtra as error:
                print(error.extra, error)
        print((await ledger.messages.history("t")).messages[0].content, (await ledger.feedback.list()).items[0].score)

asyncio.run(main())
"""
FORMATS = """
import chatledger.formats as formats
from chatledger.errors import UnknownFormat
from chatledger.formats.history import load_built_in

load_built_in()
print(*formats.format_names())
print(formats.recognise([{"role": "user", "content": "Tokyo?"}]).name)
for name in ("langchain", "kosong"):
    try:
        formats.get_codec(name)
    except UnknownFormat as error:
        print(error)
"""
OBSERVED = """
from chatledger import Ledger, OpenTelemetry
from chatledger.errors import MissingExtra
try:
    OpenTelemetry()
except MissingExtra as error:
    print(error)
"""
LACKS = "needs {0}, which this installation lacks: install chatledger as it was released"


def run_without(annexes: list[str], script: str, folder: Path, *arguments: str) -> list[str]:
    """What the script prints with a copy of the library that has no such modules."""
    shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for annex in annexes:
        path = folder / "src" / "chatledger" / annex
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_without_reports_their_calls_name_them_and_the_others_work(tmp_path: Path) -> None:
    *refused, read = run_without(["reports"], ASK, tmp_path, str(tmp_path / "ledger.db"))
    calls = ["runs.usage", "feedback.summary", "feedback.compare", "ledger.stats", "ledger.frames"]
    assert refused == [f"chatledger.reports {call} {LACKS.format('chatledger.reports')}" for call in calls]
    assert read == "Tokyo? 4.0"


def test_without_some_formats_the_others_are_known(tmp_path: Path) -> None:
    names, recognised, *unknown = run_without(["formats/langchain", "formats/kosong"], FORMATS, tmp_path)
    assert {"openai-chat", "openai-responses", "anthropic", "google-adk"} <= set(names.split())
    assert not {"langchain", "kosong/0.30", "kosong/0.23"} & set(names.split())
    assert recognised == "openai-chat"
    assert [line.partition(";")[0] for line in unknown] == ["unknown format 'langchain'", "unknown format 'kosong'"]


def test_without_opentelemetrys_part_its_class_names_it(tmp_path: Path) -> None:
    assert run_without(["telemetry/otel.py"], OBSERVED, tmp_path) == [
        f"OpenTelemetry {LACKS.format('chatledger.telemetry.otel')}"
    ]


def test_an_annex_that_cannot_import_what_it_needs_says_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_annex.py").write_text("import a_package_that_nobody_has\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has"):
        load("broken_annex:call", "it")
