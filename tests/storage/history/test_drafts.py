"""A window that leaves a draft out is the window of the same branch before the draft began."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chatledger import History, Ledger, Newest
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, turn
from tests.windows import read

WINDOWS: list[dict[str, Any]] = [
    {},
    *({name: size} for name in ("newest", "limit", "last_turns") for size in (0, 1, 2, 3, 6, 50, 2_000)),
    *({"newest": size, "before": before} for size in (1, 3) for before in (1, 4, 10, 11, 12, 50)),
    *({"limit": size, "after": after} for size in (1, 3) for after in (0, 6, 8, 9, 10, 11, 50)),
    *({"after": after} for after in (0, 9, 10, 11)),
    *({"max_tokens": tokens} for tokens in (5, 10, 40, 1_000)),
    *({"run_id": run, "newest": size} for run in ("asked", "drafted") for size in (1, 5)),
]
DRAFT = assistant("So", message_id="draft", run_id="drafted", state="partial")


async def windows_of(ledger: Ledger) -> list[History | str]:
    found: list[History | str] = []
    for window in WINDOWS:
        try:
            found.append(await read(ledger, "t", **window))
        except LimitExceeded as error:
            found.append(str(error))
    return found


def without_version(windows: list[History | str]) -> list[History | str]:
    blank: dict[str, Any] = {"last_seq": 0, "mark": "", "draft": None}
    return [replace(one, **blank) if isinstance(one, History) else one for one in windows]


async def compare(ledger: Ledger) -> None:
    """Begin a draft, and read each window before and after."""
    end = (await ledger.messages.history("t")).last_seq
    before = await windows_of(ledger)
    drafted = await ledger.messages.append("t", [DRAFT])
    after = await windows_of(ledger)
    assert without_version(after) == without_version(before)
    assert {(one.last_seq, one.mark) for one in after if isinstance(one, History)} == {(end + 1, drafted.mark)}
    seqs = [message.seq or 0 for message in await ledger.messages.history("t")]
    for words, one in zip(WINDOWS, after, strict=True):
        if isinstance(one, History):
            shows = reaches(words, seqs, end) and words.get("run_id") in (None, "drafted")
            assert (one.draft and one.draft.message_id) == ("draft" if shows else None), words


def reaches(words: dict[str, Any], seqs: list[int], end: int) -> bool:
    """Whether a window reaches the end of the branch, where the draft stands at `end + 1`."""
    if "before" in words:
        return bool(words["before"] > end + 1)
    after = words.get("after", 0)
    return bool(after <= end) and sum(seq > after for seq in seqs) <= words.get("limit", len(seqs))


async def store(ledger: Ledger) -> None:
    messages = [message.model_copy(update={"run_id": "asked"}) for message in turn() * 2]
    await ledger.messages.append("t", messages, create=True)


async def test_a_window_does_not_count_the_draft_that_it_leaves_out(ledger: Ledger) -> None:
    await store(ledger)
    await compare(ledger)


async def test_a_window_of_a_users_view_does_not_count_the_draft(ledger: Ledger) -> None:
    ada = ledger.user("ada")
    await store(ada)
    await compare(ada)


async def test_a_window_of_a_forked_branch_does_not_count_the_draft(ledger: Ledger) -> None:
    await store(ledger)
    await fork_at(scope_of(ledger), "t", 9)
    await ledger.messages.append("t", turn()[4:])
    await compare(ledger)


async def test_a_window_does_not_count_the_draft_where_messages_were_removed(ledger: Ledger) -> None:
    await store(ledger)
    messages = (await ledger.messages.history("t")).messages
    for index in (0, 4, 5, 9):
        await ledger.messages.remove("t", messages[index].message_id or "")
    await compare(ledger)


async def test_a_thread_of_a_draft_alone_has_no_message(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await compare(ledger)


async def test_an_interrupted_draft_counts(ledger: Ledger) -> None:
    await store(ledger)
    await ledger.messages.append("t", [DRAFT.model_copy(update={"state": "interrupted"})])
    page = await ledger.messages.history("t", Newest(1))
    assert [(one.message_id, one.seq) for one in page] == [("draft", 11)]
