"""Export: an imported thread as its original record, any other thread as a record of our own.

An export streams. It holds in memory the ids of all threads, and the messages of one thread at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

from chatledger.errors import ChatLedgerError, NothingToSend, ThreadNotFound
from chatledger.formats.history import encode
from chatledger.formats.model_view import model_view
from chatledger.formats.registry import get_codec
from chatledger.ledger import Ledger
from chatledger.models import Loss, Thread
from chatledger.models.json import JsonValue
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.repositories.beside import count_beside, count_shared_values
from chatledger.storage.rows.decode_messages import is_damage
from chatledger.transfer.assemble import conversation_object, in_place, is_empty, own_record
from chatledger.transfer.detect import DEFAULT_FORMAT
from chatledger.transfer.envelope import Envelope, from_metadata
from chatledger.transfer.shapes import BranchMessages, get_shape, require_writable
from chatledger.transfer.store_record import read_branches

THREADS_PAGE = 1_000
FEEDBACK_PAGE = 500
RUNS_PAGE = 1_000

View: TypeAlias = Literal["stored", "model"]


@dataclass(frozen=True, slots=True)
class Exported:
    """A thread as JSON, the losses of its format, the number of repairs by the model view, and whether it has all
    branches of the thread: most formats have only the active one.
    """

    thread_id: str
    value: JsonValue
    losses: Sequence[Loss] = ()
    repairs: int = 0
    all_branches: bool = False


@dataclass(slots=True)
class Index:
    """The ids of the threads to export, in order.

    `arrays`: all of them were imported from arrays. `damaged`: the errors of unreadable threads; an export adds
    those that it finds. `left_out`: the threads that no provider would accept, by id, with the reason.
    """

    thread_ids: list[str] = field(default_factory=list)
    arrays: bool = False
    damaged: list[ChatLedgerError] = field(default_factory=list)
    left_out: dict[str, NothingToSend] = field(default_factory=dict)

    def add_damage(self, error: ChatLedgerError) -> None:
        """Raises the error if it is about more than the rows of one thread."""
        if not is_damage(error):
            raise error
        self.damaged.append(error)


async def export_thread(ledger: Ledger, thread_id: str, *, format: str | None = None) -> Exported:  # noqa: A002
    """The record of an imported thread, or the messages of any other thread. With `format`, the messages in that
    format.
    """
    thread = await ledger.threads.get(thread_id)
    imported = from_metadata(thread.metadata)
    if format is None and imported is not None:
        return await _as_record(ledger, thread, imported, None)
    return await _messages(ledger, thread_id, format or DEFAULT_FORMAT)


async def export_all(ledger: Ledger, index: Index, *, format: str | None = None) -> AsyncIterator[Exported]:  # noqa: A002
    """Yields each thread of the index as a record. Skips threads that were deleted meanwhile, and adds the errors of
    damaged ones to `index.damaged`.
    """
    for thread_id in index.thread_ids:
        try:
            thread = await ledger.threads.get(thread_id)
            record = await _as_record(ledger, thread, from_metadata(thread.metadata), format)
        except ThreadNotFound:
            continue
        except ChatLedgerError as error:
            index.add_damage(error)
            continue
        yield record


async def export_conversations(
    ledger: Ledger,
    index: Index,
    *,
    format: str,  # noqa: A002
    view: View = "stored",
) -> AsyncIterator[Exported]:
    """Yields each thread as the object that trainers expect, `{"messages": […]}` or the keys of the format's requests,
    without the other keys of its record.

    Skips threads without messages and threads that were deleted meanwhile. Adds the errors of damaged threads to
    `index.damaged`, and threads whose model view has nothing to send to `index.left_out`. Raises UnknownFormat for the
    model view of a format without a provider.
    """
    for thread_id in index.thread_ids:
        try:
            messages = await _messages(ledger, thread_id, format, view)
        except ThreadNotFound:
            continue
        except NothingToSend as error:
            if error.reasons:
                index.left_out[thread_id] = error
            continue
        except ChatLedgerError as error:
            index.add_damage(error)
            continue
        if not is_empty(messages.value, format):
            yield replace(messages, value=conversation_object(messages.value, format))


async def read_index(ledger: Ledger, *, since: datetime | None = None, until: datetime | None = None) -> Index:
    """The index of the threads that fit the filters: imported ones in the order of their records, then the others by
    time of creation. The filters are those of `threads.list`.
    """
    placed: list[tuple[tuple[Any, ...], str]] = []
    damaged: list[ChatLedgerError] = []
    arrays = True
    cursor = None
    while True:
        page = await ledger.threads.list(archived=None, since=since, until=until, limit=THREADS_PAGE, cursor=cursor)
        damaged += page.damaged
        for thread in page:
            imported = from_metadata(thread.metadata)
            arrays = arrays and imported is not None and imported[1].container == "array"
            placed.append((_place(thread, imported[1] if imported else None), thread.thread_id))
        cursor = page.next_cursor
        if cursor is None:
            break
    return Index([thread_id for _, thread_id in sorted(placed)], arrays and bool(placed), damaged)


def _place(thread: Thread, envelope: Envelope | None) -> tuple[Any, ...]:
    if envelope is None:
        return 1, thread.created_at.isoformat(), 0, 0
    return 0, envelope.imported_at, envelope.index, envelope.item


async def keep_run_by(ledger: Ledger, index: Index, *, model: str | None, agent: str | None) -> None:
    """Keep the threads of the index that have a run of this model and agent. Reads all runs of the tenant."""
    with_run: set[str] = set()
    cursor = None
    while True:
        page = await ledger.runs.list(limit=RUNS_PAGE, cursor=cursor)
        index.damaged += page.damaged
        with_run.update(run.thread_id for run in page if model in (None, run.model) and agent in (None, run.agent))
        cursor = page.next_cursor
        if cursor is None:
            break
    index.thread_ids = [thread_id for thread_id in index.thread_ids if thread_id in with_run]


async def keep_scored(ledger: Ledger, index: Index, minima: Mapping[str, float]) -> None:
    """Keep the threads of the index whose mean score reaches the minimum of every key. Reads the scores of each thread.

    Removes a thread without a score of a key. Adds the error of a damaged score to `index.damaged`.
    """
    chosen = []
    for thread_id in index.thread_ids:
        try:
            means = await mean_scores(ledger, thread_id, list(minima))
        except ChatLedgerError as error:
            index.add_damage(error)
            continue
        if all(means.get(key, -math.inf) >= minimum for key, minimum in minima.items()):
            chosen.append(thread_id)
    index.thread_ids = chosen


async def mean_scores(ledger: Ledger, thread_id: str, keys: Sequence[str]) -> dict[str, float]:
    """The mean of a thread's current scores (`ledger.feedback.list`) by key. A key without scores is missing."""
    scores: dict[str, list[float]] = {key: [] for key in keys}
    cursor = None
    while True:
        page = await ledger.feedback.list(thread_id=thread_id, limit=FEEDBACK_PAGE, cursor=cursor)
        if page.damaged:  # the mean of the readable scores would be wrong
            raise page.damaged[0]
        for score in page:
            if score.key in scores:
                scores[score.key].append(score.score)
        cursor = page.next_cursor
        if cursor is None:
            break
    return {key: math.fsum(own) / len(own) for key, own in scores.items() if own}


