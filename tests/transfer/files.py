"""Records and files for the tests of import and export."""

from __future__ import annotations

import io
import json
from typing import Any

from chatledger import Feedback, Ledger
from chatledger.transfer.export import export_all, read_index
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions
from chatledger.transfer.report import ImportReport


def talk(*texts: str) -> list[dict[str, Any]]:
    """Messages of user and assistant in turns."""
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def array(*records: Any) -> bytes:
    return json.dumps(list(records), indent=1).encode()


async def bring(ledger: Ledger, content: bytes, *, as_lines: bool = False, **options: Any) -> ImportReport:
    return await import_file(ledger, io.BytesIO(content), ImportOptions(**options), file="in.json", lines=as_lines)


async def exported(ledger: Ledger, **options: Any) -> list[Any]:
    index = await read_index(ledger)
    return [one.value async for one in export_all(ledger, index, **options)]


async def texts(ledger: Ledger) -> list[list[str]]:
    """The texts of all threads, in the order of an export."""
    index = await read_index(ledger)
    return [[message.text for message in await ledger.messages.history(one)] for one in index.thread_ids]


async def record_scores(
    ledger: Ledger, thread: str, *scores: float, key: str = "stars", user_id: str | None = None
) -> None:
    """A thread of one run, with these scores one after the other."""
    await ledger.threads.create(thread, exist_ok=True)
    if await ledger.runs.find(f"run of {thread}") is None:
        await ledger.runs.start(thread, run_id=f"run of {thread}")
    for score in scores:
        await ledger.feedback.record(Feedback(run_id=f"run of {thread}", key=key, score=score, user_id=user_id))
