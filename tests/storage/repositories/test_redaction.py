"""Redacting: no word of the message is left, and the thread is as whole as it was."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from chatledger import ChatMessage, ImagePart, KeyRing, Ledger, TextPart, ThinkPart
from chatledger.errors import DamagedCell, EncryptionError, IdConflict, InvalidArgument, MessageNotFound, ThreadNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.tables import metadata
from tests.checks import findings_of
from tests.conftest import ENCRYPTED, Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.raw import query

CANARY = "canary"
SAID: list[ChatMessage] = [
    user(CANARY, name=CANARY, message_id="m0", custom_data={"a": CANARY}, format="openai-chat", residual={"b": CANARY}),
    assistant(
        calls=[call("c0", arguments=f'{{"city": "{CANARY}"}}'), call("c1", arguments={"city": CANARY})],
        reasoning=CANARY,
        response_metadata={"c": CANARY},
        message_id="m1",
    ),
    result("c0", CANARY, name="weather", message_id="m2"),
    ChatMessage(
        role="tool",
        tool_call_id="c1",
        content=[TextPart(text=CANARY), ThinkPart(text=CANARY, signature=CANARY), ImagePart(url=f"https://{CANARY}")],
        message_id="m3",
    ),
    assistant(CANARY, message_id="m4"),
]


@pytest.fixture
async def filled(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", SAID, run_id="r")
    return ledger


async def test_a_dry_run_shows_the_redacted_message_and_writes_nothing(database: Database, filled: Ledger) -> None:
    async def stored() -> str:
        return repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])

    before = await stored()
    foreseen = await erase_at(scope_of(filled), "t", 2, dry_run=True)
    assert await stored() == before
    violations = {"violations"}  # they hold the time of the redaction
    redacted = await erase_at(scope_of(filled), "t", 2)
    assert foreseen.model_dump(exclude=violations) == redacted.model_dump(exclude=violations)
    with pytest.raises(MessageNotFound):
        await erase_at(scope_of(filled), "t", 9, dry_run=True)


async def test_no_word_is_left_and_every_link_stays(database: Database, filled: Ledger) -> None:
    before = (await filled.messages.history("t")).messages
    redacted = [await erase_at(scope_of(filled), "t", seq) for seq in range(1, 6)]
    after = (await filled.messages.history("t")).messages
    assert after == redacted
    cells = repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])
    assert CANARY not in cells
    for old, new in zip(before, after, strict=True):
        stays = ("role", "seq", "message_id", "tool_call_id", "run_id", "created_at", "state")
        assert [getattr(new, name) for name in stays] == [getattr(old, name) for name in stays]
        assert [(one.id, one.name) for one in new.tool_calls or ()] == [
            (one.id, one.name) for one in old.tool_calls or ()
        ]
        assert [violation.rule for violation in new.violations] == ["R11"]
    assert await query(database, "SELECT count(*) FROM tool_results") == [(2,)]
    assert [finding.rule for finding in await findings_of(filled, "t") if finding.rule != "R11"] == []


async def test_content_keeps_its_form(filled: Ledger) -> None:
    contents = [(await erase_at(scope_of(filled), "t", seq)).content for seq in range(1, 6)]
    parts = [TextPart(text="[redacted]")]
    assert contents == ["[redacted]", None, "[redacted]", parts, "[redacted]"]


async def test_redacting_twice_changes_nothing(filled: Ledger) -> None:
    assert await erase_at(scope_of(filled), "t", 2) == await erase_at(scope_of(filled), "t", 2)


async def test_the_thread_goes_on_behind_a_redacted_call(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn()[:2])
    await erase_at(scope_of(ledger), "t", 2)
    assert (await ledger.messages.append("t", turn()[2:])).last_seq == 5


@pytest.mark.parametrize("seq", [0, 6, -1])
async def test_redacting_an_unknown_message_is_refused(filled: Ledger, seq: int) -> None:
    with pytest.raises(MessageNotFound):
        await erase_at(scope_of(filled), "t", seq)


async def test_a_shared_message_is_redacted_for_every_fork(filled: Ledger) -> None:
    await fork_at(scope_of(filled), "t", 5)
    await erase_at(scope_of(filled), "t", 1)
    for branch in (0, 1):
        assert (await filled.messages.history("t", branch=branch)).messages[0].text == "[redacted]"


async def test_a_format_reads_a_redacted_message(filled: Ledger) -> None:
    for seq in range(1, 6):
        await erase_at(scope_of(filled), "t", seq)
    payload: Any = (await filled.messages.history("t")).encode("openai-chat").payload
    assert [message["role"] for message in payload] == ["user", "assistant", "tool", "tool", "assistant"]
    assert CANARY not in repr(payload)


async def test_concurrent_appends_follow_a_redacted_message(filled: Ledger) -> None:
    appends = [filled.messages.append("t", turn()) for _ in range(5)]
    await asyncio.gather(erase_at(scope_of(filled), "t", 3), *appends)
    history = await filled.messages.history("t")
    assert (history.last_seq, history.messages[2].text) == (30, "[redacted]")


# --- Which message ----------------------------------------------------------------------------------------------------


async def test_a_message_is_erased_by_its_id_or_as_it_is(filled: Ledger) -> None:
    stored = (await filled.messages.history("t")).messages
    assert (await filled.messages.erase("t", "m0", dry_run=True)).text == "[redacted]"
    assert (await filled.messages.history("t")).messages == stored
    assert (await filled.messages.erase("t", "m0")).seq == 1
    assert (await filled.messages.erase("t", stored[4])).seq == 5
    texts = [one.text for one in (await filled.messages.history("t")).messages]
    assert (texts[0], texts[2], texts[4]) == ("[redacted]", CANARY, "[redacted]")


async def test_a_message_of_another_branch_is_erased_by_its_id(filled: Ledger) -> None:
    await filled.branches.fork("t", None)
    assert (await filled.messages.erase("t", "m4")).branch == 0
    assert (await filled.messages.history("t", branch=0)).messages[4].text == "[redacted]"


async def test_a_removed_message_is_erased_by_its_id(filled: Ledger, database: Database) -> None:
    await filled.messages.pop("t")
    await filled.messages.erase("t", "m4")
    [popped] = await filled.messages.revisions("t", "m4")
    assert popped.message is not None
    assert popped.message.text == "[redacted]"


async def test_of_messages_that_had_one_id_each_is_erased_as_its_record_has_it(ledger: Ledger) -> None:
    removed = []
    for words in ("first", "second"):
        await ledger.messages.append("t", user(words, message_id="m"), create=True)
        removed.append(await ledger.messages.pop("t"))
    await ledger.messages.append("t", user("third", message_id="m"))
    assert removed[0] is not None
    await ledger.messages.erase("t", removed[0])
    assert (await ledger.messages.get("t", "m")).text == "third"
    records = [one.message for one in await ledger.messages.revisions("t", "m")]
    assert [one and one.text for one in records] == ["[redacted]", "second"]
    await ledger.messages.erase("t", "m")
    assert (await ledger.messages.get("t", "m")).text == "[redacted]"


async def test_a_message_of_a_deleted_thread_erases_none_of_a_new_one(ledger: Ledger) -> None:
    old = (await ledger.messages.append("t", user("old"), create=True)).messages[0]
    await ledger.threads.delete("t")
    await ledger.messages.append("t", user("new"), create=True)
    with pytest.raises(MessageNotFound):
        await ledger.messages.erase("t", old)
    assert (await ledger.messages.history("t")).messages[0].text == "new"


@pytest.mark.parametrize("message", [user("no call returned it"), user("of another", thread_id="u", message_id="m0")])
async def test_what_is_no_message_of_the_thread_is_refused(filled: Ledger, message: ChatMessage) -> None:
    with pytest.raises((InvalidArgument, MessageNotFound)):
        await filled.messages.erase("t", message)
    for name, word in (("t", "unknown"), ("unknown", "m0")):
        for dry_run in (False, True):
            with pytest.raises(MessageNotFound if name == "t" else ThreadNotFound):
                await filled.messages.erase(name, word, dry_run=dry_run)


# --- A late repeat of the append --------------------------------------------------------------------------------------


async def test_a_repeat_of_a_redacted_append_is_a_replay_and_brings_no_word_back(
    database: Database, filled: Ledger
) -> None:
    redacted = [await erase_at(scope_of(filled), "t", seq) for seq in range(1, 6)]
    async with database.open() as other:
        for ledger in (filled, other):
            again = await ledger.messages.append("t", SAID, run_id="r")
            assert (again.replayed, again.last_seq, list(again.messages)) == (True, 5, redacted)
    assert (await filled.messages.history("t")).messages == redacted
    cells = repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])
    assert CANARY not in cells


async def test_a_repeat_by_key_of_a_redacted_append_is_a_replay(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    said = await ledger.messages.append("t", turn(), idempotency_key="k")
    redacted = await erase_at(scope_of(ledger), "t", 1)
    again = await ledger.messages.append("t", turn(), idempotency_key="k")
    assert (again.replayed, list(again.messages)) == (True, [redacted, *said.messages[1:]])


async def test_a_repeat_in_a_transaction_is_a_replay(filled: Ledger) -> None:
    redacted = await erase_at(scope_of(filled), "t", 1)
    async with filled.begin() as tx:
        again = await tx.messages.append("t", SAID, run_id="r")
        assert (again.replayed, again.messages[0]) == (True, redacted)
        await tx.messages.append("t", [user("more")])
    assert (await filled.messages.history("t")).last_seq == 6


@pytest.mark.parametrize("redactions", [1, 2])
async def test_other_words_under_the_id_of_a_redacted_message_are_refused(filled: Ledger, redactions: int) -> None:
    for _ in range(redactions):
        await erase_at(scope_of(filled), "t", 5)
    for other in (CANARY[:-1], "[redacted]!", ""):
        with pytest.raises(IdConflict, match="other content") as caught:
            await filled.messages.append("t", [*SAID[:4], assistant(other, message_id="m4")], run_id="r")
        assert caught.value.seq == 5
    assert (await filled.messages.append("t", SAID, run_id="r")).replayed


async def test_equal_words_have_another_digest_in_another_place(database: Database) -> None:
    async with database.open(encryption=None) as ledger:
        for name in ("t", "u"):
            await ledger.threads.create(name)
            await ledger.messages.append(name, [user("yes", message_id="m"), user("yes")], rules="lenient")
            for seq in (1, 2):
                await erase_at(scope_of(ledger), name, seq)
    digests = [row[0] for row in await query(database, "SELECT digest FROM messages")]
    assert len(set(digests)) == 4
    assert all(digest.startswith("scrypt-14-8-1:") for digest in digests)


# --- Slow digests, and digests under the tenant's secret --------------------------------------------------------------


async def deleted(ledger: Ledger, count: int = 12) -> list[ChatMessage]:
    """A batch that was appended with a key, and whose messages were redacted and retracted since."""
    batch = [ChatMessage(role="user", content=f"{CANARY} {number}") for number in range(count)]
    await ledger.threads.create("d")
    stored = await ledger.messages.append("d", batch, idempotency_key="k")
    for message in stored.messages:
        await erase_at(scope_of(ledger), "d", message.seq or 0)
        await ledger.messages.remove("d", message.message_id or "")
    return batch


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread of each slow digest."""
    computed: list[str] = []

    def noted(*given: Any, **options: Any) -> bytes:
        computed.append(threading.current_thread().name)
        return scrypt(*given, **options)

    scrypt = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", noted)
    return computed


