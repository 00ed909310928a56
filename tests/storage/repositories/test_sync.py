"""A service that sends its whole history each time, edits and shorter histories included."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    InvalidArgument,
    Ledger,
    NewThread,
    Payload,
    RuleViolation,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.errors import IdConflict
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.databases.scope import Scope
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, user
from tests.storage.raw import count_rows

SENT = [user("?"), assistant("!"), user("??"), assistant("!!")]
EDITED = [*SENT[:2], user("edited"), assistant("yes")]


@pytest.fixture
async def synced(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.sync("t", SENT, on_difference="branch")
    return ledger


async def told(ledger: Ledger) -> list[tuple[int, int | None, int, bool]]:
    return [(one.branch, one.forked_at, one.last_seq, one.active) for one in await ledger.branches.list("t")]


async def sync(ledger: Ledger, messages: list[ChatMessage], **options: Any) -> Any:
    return await ledger.messages.sync("t", messages, on_difference="branch", **options)


async def test_a_history_that_goes_on_is_appended(synced: Ledger) -> None:
    assert (await sync(synced, [*SENT, user("on")])).messages[0].seq == 5
    assert len(await told(synced)) == 1


async def test_an_edited_history_keeps_what_is_equal(database: Database, synced: Ledger) -> None:
    before = await count_rows(database)
    stored = await sync(synced, EDITED)
    assert (stored.messages[0].seq, stored.last_seq, stored.replayed) == (3, 4, False)
    assert texts(await synced.messages.history("t")) == ["?", "!", "edited", "yes"]
    assert await told(synced) == [(0, None, 4, False), (1, 2, 4, True)]
    assert await count_rows(database) == before | {"branches": 2, "messages": 6}
    assert (await sync(synced, [*EDITED, user("on")], expected=stored.mark)).messages[0].seq == 5


async def test_the_first_message_may_differ_already(synced: Ledger) -> None:
    await sync(synced, [user("another beginning")])
    assert texts(await synced.messages.history("t")) == ["another beginning"]
    assert await told(synced) == [(0, None, 4, False), (1, None, 1, True)]


@pytest.mark.parametrize("branch", [None, 0])
@pytest.mark.parametrize("messages", [EDITED, SENT[:2], SENT[:3], []], ids=["edited", "2", "3", "none"])
async def test_the_same_list_again_is_a_replay(
    database: Database, synced: Ledger, branch: int | None, messages: list[ChatMessage]
) -> None:
    first = await sync(synced, messages, branch=branch)
    assert texts(await synced.messages.history("t")) == [message.text for message in messages]
    before = await told(synced), await count_rows(database)
    for _ in range(2):
        again = await sync(synced, messages, branch=branch)
        assert (again.replayed, again.last_seq, again.mark) == (True, first.last_seq, first.mark)
    assert (await told(synced), await count_rows(database)) == before
    assert len(before[0]) == 2


async def test_a_shorter_history_is_a_branch_that_ends_there(synced: Ledger) -> None:
    stored = await sync(synced, SENT[:2])
    assert (stored.last_seq, stored.messages) == (2, [])
    assert await told(synced) == [(0, None, 4, False), (1, 2, 2, True)]
    next_ = await synced.messages.append("t", [user("another way")], expected=stored.mark)
    assert next_.messages[0].branch == 1


async def test_a_branch_that_is_named_is_compared_and_stays_as_it_is(synced: Ledger) -> None:
    await sync(synced, EDITED)
    await sync(synced, [*SENT[:3], assistant("third")], branch=0)
    assert await told(synced) == [(0, None, 4, False), (1, 2, 4, False), (2, 3, 4, True)]
    assert texts(await synced.messages.history("t", branch=0)) == ["?", "!", "??", "!!"]
    again = await sync(synced, EDITED, branch=0)
    assert (again.replayed, again.messages[0].branch, len(await told(synced))) == (True, 1, 3)
    grown = await synced.messages.append("t", [user("on")], branch=1)
    assert (await sync(synced, EDITED, branch=0)).last_seq == grown.last_seq - 1
    assert (await sync(synced, [*EDITED, user("off")], branch=0)).messages[0].branch == 3


async def test_without_on_difference_a_difference_is_a_conflict(synced: Ledger) -> None:
    for messages in (EDITED, SENT[:2], []):
        with pytest.raises(VersionConflict):
            await synced.messages.sync("t", messages)
    with pytest.raises(InvalidArgument, match="on_difference must be 'error' or 'branch'"):
        await synced.messages.sync("t", SENT, on_difference="fork")  # type: ignore[arg-type]
    assert len(await told(synced)) == 1


async def test_a_change_since_the_mark_is_a_conflict(synced: Ledger) -> None:
    mark = (await synced.branches.get("t")).mark
    await synced.messages.append("t", [user("meanwhile")])
    for messages in (EDITED, SENT[:2]):
        with pytest.raises(VersionConflict):
            await sync(synced, messages, expected=mark)
    assert len(await told(synced)) == 1


async def test_syncs_at_once_make_one_branch(database: Database, synced: Ledger) -> None:
    async with database.open() as other:
        done = await asyncio.gather(*(sync(ledger, EDITED) for ledger in (synced, other, synced)))
        assert sum(not one.replayed for one in done) == 1
        await asyncio.gather(*(sync(ledger, SENT[:1]) for ledger in (synced, other, synced)))
    assert await told(synced) == [(0, None, 4, False), (1, 2, 4, False), (2, 1, 1, True)]


async def test_syncs_with_a_named_branch_at_once_make_one_branch(database: Database, synced: Ledger) -> None:
    await sync(synced, EDITED)
    other = [*SENT[:3], assistant("third")]
    async with database.open() as another:
        done = await asyncio.gather(*(sync(ledger, other, branch=0) for ledger in (synced, another, synced, another)))
    assert sum(not one.replayed for one in done) == 1
    assert await told(synced) == [(0, None, 4, False), (1, 2, 4, False), (2, 3, 4, True)]


async def test_a_list_is_a_repeat_after_its_messages_were_revised_or_redacted(synced: Ledger) -> None:
    stored = await sync(synced, EDITED, branch=0)
    await synced.messages.revise("t", stored.messages[0].message_id or "", user("revised"))
    await erase_at(scope_of(synced), "t", 4, branch=1)
    assert (await sync(synced, EDITED, branch=0)).replayed
    assert len(await told(synced)) == 2


async def test_the_ids_that_a_sync_mints_tell_nothing_of_the_messages(ledger: Ledger) -> None:
    minted = []
    for name in ("a", "b"):
        await ledger.threads.create(name)
        await ledger.messages.append(name, [user("?")])
        stored = await ledger.messages.sync(name, [user("my PIN is 4711")], branch=0, on_difference="branch")
        minted += [message.message_id for message in stored.messages]
        await ledger.threads.delete(name)
    await ledger.threads.create("a")
    await ledger.messages.append("a", [user("?")])
    again = await ledger.messages.sync("a", [user("my PIN is 4711")], branch=0, on_difference="branch")
    minted += [message.message_id for message in again.messages]
    assert len(set(minted)) == 3


async def test_ids_that_are_stored_elsewhere_are_found_or_refused(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    first = [user("?", message_id="q"), assistant("!", message_id="a")]
    other = [user("?", message_id="q"), assistant("!!", message_id="b")]
    await sync(ledger, first)
    await sync(ledger, other)
    assert (await sync(ledger, first)).replayed
    assert await told(ledger) == [(0, None, 2, False), (1, 1, 2, True)]
    with pytest.raises(IdConflict):
        await sync(ledger, [*first, user("on", message_id="c")])
    assert (await sync(ledger, [*first, user("on", message_id="c")], branch=0)).messages[0].seq == 3
    with pytest.raises(IdConflict):
        await sync(ledger, [user("?", message_id="q"), assistant("edited", message_id="b")])


async def test_results_in_the_place_of_synthetic_ones_are_a_difference(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    asked = [user("?"), assistant(calls=[call("a")])]
    await sync(ledger, asked)
    await ledger.messages.close_open_calls("t")
    assert (await sync(ledger, asked)).replayed
    with pytest.raises(RuleViolation, match="R7"):
        await ledger.messages.sync("t", [*asked, result("a", "late")])
    await sync(ledger, [*asked, result("a", "late")])
    assert texts(await ledger.messages.history("t")) == ["?", "", "late"]
    assert await told(ledger) == [(0, None, 3, False), (1, 2, 3, True)]


async def test_synthetic_results_stay_where_another_message_follows(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    asked = [user("?"), assistant(calls=[call("a")])]
    await sync(ledger, [*asked])
    await sync(ledger, [*asked, user("never mind"), assistant("fine")], on_open_calls="close")
    await sync(ledger, [*asked, user("other")])
    assert [message.state for message in (await ledger.messages.history("t")).messages][2:] == ["synthetic", "complete"]
    await sync(ledger, asked)
    assert await told(ledger) == [(0, None, 5, False), (1, 3, 4, False), (2, 3, 3, True)]


async def test_a_sync_creates_the_thread(ledger: Ledger, database: Database) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.messages.sync("new", SENT)
    made = NewThread(title="Asked", rules="lenient")
    payload = Payload([{"role": "user", "content": "?"}, {"role": "critic", "content": "!"}], "openai-chat")
    for _ in range(2):
        stored = await ledger.user("ada").messages.sync("new", payload, create=made)
        thread = await ledger.threads.get("new")
        assert (thread.title, thread.user_id, thread.rules, stored.last_seq) == ("Asked", "ada", "lenient", 2)
    assert stored.replayed
    with pytest.raises(ThreadNotFound):
        await ledger.user("bob").messages.sync("new", payload, create=made)
    async with database.open() as other:
        syncs = [one.messages.sync("at once", SENT, create=True) for one in (ledger, other) for _ in range(4)]
        done = await asyncio.gather(*syncs)
    assert sorted(one.replayed for one in done) == [False] + [True] * 7
    assert texts(await ledger.messages.history("at once")) == ["?", "!", "??", "!!"]


async def test_a_thread_that_is_deleted_meanwhile_is_created_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.messages.append("t", SENT[:2], create=True)
    whole, tried = Scope.append, []

    async def append(self: Scope, request: Any) -> Any:
        tried.append(request)
        if len(tried) == 1:
            await ledger.threads.delete("t")
            raise VersionConflict("branch", 2, 3, thread_id="t", branch=0)
        return await whole(self, request)

    monkeypatch.setattr(Scope, "append", append)
    stored = await ledger.messages.sync("t", SENT, create=True)
    assert (stored.last_seq, texts(await ledger.messages.history("t"))) == (4, ["?", "!", "??", "!!"])


async def test_in_a_transaction(synced: Ledger) -> None:
    async with synced.begin() as tx:
        await tx.messages.sync("t", EDITED, on_difference="branch")
        await tx.messages.sync("t", SENT[:1], on_difference="branch")
    assert await told(synced) == [(0, None, 4, False), (1, 2, 4, False), (2, 1, 1, True)]
