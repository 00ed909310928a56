"""`export --parquet`: the frames of a ledger as files, with a progress bar."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.files.left_out import say_left_out
from chatledger.cli.options import seen_by
from chatledger.cli.output import plural, print_json
from chatledger.cli.progress import share_bar
from chatledger.cli.remarks import SHOWN

if TYPE_CHECKING:
    from chatledger.errors import ChatLedgerError
    from chatledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of an export. For Parquet they choose rows, for JSON they choose threads."""

    user_id: str | None
    since: datetime | None
    until: datetime | None
    model: str | None
    agent: str | None

    @property
    def are_set(self) -> bool:
        return any(value is not None for value in asdict(self).values())


async def write_frames(ledger: Ledger, folder: str, filters: Filters, *, as_json: bool) -> ExitCode:
    """Write the files and report their rows. Returns FOUND if a row could not be read."""
    from chatledger.repositories import scope_of
    from chatledger.storage.lists.thread_ids import iterate_ids
    from chatledger.transfer.export import count_left_out
    from chatledger.transfer.parquet import export_parquet

    _refuse_file(folder)
    damaged: list[ChatLedgerError] = []
    own = seen_by(ledger, filters.user_id)
    of_rows = {name: value for name, value in asdict(filters).items() if name != "user_id"}
    with share_bar("exporting", quiet=as_json) as show:
        progress = _Progress(show, 2 * await own.threads.count(archived=None))
        rows = await export_parquet(own, Path(folder), **of_rows, on_damage=damaged.append, on_batch=progress.batch)
    if as_json:
        print_json({"folder": folder, "rows": rows})
    else:
        counted = ", ".join(f"{name}.parquet {count:,}" for name, count in rows.items())
        say(f"rows written to {folder}: {counted}")
    ids = progress.threads if filters.are_set else [thread_id async for thread_id in iterate_ids(scope_of(ledger))]
    left_out = await count_left_out(ledger, dict.fromkeys(ids, False), shared=not filters.are_set)
    say_left_out({name: left_out[name] for name in ("branches", "values")})  # runs and scores have files of their own
    for error in dict.fromkeys(map(str, damaged[:SHOWN])):
        say(error)
    if damaged:
        say(f"{plural(len(damaged), 'damaged row')} left out")
    return ExitCode.FOUND if damaged else ExitCode.OK


def _refuse_file(folder: str) -> None:
    if os.path.isfile(folder):
        raise UsageError(f"cannot write {folder}: it is a file; give a folder")


class _Progress:
    """Counts the threads that the frames of messages and calls have come to, of all threads, twice."""

    def __init__(self, show: Any, total: int) -> None:
        self._show = show
        self._total = total
        self._done = 0
        self._last: tuple[str, str] | None = None
        self.threads: set[str] = set()
        """The threads that have a message in the files."""

    def batch(self, name: str, batch: Any) -> None:
        if name not in ("messages", "calls"):
            self._show(self._total, self._total)
            return
        for thread_id in batch.column("thread_id").unique().to_pylist():
            self.threads.add(thread_id)
            self._done += (name, thread_id) != self._last
            self._last = (name, thread_id)
        self._show(self._done, self._total)