async def test_slow_digests_of_a_repeat_are_computed_in_a_thread_of_their_own(
    database: Database, ledger: Ledger, slow: list[str]
) -> None:
    batch = await deleted(ledger)
    slow.clear()
    again = await ledger.messages.append("d", batch, idempotency_key="k")
    assert (again.replayed, len(slow)) == (True, 0 if ENCRYPTED else len(batch))  # with keys they are under a secret
    assert all(name.startswith("chatledger-digests") for name in slow)
    slow.clear()
    other = [*batch[:2], ChatMessage(role="user", content="other"), *batch[3:]]
    with pytest.raises(IdConflict):
        await ledger.messages.append("d", other, idempotency_key="k")
    assert len(slow) == (0 if ENCRYPTED else 3)
    async with ledger.begin() as tx:
        assert (await tx.messages.append("d", batch, idempotency_key="k")).replayed
    assert await query(database, "SELECT count(*) FROM messages WHERE thread_id = 'd'") == [(0,)]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, database: Database) -> list[tuple[bool, int]]:
    """Of each slow digest: whether its thread is one for digests, and how many transactions are open meanwhile."""
    found: list[tuple[bool, int]] = []

    def noted(*given: Any, **options: Any) -> bytes:
        with ThreadPoolExecutor(1) as other:
            opened = other.submit(open_transactions, database).result()
        found.append((threading.current_thread().name.startswith("chatledger-digests"), opened))
        return scrypt(*given, **options)

    scrypt = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", noted)
    return found


