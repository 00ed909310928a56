"""Export to Parquet: each frame of a ledger as a file that DuckDB, Polars, pandas and others read."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chatledger.errors import ChatLedgerError, MissingExtra
from chatledger.ledger import Ledger
from chatledger.models import FrameTable
from chatledger.reports.frames import frame_schema
from chatledger.storage.drivers.new_file import new_file

if TYPE_CHECKING:
    import pyarrow

FRAMES: tuple[FrameTable, ...] = ("messages", "calls", "runs", "scores")
WORDS = frozenset({"text", "reasoning", "content", "tool_names", "arguments", "result", "input", "error", "metadata"})
"""Columns without statistics, which would repeat the words of each row group in memory and at the end of the file."""
GROUP_ROWS = 5_000
GROUP_BYTES = 4 * 1024 * 1024
"""A row group is written once it has so many rows or bytes. Larger ones are read faster, and memory holds one of them,
as Arrow and as Parquet.
"""


async def export_parquet(
    ledger: Ledger,
    folder: Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str | None = None,
    agent: str | None = None,
    on_damage: Callable[[ChatLedgerError], object] | None = None,
    on_batch: Callable[[str, pyarrow.RecordBatch], object] = lambda _name, _batch: None,
) -> dict[str, int]:
    """Write messages.parquet, calls.parquet, runs.parquet and scores.parquet into a folder, which is created if it does
    not exist. Returns the number of rows of each. The files appear when all four are complete; files of these names are
    replaced. The filters and `on_damage` are those of `ledger.frames`. `on_batch` is called with each batch, before it
    is written.
    """
    schemas = {name: frame_schema(name) for name in FRAMES}  # raises MissingExtra before the folder is made
    os.makedirs(folder, exist_ok=True)
    rows: dict[str, int] = {}
    with ExitStack() as unfinished:
        for name, schema in schemas.items():
            file = unfinished.enter_context(new_file(folder / f"{name}.parquet", replace=True))
            batches = ledger.frames(name, since=since, until=until, model=model, agent=agent, on_damage=on_damage)
            rows[name] = await _write(file, schema, batches, functools.partial(on_batch, name))
    return rows


async def _write(
    file: Path,
    schema: pyarrow.Schema,
    batches: AsyncIterator[pyarrow.RecordBatch],
    on_batch: Callable[[pyarrow.RecordBatch], object],
) -> int:
    pa, pq = _modules()
    group: list[Any] = []
    total = 0

    def write_group() -> None:
        writer.write_table(pa.Table.from_batches(group, schema=schema))
        group.clear()
        pa.default_memory_pool().release_unused()

    counted = [field.name for field in schema if field.name not in WORDS]
    with pq.ParquetWriter(file, schema, compression="zstd", write_statistics=counted) as writer:
        async for batch in batches:
            on_batch(batch)
            group.append(batch)
            total += batch.num_rows
            if (
                sum(batch_.num_rows for batch_ in group) >= GROUP_ROWS
                or sum(batch_.nbytes for batch_ in group) >= GROUP_BYTES
            ):
                write_group()
        if group:
            write_group()
    return total


def _modules() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtra("frames", "an export to Parquet") from None
    return pyarrow, pyarrow.parquet