async def _as_record(
    ledger: Ledger,
    thread: Thread,
    imported: tuple[dict[str, JsonValue], Envelope] | None,
    format: str | None,  # noqa: A002
) -> Exported:
    if imported is not None and format in (None, imported[1].format):
        record = own_record(*imported, await _read_branches(ledger, thread.thread_id, imported[1]))
        all_branches = get_shape(imported[1].format).branching
        return Exported(thread.thread_id, record.payload, record.losses, all_branches=all_branches)
    format = format or DEFAULT_FORMAT  # noqa: A001
    messages = await _messages(ledger, thread.thread_id, format)
    if imported is not None:
        record = in_place(messages.value, *imported, format)
        return Exported(thread.thread_id, record.payload, [*messages.losses, *record.losses])
    record_of_our_own = {
        "thread_id": thread.thread_id,
        "title": thread.title,
        "user_id": thread.user_id,
        "created_at": thread.created_at.isoformat(),
        "metadata": thread.metadata,
        **conversation_object(messages.value, format),
    }
    return Exported(thread.thread_id, record_of_our_own, messages.losses)


async def count_left_out(ledger: Ledger, exported: Mapping[str, bool], *, shared: bool) -> Counter[str]:
    """What a file without places for them leaves out of the exported threads: branches, runs, scores and values.
    `exported` says of each thread whether the file has all its branches, and `shared` whether to count the values of
    the tenant and its users too.
    """
    scope = scope_of(ledger)
    left_out: Counter[str] = Counter()
    for all_branches in (True, False):
        ids = [thread_id for thread_id, has_all in exported.items() if has_all is all_branches]
        counts = await count_beside(scope, ids)
        left_out.update(counts if not all_branches else {**counts, "branches": 0})
    if shared:
        left_out["values"] += await count_shared_values(scope)
    return left_out


async def _read_branches(ledger: Ledger, thread_id: str, envelope: Envelope) -> list[BranchMessages]:
    """All branches if the record's shape can hold several, else the active branch."""
    if not get_shape(envelope.format).branching:
        return [BranchMessages(with_draft(await ledger.messages.history(thread_id)))]
    return await read_branches(ledger, thread_id)


async def _messages(
    ledger: Ledger,
    thread_id: str,
    format: str,  # noqa: A002
    view: View = "stored",
) -> Exported:
    require_writable(format)
    messages = with_draft(await ledger.messages.history(thread_id))
    if view == "model":
        viewed, repairs = model_view(get_codec(format), messages)
        return Exported(thread_id, viewed.payload, viewed.find_losses(), len(repairs))
    encoded = encode(format, messages, kind="dicts")
    return Exported(thread_id, encoded.payload, encoded.losses, 0)