def open_transactions(database: Database) -> int:
    if database.kind == "postgresql":
        asked = "pid <> pg_backend_pid() AND datname = current_database() AND state LIKE 'idle in transaction%'"
        ((count,),) = asyncio.run(query(database, f"SELECT count(*) FROM pg_stat_activity WHERE {asked}"))
        return int(count)
    with closing(sqlite3.connect(database.url, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return 1
        return 0


async def redact_a_revised_one(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("one", message_id="m")], create=True)
    for words in ("two", "three"):
        await ledger.messages.revise("t", "m", user(words))
    await erase_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [user("two", message_id="m")])
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [user("four", message_id="m")])


async def redact_a_removed_one(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("one")], create=True, idempotency_key="k")
    await ledger.messages.pop("t")
    await erase_at(scope_of(ledger), "t", 1)
    assert (await ledger.messages.append("t", [user("one")], idempotency_key="k")).replayed


async def repeat_a_sync(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("one")], create=True)
    stored = await ledger.messages.sync("t", [user("two"), assistant("!")], branch=0, on_difference="branch")
    for message in stored.messages:
        await erase_at(scope_of(ledger), "t", message.seq or 0)
    again = await ledger.messages.sync("t", [user("two"), assistant("!")], branch=0, on_difference="branch")
    assert again.replayed


