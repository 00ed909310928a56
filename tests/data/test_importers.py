"""Whole files of five real sets in, counted, and out again; files of other systems refused."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger
from chatledger.errors import UnknownFormat
from chatledger.models.json import same_json
from chatledger.transfer.envelope import Location, from_metadata, take_out
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions
from chatledger.transfer.report import ImportReport
from chatledger.transfer.shapes import get_shape
from tests.conftest import Database
from tests.storage.raw import query
from tests.transfer.files import exported

SETS = {
    "tau_bench_airline": "openai-chat",
    "llamafactory_glaive": "sharegpt",
    "oasst_trees": "oasst",
    "swe_agent": "swe-agent",
}
OTHERS = ("inspect_logs", "claude_code", "langfuse_traces", "adk_sessions")
COUNTS = """
SELECT 'conversations', count(*) FROM threads UNION ALL
SELECT 'messages', count(*) FROM messages UNION ALL
SELECT 'calls', count(*) FROM tool_calls UNION ALL
SELECT 'results', count(*) FROM messages WHERE role = 'tool'
"""


def files_of(data: Path, name: str) -> list[Path]:
    """All files of a set. Of adk_sessions, its files of eval cases, which hold no sessions."""
    return sorted(file for file in (data / name).iterdir() if not file.name.endswith((".md", ".session.json")))


def records_of(file: Path) -> list[Any]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line]
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


async def bring_file(ledger: Ledger, file: Path, report: ImportReport, **options: Any) -> None:
    lines = file.suffix == ".jsonl"
    with file.open("rb") as stream:
        given = ImportOptions(format="auto", **options)
        await import_file(ledger, stream, given, file=file.name, lines=lines, report=report)


def counted_by_readme(data: Path, name: str) -> dict[str, int]:
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \|$", (data / name / "README.md").read_text(), re.MULTILINE)
    counts = {what: int(count.replace(",", "")) for what, count in rows}
    return {what: counts.get(what, 0) for what in ("conversations", "messages", "calls", "results")}


@pytest.mark.parametrize("name", SETS)
async def test_set_comes_in_whole_and_out_again(database: Database, data: Path, name: str) -> None:
    files = files_of(data, name)
    async with database.open() as ledger:
        report = ImportReport()
        for file in files:
            await bring_file(ledger, file, report)
        assert (report.failures, dict(report.losses)) == ([], {})
        assert {name for counts in report.read_as.values() for name in counts} == {SETS[name]}
        records = [record for file in files for record in records_of(file)]
        assert same_json(await exported(ledger), records)
        again = ImportReport()
        for file in files:
            await bring_file(ledger, file, again)
        assert (again.unchanged, again.messages, again.failures) == (len(records), 0, [])
    assert dict(await query(database, COUNTS)) == counted_by_readme(data, name)


@pytest.mark.parametrize("name", SETS)
async def test_rest_of_a_record_is_the_metadata_of_its_thread(ledger: Ledger, data: Path, name: str) -> None:
    for file in files_of(data, name):
        await bring_file(ledger, file, ImportReport())
    shape = get_shape(SETS[name])
    field = "traj" if name == "tau_bench_airline" else None
    expected = []
    for file in files_of(data, name):
        for record in records_of(file):
            place: Location = shape.locate(record, field)
            expected.append(take_out(record, place).rest)
    found = [from_metadata(thread.metadata) for thread in await all_threads(ledger)]
    rests = [rest for rest, _ in sorted((one for one in found if one), key=_order)]
    assert same_json(rests, expected)


def _order(imported: tuple[dict[str, Any], Any]) -> tuple[str, int]:
    return imported[1].imported_at, imported[1].index


async def all_threads(ledger: Ledger) -> list[Any]:
    return list((await ledger.threads.list(limit=1_000)).items)


@pytest.mark.parametrize("name", OTHERS)
async def test_files_of_other_systems_are_refused_whole(ledger: Ledger, data: Path, name: str) -> None:
    for file in files_of(data, name):
        with pytest.raises(UnknownFormat, match=rf"^{re.escape(file.name)}, (record 0|line 1): "):
            await bring_file(ledger, file, ImportReport())
    assert await all_threads(ledger) == []


async def test_sessions_of_adk_come_in_and_out_again(ledger: Ledger, data: Path) -> None:
    files = sorted((data / "adk_sessions").glob("*.session.json"))
    report = ImportReport()
    for file in files:
        await bring_file(ledger, file, report)
    assert (report.created, report.failures, dict(report.losses)) == (len(files), [], {})
    assert same_json(await exported(ledger), [record for file in files for record in records_of(file)])


BODIES = {
    "openai-chat": ("/chat/completions",),
    "anthropic": ("/v1/messages", "/v1/messages/count_tokens"),
    "openai-responses": ("/v1/responses", "/v1/responses/compact"),
}
SPOKEN = {"openai-chat": 49, "anthropic": 28, "openai-responses": 39}


async def test_every_known_request_body_comes_back_equal(ledger: Ledger, data: Path) -> None:
    known = BODIES
    counted = dict.fromkeys(known, 0)
    for file in files_of(data, "pydantic_ai_http"):
        recording = json.loads(file.read_bytes())
        requests = recording["interactions"]
        speaks = [_spoken(request["endpoint"], known) for request in requests]
        if not any(speaks):
            with pytest.raises(UnknownFormat, match=rf"^{re.escape(file.name)}, record 0, interaction 0: "):
                await bring_file(ledger, file, ImportReport())
            continue
        report = ImportReport()
        await bring_file(ledger, file, report)
        assert [failure.place for failure in report.failures] == [
            f"record 0, interaction {number}" for number, name in enumerate(speaks) if name is None
        ]
        for name in filter(None, speaks):
            counted[name] += 1
        mine = [request for request, name in zip(requests, speaks, strict=True) if name]
        written = await exported(ledger)
        assert same_json(written[-len(mine) :], mine), file.name
    assert counted == SPOKEN
    assert len(await all_threads(ledger)) == sum(counted.values())


def _spoken(endpoint: str, known: dict[str, tuple[str, ...]]) -> str | None:
    path = endpoint.partition("?")[0]
    return next((name for name, endings in known.items() if path.endswith(endings)), None)


async def test_any_set_is_read_as_what_was_asked_for_or_not_at_all(data: Path) -> None:
    """A wrong `--format` stores nothing of a file whose messages are written otherwise."""
    [trees] = files_of(data, "oasst_trees")
    async with Ledger.open(":memory:") as ledger:
        options = ImportOptions(format="sharegpt")
        with pytest.raises(UnknownFormat, match=r"'prompt\.replies'.*98 more"):
            await import_file(ledger, io.BytesIO(trees.read_bytes()), options, file="t", lines=True)
        assert not (await ledger.threads.list()).items
