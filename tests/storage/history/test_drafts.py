"""A window that leaves a draft out is the window of the same branch before the draft began."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chatledger import History, Ledger
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, turn

WINDOWS: list[dict[str, Any]] = [
    {},
    *({name: size} for name in ("newest", "limit", "last", "last_turns") for size in (0, 1, 2, 3, 6, 50, 2_000)),
    *({"newest": size, "before": before} for size in (1, 3) for before in (1, 4, 10, 11, 12, 50)),
    *({"limit": size, "before": before} for size in (1, 3) for before in (1, 4, 10, 11, 12, 50)),
    *({"limit": size, "after": after} for size in (1, 3) for after in (0, 6, 8, 9, 10, 11, 50)),
    *({"after": after} for after in (0, 9, 10, 11)),
    {"after": 8, "before": 12},
    {"limit": 2, "after": 8, "before": 12},
    *({"max_tokens": tokens} for tokens in (5, 10, 40, 1_000)),
    *({"run_id": run, "newest": size} for run in ("asked", "drafted") for size in (1, 5)),
]
DRAFT = assistant("So", message_id="draft", run_id="drafted", state="partial")


async def windows_of(ledger: Ledger) -> list[History | str]:
    found: list[History | str] = []
    for window in WINDOWS:
        try:
            found.append(await ledger.messages.history("t", partials=False, **window))
        except LimitExceeded as error:
            found.append(str(error))
    return found


def without_version(windows: list[History | str]) -> list[History | str]:
    return [replace(one, version=0, mark="") if isinstance(one, History) else one for one in windows]


async def compare(ledger: Ledger) -> None:
    """Begin a draft, and read each window before and after."""
    end = (await ledger.messages.history("t")).version
    before = await windows_of(ledger)
    drafted = await ledger.messages.append("t", [DRAFT])
    after = await windows_of(ledger)
    assert without_version(after) == without_version(before)
    assert {(one.version, one.mark) for one in after if isinstance(one, History)} == {(end + 1, drafted.mark)}
    shown = (await ledger.messages.history("t", newest=1)).messages
    assert [one.message_id for one in shown] == ["draft"]


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
    page = await ledger.messages.history("t", newest=1, partials=False)
    assert [(one.message_id, one.seq) for one in page] == [("draft", 11)]