@pytest.mark.parametrize(("work", "count"), [(redact_a_revised_one, 5), (redact_a_removed_one, 2), (repeat_a_sync, 4)])
async def test_no_transaction_is_open_while_a_slow_digest_is_computed(
    database: Database, held: list[tuple[bool, int]], work: Callable[[Ledger], Awaitable[None]], count: int
) -> None:
    async with database.open(encryption=None) as ledger:
        await work(ledger)
    assert held == [(True, 0)] * count


async def test_an_open_transaction_is_seen(database: Database, held: list[tuple[bool, int]]) -> None:
    """A transaction of the application's stays open, but its event loop goes on."""
    async with database.open(encryption=None) as ledger:
        await ledger.messages.append("t", [user("one", message_id="m")], create=True)
        async with ledger.begin() as tx:
            await tx.threads.update("t", title="held")
            await erase_at(scope_of(tx), "t", 1)
        assert (await ledger.messages.append("t", [user("one", message_id="m")])).replayed
    assert held == [(True, 1), (True, 0)]


async def test_with_keys_no_digest_is_slow_and_a_rotation_keeps_them(database: Database, slow: list[str]) -> None:
    first, second = KeyRing({"k1": bytes(32)}), KeyRing({"k1": bytes(32), "k2": bytes(range(32))}, current="k2")
    async with database.open(encryption=first) as ledger:
        batch = await deleted(ledger)
    before = await query(database, "SELECT digest_secret FROM tenants")
    async with database.open(encryption=second) as ledger:
        assert (await ledger.reencrypt())["tenants"] == 1
    assert await query(database, "SELECT digest_secret FROM tenants") != before
    async with database.open(encryption=KeyRing({"k2": bytes(range(32))})) as ledger:
        assert (await ledger.messages.append("d", batch, idempotency_key="k")).replayed
        with pytest.raises(IdConflict):
            await ledger.messages.append("d", [*batch[:-1], batch[0]], idempotency_key="k")
    assert slow == []


async def test_a_secret_that_cannot_be_decrypted_refuses_a_repeat(database: Database) -> None:
    async with database.open(encryption=KeyRing({"k1": bytes(32)})) as ledger:
        batch = await deleted(ledger, 2)
        await query(database, "UPDATE tenants SET digest_secret = digest_secret || 'AAAA'")
        with pytest.raises(EncryptionError):
            await ledger.messages.append("d", batch, idempotency_key="k")
        await query(database, "UPDATE tenants SET digest_secret = NULL")
        with pytest.raises(DamagedCell):
            await ledger.messages.append("d", batch, idempotency_key="k")
    assert await query(database, "SELECT count(*) FROM messages WHERE thread_id = 'd'") == [(0,)]
