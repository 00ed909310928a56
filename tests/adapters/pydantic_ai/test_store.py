"""The store, call by call: what it stores where, what it refuses, and which user sees what."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import Any

import pytest
from pydantic_ai import messages as ai
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.tools import DeferredToolRequests

from chatledger import ChatMessage, Ledger, Limits, Payload
from chatledger.adapters.pydantic_ai import EntryNotFound, LedgerConversationStore
from chatledger.adapters.pydantic_ai import record as records
from chatledger.adapters.pydantic_ai import store as stores
from chatledger.errors import DecodeError, IdConflict, InvalidArgument
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from tests.adapters.pydantic_ai.objects import HISTORY, TIME
from tests.conftest import Database
from tests.faults.proxy import proxied


def said(text: str, **fields: Any) -> ai.ModelMessage:
    return ai.ModelRequest(parts=[ai.UserPromptPart(text, timestamp=TIME)], timestamp=TIME, **fields)


def answered(text: str) -> ai.ModelMessage:
    return ai.ModelResponse(parts=[ai.TextPart(text)], timestamp=TIME)


def talk(*numbers: int) -> list[ai.ModelMessage]:
    return [said(f"{number}?") if number % 2 else answered(f"{number}.") for number in numbers]


async def saved(
    store: LedgerConversationStore, messages: list[Any], *, id_: str = "c", scope: str | None = None
) -> Conversation:
    conversation = Conversation(messages=messages, conversation_id=id_)
    await store.save(conversation, scope=scope)
    return conversation


async def texts(ledger: Ledger, thread_id: str = "c") -> list[str | None]:
    return [message.text for message in await ledger.messages.history(thread_id)]


# --- What is stored ---------------------------------------------------------------------------------------------------


async def test_an_entry_has_one_message_for_each_part_of_its_request(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    entries = await store.save(Conversation(messages=HISTORY, conversation_id="c"))
    stored = (await ledger.messages.history("c")).messages
    first, second, third = entries[0].id, entries[1].id, entries[2].id
    ids = [first, f"{first}/1", second, third, f"{third}/1", f"{third}/2"]
    assert [one.message_id for one in stored][:6] == ids
    assert await store.load_entries("c") == entries
    for limit in range(1, len(entries) + 2):
        assert await store.load_entries("c", limit=limit) == entries[-limit:]
        assert await store.read_history(entries[3].id, limit=limit) == entries[:4][-limit:]
    for entry in entries:
        assert await store.read_entry(entry.id) == entry
    with pytest.raises(LookupError):
        await store.read_entry(f"{first}/1")
    with pytest.raises(EntryNotFound):
        await store.read_history("nowhere")


async def test_ids_that_are_joined_are_quoted(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    first = ConversationEntry(id="a b/1", parent_id=None, message=HISTORY[0])
    second = ConversationEntry(id="a b", parent_id="a b/1", message=HISTORY[2])
    record = ConversationRecord(conversation_id="c", head_id="a b")
    await store.write_record(record, new_entries=[first, second], expected_revision=None)
    ids = [one.message_id for one in await ledger.messages.history("c")]
    assert ids == ["a b/1", "a%20b%2F1/1", "a b", "a%20b/1", "a%20b/2"]
    assert await store.load_entries("c") == [first, second]


async def test_the_record_comes_back_as_it_was(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    call = ai.ToolCallPart("delete", {"path": "a"}, tool_call_id="c1")
    requests = DeferredToolRequests(approvals=[call], metadata={"c1": {"why": ["x", None, 1.5]}})
    conversation = await saved(store, [said("1?"), ai.ModelResponse(parts=[call], timestamp=TIME)], scope="ada")
    conversation.deferred_tool_requests = requests
    conversation.usage.details = {"thoughts": 3}
    await store.save(conversation)
    loaded = await store.load("c")
    assert loaded is not None
    assert (loaded, loaded.deferred_tool_requests) == (conversation, requests)
    (record,) = await store.list_conversations(scope="ada")
    value = await ledger.kv.get(("thread", "c"), "pydantic-ai/record")
    assert value is not None
    assert value.value["revision"] == record.revision == loaded.revision
    assert len(await texts(ledger)) == 2


async def test_a_run_is_typed_where_it_ran(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    ran = said("1?", run_id="r", conversation_id="c")
    await saved(store, [ran, said("2?", run_id="s", conversation_id="other")])
    assert [one.run_id for one in await ledger.messages.history("c")] == ["r", None]
    again = await saved(store, [said("1?", run_id="r", conversation_id="d")], id_="d")
    assert [one.run_id for one in await ledger.messages.history("d")] == [None]  # a run belongs to one thread
    again.messages.append(said("2?", run_id="r", conversation_id="d"))
    await store.save(again)
    assert (await store.load("d")) == again


async def test_a_conversation_may_be_larger_than_an_append(database: Database) -> None:
    async with database.open(limits=Limits(messages=10, bytes=4_000)) as ledger:
        store = LedgerConversationStore(ledger)
        conversation = await saved(store, [said(str(number) * 500) for number in range(35)])
        conversation.messages += [said("x" * 500) for _ in range(35)]
        await store.save(conversation)
        fork = await store.fork("c", new_conversation_id="f")
        assert fork.messages == conversation.messages == (await store.load("f")).messages
        with pytest.raises(Exception, match="bytes of an append"):
            await saved(store, [said("fits"), said("x" * 5_000)], id_="d")
        assert await ledger.threads.find("d") is None


# --- Branches and forks -----------------------------------------------------------------------------------------------


async def test_the_active_branch_ends_where_the_history_ends(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    first = await saved(store, talk(1, 2, 3, 4))
    branched = await store.branch("c", at=2, expected_revision=first.revision)
    assert await texts(ledger) == ["1?", "2."]
    branched.messages += talk(5, 6)
    await store.save(branched)
    assert await texts(ledger) == ["1?", "2.", "5?", "6."]
    assert len(await ledger.branches.list("c")) == 2
    record = await store.read_record("c")
    assert record is not None
    back = await store.branch("c", from_entry=record.branches[0], expected_revision=branched.revision)
    assert await texts(ledger) == ["1?", "2.", "3?", "4."]
    assert len(await ledger.branches.list("c")) == 2  # the branch that ends there became the active one again
    back.messages += talk(7)
    await store.save(back)
    assert await texts(ledger) == ["1?", "2.", "3?", "4.", "7?"]
    nothing = await store.branch("c", at=0, expected_revision=back.revision)
    assert await texts(ledger) == nothing.messages == []
    rewritten = Conversation(messages=talk(9), conversation_id="c", revision=nothing.revision)
    await store.save(rewritten)
    assert await texts(ledger) == ["9?"]


async def test_a_save_that_rewrites_the_history_is_a_branch(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2, 3, 4))
    edited = dataclasses.replace(conversation, messages=talk(1, 2, 7), new_message_index=None)
    await store.save(edited)
    assert await texts(ledger) == ["1?", "2.", "7?"]
    record = await store.read_record("c")
    assert record is not None
    assert [entry.message for entry in await store.read_history(record.branches[0])] == talk(1, 2, 3, 4)


async def test_a_deleted_conversation_is_deleted_and_its_fork_stays(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await saved(store, HISTORY, scope="ada")
    fork = await store.fork("c", at=5, new_conversation_id="f", scope="eve")
    assert fork.messages == HISTORY[:5]
    whole = await store.fork("c", new_conversation_id="g")
    await store.delete("c", scope="eve")
    assert await store.load("c") is not None
    await store.delete("c", scope="ada")
    assert await store.load("c") is await ledger.threads.find("c") is None
    assert (await store.load("f")) == fork
    assert (await ledger.threads.get("f")).user_id == "eve"
    assert (await ledger.threads.get("g")).user_id == "ada"
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision="gone")
    await store.delete("g")
    await store.delete("f")
    with pytest.raises(EntryNotFound):
        await store.read_entry(whole.conversation_id)
    assert await ledger.threads.count(archived=None) == 0


async def test_a_head_of_another_conversation_shares_the_stored_messages(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    source = await saved(store, talk(1, 2, 3, 4, 5, 6))
    fork = await store.fork("c", at=3, new_conversation_id="f")
    fork.messages += talk(8)
    await store.save(fork)
    record, of_source = await store.read_record("f"), await store.read_record("c")
    assert record is not None
    assert of_source is not None
    moved = dataclasses.replace(record, head_id=of_source.head_id, revision="moved")
    await store.write_record(moved, expected_revision=record.revision)
    assert (await store.load("f")).messages == source.messages
    first, second = await ledger.branches.list("f")
    assert (first.last_seq, second.forked_at, second.last_seq) == (4, 3, 6)


async def test_entries_may_be_a_tree(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    parents = {"a": None, "b": "a", "c": "a", "d": "b"}
    entries = [ConversationEntry(id=one, parent_id=of, message=said(one)) for one, of in parents.items()]
    record = ConversationRecord(conversation_id="c", head_id="c", branches=["d"])
    await store.write_record(record, new_entries=entries, expected_revision=None)
    assert await texts(ledger) == ["a", "c"]
    assert [entry.id for entry in await store.read_history("d")] == ["a", "b", "d"]
    assert [await store.read_entry(entry.id) for entry in entries] == entries


# --- What is refused --------------------------------------------------------------------------------------------------


async def test_conflicts_store_nothing(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2), scope="ada")
    record = await store.read_record("c")
    assert record is not None
    new = ConversationEntry(parent_id=record.head_id, message=said("lost"))
    now = dataclasses.replace(record, head_id=new.id, revision="now")
    lost = ConversationEntry(parent_id="nowhere", message=said("lost"))
    elsewhere = dataclasses.replace(now, head_id=lost.id)
    for wrong, entries, revision in [
        (now, [new], "stale"),
        (now, [new], None),
        (dataclasses.replace(now, scope="eve"), [new], record.revision),
        (dataclasses.replace(now, head_id="nowhere"), [new], record.revision),
        (dataclasses.replace(now, head_id="nowhere"), [], record.revision),
        (elsewhere, [lost], record.revision),
        (dataclasses.replace(now, conversation_id="d"), [new], "stale"),
    ]:
        with pytest.raises(ConversationConflict):
            await store.write_record(wrong, new_entries=entries, expected_revision=revision)
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision="stale")
    assert (await store.load("c"), await texts(ledger)) == (conversation, ["1?", "2."])
    assert [thread.thread_id for thread in await ledger.threads.list()] == ["c"]


async def test_the_id_of_a_stored_entry_is_a_repeat_or_a_conflict(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await saved(store, talk(1, 2, 3))
    first, second, third = await store.load_entries("c") or []
    record = await store.read_record("c")
    assert record is not None
    other = ConversationEntry(id=second.id, parent_id=third.id, message=answered("other"))
    again = dataclasses.replace(other, message=second.message)
    now = dataclasses.replace(record, head_id=second.id, revision="now")
    with pytest.raises(ConversationConflict):
        await store.write_record(now, new_entries=[other], expected_revision=record.revision)
    await store.write_record(now, new_entries=[again], expected_revision=record.revision)
    assert await store.load_entries("c") == [first, second]
    assert await texts(ledger) == ["1?", "2."]


async def test_a_thread_that_is_no_conversation_is_left_alone(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await ledger.messages.append("c", [ChatMessage(role="user", content="mine")], create=True)
    assert await store.load("c") is None
    await store.delete("c")
    with pytest.raises(ConversationConflict) as caught:
        await saved(store, talk(1))
    assert not isinstance(caught.value.__cause__, IdConflict)
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision="x")
    assert (await texts(ledger), await store.list_conversations()) == (["mine"], [])


async def test_a_live_object_is_refused_with_its_place_and_nothing_is_written(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    part = ai.ToolReturnPart("f", "b", tool_call_id="c", metadata=object())
    with pytest.raises(DecodeError) as caught:
        await saved(store, [*talk(1), ai.ModelRequest(parts=[ai.UserPromptPart("a"), part])])
    assert caught.value.path == "$[1].parts[1]"
    live = Conversation(
        messages=talk(1),
        conversation_id="c",
        deferred_tool_requests=DeferredToolRequests(metadata={"c1": {"live": object()}}),
    )
    with pytest.raises(DecodeError) as caught:
        await store.save(live)
    assert caught.value.path == "record.deferred_tool_requests"
    assert await ledger.threads.find("c") is None


async def test_an_entry_that_the_framework_refuses_does_not_hide_the_others(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2))
    entries = await store.load_entries("c")
    assert entries is not None
    refused = {"kind": "response", "parts": [{"part_kind": "of tomorrow"}], "timestamp": "2026-11-01T12:00:00Z"}
    (bad,) = (await ledger.messages.append("c", Payload([refused], "pydantic-ai"))).messages
    record = await store.read_record("c")
    assert record is not None
    later = ConversationEntry(parent_id=bad.message_id, message=said("3?"))
    moved = dataclasses.replace(record, head_id=later.id, revision="now")
    await store.write_record(moved, new_entries=[later], expected_revision=conversation.revision)
    with caplog.at_level(logging.WARNING):
        assert await store.load_entries("c") == [*entries, later]
    assert "seq 3" in caplog.text


async def test_redacted_messages_keep_their_place(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    summary = ai.ModelRequest(parts=[ai.CompactionPart("short")], timestamp=TIME)
    await saved(store, [*HISTORY, summary, *talk(1)])
    entries = await store.load_entries("c")
    assert entries is not None
    stored = (await ledger.messages.history("c")).messages
    summarised = [one.seq for one in stored if one.message_id == entries[7].id]
    for seq in (2, 5, *summarised):  # the second part of a request, one in the middle, and a whole message
        assert seq is not None
        await erase_at(scope_of(ledger), "c", seq)
    loaded = await store.load_entries("c")
    assert loaded is not None
    assert [(one.id, one.parent_id) for one in loaded] == [(one.id, one.parent_id) for one in entries]
    for index, (entry, before) in enumerate(zip(loaded, entries, strict=True)):
        if index == 7:
            assert entry.message.parts == []
        elif index in (0, 2):
            assert [part.part_kind for part in entry.message.parts] == [part.part_kind for part in before.message.parts]
        else:
            assert entry.message == before.message
    assert await store.read_entry(entries[2].id) == loaded[2]
    conversation = await store.load("c")
    assert conversation is not None
    conversation.messages += talk(3)
    await store.save(conversation)
    assert len(await store.load_entries("c") or []) == 10
    await store.fork("c", new_conversation_id="f")
    assert await store.load_entries("f") == await store.load_entries("c")


async def test_a_conversation_is_read_in_its_own_thread(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await saved(store, talk(1, 2), scope="ada")
    fork = await store.fork("c", new_conversation_id="f", scope="eve")
    await erase_at(scope_of(ledger), "c", 1)
    assert (await store.load("f", scope="eve")) == fork
    assert (await store.load("c", scope="ada")) != fork


async def test_messages_from_elsewhere_are_beside_the_conversation(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2))
    await ledger.messages.append("c", [ChatMessage(role="user", content="from elsewhere")])
    assert (await store.load("c", limit=1)).messages == talk(2)
    conversation.messages += talk(3)
    await store.save(conversation)
    assert await texts(ledger) == ["1?", "2.", "3?"]
    assert [branch.last_seq for branch in await ledger.branches.list("c")] == [3, 3]


@pytest.mark.parametrize("following", [talk(1, 2, 3), talk(5, 6)], ids=["goes on", "begins anew"])
async def test_a_draft_from_elsewhere_is_beside_the_conversation(ledger: Ledger, following: list[Any]) -> None:
    """The thread is neither empty, nor does the save go on behind the draft or wait for its end."""
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2))
    async with ledger.messages.stream("c") as draft:
        await draft.feed("So")
        await draft.flush()
        assert (await store.load("c", limit=1)).messages == talk(2)
        conversation.messages = following
        await store.save(conversation)
        assert (await store.load("c")).messages == following
        assert [message.state for message in await ledger.messages.history("c")] == ["complete"] * len(following)
    assert [branch.last_seq for branch in await ledger.branches.list("c")] == [3, len(following)]
    assert draft.message.text == "So"


@pytest.mark.parametrize("wrong", [{"ledger": "l.db"}, {"rules": "loose"}])
async def test_arguments_are_checked(ledger: Ledger, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        LedgerConversationStore(**{"ledger": ledger, **wrong})


async def test_the_store_sets_the_rules_level(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger, rules="strict")
    call = ai.ModelResponse(parts=[ai.ToolCallPart("f", {}, tool_call_id="c1")], timestamp=TIME)
    with pytest.raises(Exception, match="R8"):
        await saved(store, [said("1?"), call, said("2?")])
    await saved(store, talk(1))
    assert (await ledger.threads.get("c")).rules == "strict"


# --- Several users and writers ----------------------------------------------------------------------------------------


async def test_users_are_kept_apart(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    mine = await saved(store, talk(1, 2), scope="ada")
    await saved(store, talk(3), id_="d", scope="eve")
    assert await store.load("c", scope="eve") is None
    assert [one.conversation_id for one in await store.list_conversations(scope="eve")] == ["d"]
    await store.delete("c", scope="eve")
    forged = dataclasses.replace(mine, messages=talk(1, 2, 5), new_message_index=None)
    with pytest.raises(ConversationConflict):
        await store.save(forged, scope="eve")
    with pytest.raises(Exception, match="not in the store"):
        await store.fork("c", new_conversation_id="stolen", scope="eve", source_scope="eve")
    assert (await store.load("c", scope="ada")) == mine
    assert [thread.thread_id for thread in await ledger.user("eve").threads.list()] == ["d"]
    view = LedgerConversationStore(ledger.user("eve"))
    assert (await view.load("c"), await view.load("d") is None) == (None, False)
    assert [one.conversation_id for one in await view.list_conversations()] == ["d"]
    with pytest.raises(EntryNotFound):
        await view.read_entry((await store.load_entries("c"))[0].id)


async def test_a_cancelled_save_is_stored(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2))
    record = await store.read_record("c")
    assert record is not None
    new = ConversationEntry(parent_id=record.head_id, message=said("3?"))
    now = dataclasses.replace(record, head_id=new.id, revision="now")
    write = store.write_record(now, new_entries=[new], expected_revision=conversation.revision)
    task = asyncio.create_task(write)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await texts(ledger) == ["1?", "2.", "3?"]


async def test_sixteen_writers_lose_nothing(database: Database) -> None:
    """Each loads the conversation, adds a message and saves, and loads again where another writer came first."""
    async with database.open() as one, database.open() as two:
        stores = [LedgerConversationStore(one), LedgerConversationStore(two)]

        async def write(writer: int) -> None:
            store = stores[writer % 2]
            for number in range(2):
                while True:
                    conversation = await store.load("c", limit=1) or Conversation(conversation_id="c")
                    conversation.messages.append(said(f"{writer}/{number}"))
                    try:
                        await store.save(conversation)
                    except ConversationConflict:
                        await asyncio.sleep(0)
                        continue
                    break

        await asyncio.wait_for(asyncio.gather(*map(write, range(16))), 120)
        loaded = await stores[1].load("c")
        assert loaded is not None
        written = [message.parts[0].content for message in loaded.messages]
        assert sorted(written) == sorted(f"{writer}/{number}" for writer in range(16) for number in range(2))
        for writer in range(16):
            assert [text for text in written if text.startswith(f"{writer}/")] == [f"{writer}/{n}" for n in range(2)]
        assert len(await one.branches.list("c")) == 1


@pytest.mark.parametrize("kind", ["first save", "save", "usage", "rewrite", "branch"])
async def test_one_of_two_writers_wins(database: Database, kind: str) -> None:
    """Against another writer of the same kind, and against one that deletes the conversation."""

    async def write(store: LedgerConversationStore, id_: str, known: Conversation | None, text: str) -> None:
        if known is None:
            await saved(store, [said(text)], id_=id_)
        elif kind == "branch":
            await store.branch(id_, at=1, expected_revision=known.revision)
        else:
            kept = [] if kind == "rewrite" else known.messages
            new = [] if kind == "usage" and text == "a" else [said(text)]
            messages, index = [*kept, *new], None if kind == "rewrite" else known.new_message_index
            await store.save(dataclasses.replace(known, messages=messages, new_message_index=index))

    async with database.open() as one, database.open() as two:
        here, there = LedgerConversationStore(one), LedgerConversationStore(two)
        for number in range(12):
            id_, known = f"c{number}", None
            if kind != "first save":
                await saved(here, talk(1, 2), id_=id_)
                known = await here.load(id_)
            deletes = known is not None and number % 2 == 1
            revision = str(known and known.revision)
            second = there.delete_record(id_, expected_revision=revision) if deletes else write(there, id_, known, "b")
            outcomes = await asyncio.gather(write(here, id_, known, "a"), second, return_exceptions=True)
            lost = [outcome for outcome in outcomes if outcome is not None]
            assert [type(outcome) for outcome in lost] == [ConversationConflict], outcomes
            assert (await here.load(id_) is None) == (deletes and outcomes[1] is None)


async def test_a_record_is_found_among_many_values(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await saved(store, talk(1))
    for number in range(60):
        await ledger.kv.put(("thread", "c"), f"a{number}", number)
    assert [record.conversation_id for record in await store.read_records()] == ["c"]


async def test_records_are_read_by_few_statements(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        store = LedgerConversationStore(ledger)
        for number in range(30):
            await saved(store, talk(1), id_=f"c{number}")
        for _ in range(2):  # they prepare the statements
            await store.read_records()
        before = proxy.round_trips
        listed = await store.read_records(limit=20)
        assert proxy.round_trips - before == 2
        assert [record.conversation_id for record in listed] == [f"c{number}" for number in range(29, 9, -1)]


def read_records_by(monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    for module in (records, stores):
        monkeypatch.setattr(module, "read_stored", read)


async def test_a_conversation_recreated_after_its_deletion_is_another_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that happens between the reads of a save and its write."""
    read = records.read_stored
    async with database.open() as one, database.open() as two:
        here, there = LedgerConversationStore(one), LedgerConversationStore(two)
        conversation = await saved(here, talk(1, 2))

        async def read_and_replace(source: Any, conversation_id: str) -> Any:
            found: Any = await read(source, conversation_id)
            if source is one and conversation.revision == found.record.revision:
                read_records_by(monkeypatch, read)
                await there.delete("c")
                entries = [dataclasses.replace(entry) for entry in before]
                record = dataclasses.replace(found.record, revision="another")
                await there.write_record(record, new_entries=entries, expected_revision=None)
            return found

        before = await here.load_entries("c") or []
        record = await here.read_record("c")
        assert record is not None
        new = ConversationEntry(parent_id=record.head_id, message=said("lost"))
        now = dataclasses.replace(record, head_id=new.id, revision="now")
        read_records_by(monkeypatch, read_and_replace)
        for _ in range(2):
            with pytest.raises(ConversationConflict):
                await here.write_record(now, new_entries=[new], expected_revision=conversation.revision)
        assert (await texts(one), (await here.load("c")).revision) == (["1?", "2."], "another")


