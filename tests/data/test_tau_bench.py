"""20 conversations of a real agent, in which the same call id stands on different calls of one thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger
from chatledger.models.json import same_json
from chatledger.models.threads import RulesLevel
from tests.checks import findings_of
from tests.transfer.files import bring, exported

FIELD = "traj"


@pytest.fixture
def content(data: Path) -> bytes:
    [file] = (data / "tau_bench_airline").glob("*.json")
    return file.read_bytes()


@pytest.mark.parametrize("rules", ["lenient", "strict"])
async def test_import_again_and_export(ledger: Ledger, content: bytes, rules: RulesLevel) -> None:
    first = await bring(ledger, content, field=FIELD, rules=rules)
    assert (first.created, first.messages, first.failures) == (20, 610, [])
    assert (first.violations, first.losses) == ({}, {})
    again = await bring(ledger, content, field=FIELD, rules=rules)
    assert (again.unchanged, again.messages, again.failures) == (20, 0, [])
    assert same_json(await exported(ledger), json.loads(content))


async def test_record_by_id_grows_message_by_message(ledger: Ledger, content: bytes) -> None:
    records = json.loads(content)[:3]
    for share in (0.3, 0.6, 1.0):
        begun = [{**record, FIELD: record[FIELD][: int(len(record[FIELD]) * share)]} for record in records]
        await bring(ledger, json.dumps(begun).encode(), field=FIELD, id_field="task_id", rules="strict")
    assert same_json(await exported(ledger), records)


async def test_every_call_has_its_result(ledger: Ledger, content: bytes) -> None:
    await bring(ledger, content, field=FIELD)
    calls = 0
    for thread in await ledger.threads.list():
        assert [finding for finding in await findings_of(ledger, thread.thread_id) if finding.rule != "R13"] == []
        messages: list[Any] = (await ledger.messages.history(thread.thread_id)).messages
        calls += sum(len(message.tool_calls or ()) for message in messages)
    assert calls == 123