async def test_a_message_from_elsewhere_does_not_split_an_entry(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reads of a save and its write, somebody appends to the thread."""
    read = records.read_stored
    store = LedgerConversationStore(ledger)
    conversation = await saved(store, talk(1, 2))
    record = await store.read_record("c")
    assert record is not None
    new = ConversationEntry(parent_id=record.head_id, message=said("3?"))
    now = dataclasses.replace(record, head_id=new.id, revision="now")

    async def read_and_append(source: Any, conversation_id: str) -> Any:
        found = await read(source, conversation_id)
        read_records_by(monkeypatch, read)
        await ledger.messages.append("c", [ChatMessage(role="user", content="from elsewhere")])
        return found

    read_records_by(monkeypatch, read_and_append)
    with pytest.raises(ConversationConflict):
        await store.write_record(now, new_entries=[new], expected_revision=conversation.revision)
    await store.write_record(now, new_entries=[new], expected_revision=conversation.revision)
    assert [entry.message for entry in await store.load_entries("c") or []] == [*talk(1, 2), said("3?")]
    assert await texts(ledger) == ["1?", "2.", "3?"]


async def test_a_delete_takes_no_message_that_it_has_not_seen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = records.read_stored
    async with database.open() as one, database.open() as two:
        here, there = LedgerConversationStore(one), LedgerConversationStore(two)
        conversation = await saved(here, talk(1, 2))
        conversation.messages += talk(3)
        saves: list[asyncio.Task[Any]] = []

        async def read_while_another_saves(source: Any, conversation_id: str) -> Any:
            found = await read(source, conversation_id)
            read_records_by(monkeypatch, read)
            saves.append(asyncio.create_task(there.save(conversation)))
            await asyncio.wait(saves, timeout=0.3)  # it waits for the delete; without a lock it would be done
            return found

        read_records_by(monkeypatch, read_while_another_saves)
        await here.delete_record("c", expected_revision=str(conversation.revision))
        with pytest.raises(ConversationConflict):
            await asyncio.wait_for(saves[0], 60)
        assert await here.load("c") is None
