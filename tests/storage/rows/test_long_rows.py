"""Long rows are decrypted and decoded in a thread, where the event loop would otherwise do it and every caller wait."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Newest, Tokens, Turns
from chatledger.storage.append import request
from chatledger.storage.rows import decode_messages, keys
from chatledger.storage.rows import messages as rows
from chatledger.storage.schema.text import encode_text
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, user

HALF = "ä" * 600_000
LONG: dict[str, list[ChatMessage]] = {
    "texts": [user(HALF), user(HALF)],
    "a call": [user("x"), assistant(calls=[call("c1", arguments={"file": HALF + HALF})]), result("c1")],
    "keys of its own": [user("x", custom_data={"note": HALF + HALF})],
}
READS: dict[str, Callable[[Ledger], Awaitable[Any]]] = {
    "whole": lambda ledger: ledger.messages.history("t"),
    "a few": lambda ledger: ledger.messages.history("t", Newest(3)),
    "last turns": lambda ledger: ledger.messages.history("t", Turns(3)),
    "by tokens": lambda ledger: ledger.messages.history("t", Tokens(10_000_000)),
}


async def deciding_threads(
    database: Database, monkeypatch: pytest.MonkeyPatch, messages: list[ChatMessage], read: str, **options: Any
) -> set[bool]:
    """Whether rows were decoded in the event loop's thread."""
    seen: set[bool] = set()
    decode = decode_messages._decode

    def spy(*given: Any) -> list[ChatMessage]:
        seen.add(threading.current_thread() is threading.main_thread())
        return decode(*given)

    monkeypatch.setattr(decode_messages, "_decode", spy)
    async with await database.open(**options) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", messages)
        seen.clear()
        found = await READS[read](ledger)
        assert [message.content for message in found] == [message.content for message in messages]
    return seen


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_long_histories_are_decoded_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch, read: str, *, encrypted: bool
) -> None:
    options = {"encryption": KEYS} if encrypted else {}
    assert await deciding_threads(database, monkeypatch, LONG["texts"], read, **options) == {False}


@pytest.mark.parametrize("kind", ["a call", "keys of its own"])
async def test_each_long_column_counts(database: Database, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    assert await deciding_threads(database, monkeypatch, LONG[kind], "a few") == {False}


async def test_short_histories_stay_in_the_loop(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread would cost them more than it saves."""
    assert await deciding_threads(pg_database, monkeypatch, [user("x")], "a few") == {True}


WRITES: dict[str, Callable[[Ledger, list[ChatMessage]], Awaitable[Any]]] = {
    "append": lambda ledger, messages: ledger.messages.append("t", messages),
    "to a thread that is created": lambda ledger, messages: ledger.messages.append("new", messages, create=True),
    "a repeat": lambda ledger, messages: ledger.messages.append("repeated", messages, idempotency_key="k"),
    "sync": lambda ledger, messages: ledger.messages.sync("repeated", messages),
    "a list that differs": lambda ledger, messages: ledger.messages.sync(
        "repeated", [user("other"), *messages], branch=0, on_difference="branch"
    ),
    "a value beside": lambda ledger, messages: ledger.messages.append(
        "t", [user("x")], kv={"notes": [one.content for one in messages] + ["x" * 1_200_000]}
    ),
    "in a transaction": lambda ledger, messages: in_transaction(ledger, messages),
    "a revision": lambda ledger, messages: ledger.messages.revise("short", "m", user(HALF + HALF)),
}


async def in_transaction(ledger: Ledger, messages: list[ChatMessage]) -> None:
    async with ledger.begin() as tx:
        await tx.messages.append("t", messages)


async def writing_threads(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Ledger, list[ChatMessage]], Awaitable[Any]],
    messages: list[ChatMessage],
    **options: Any,
) -> tuple[set[str], int]:
    """What the event loop's thread did with texts of more than a few letters, and how often any thread did it."""
    loops: set[str] = set()
    count = 0

    def note(what: str, *texts: Any) -> None:
        nonlocal count
        if sum(len(text) for text in texts if isinstance(text, str)) > 100_000:
            count += 1
            if threading.current_thread() is threading.main_thread():
                loops.add(what)

    def encode_spy(text: str) -> str:
        note("encode", text)
        return encode(text)

    def encrypt_spy(own: Any, text: str, place: str) -> bytes:
        note("encrypt", text)
        return encrypt(own, text, place)

    encode, encrypt = encode_text, keys.Cipher.encrypt
    async with await database.open(**options) as ledger:
        for thread in ("t", "repeated", "short"):
            await ledger.threads.create(thread)
        await ledger.messages.append("repeated", messages, idempotency_key="k")
        await ledger.messages.append("short", [user("x", message_id="m")])
        monkeypatch.setattr(rows, "encode_text", encode_spy)
        monkeypatch.setattr(keys.Cipher, "encrypt", encrypt_spy)
        await write(ledger, messages)
    return loops, count


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_long_writes_are_encoded_and_encrypted_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch, write: str, *, encrypted: bool
) -> None:
    options = {"encryption": KEYS} if encrypted else {}
    loops, count = await writing_threads(database, monkeypatch, WRITES[write], LONG["texts"], **options)
    assert loops == set()
    assert count > 0 or write == "a value beside"


@pytest.mark.parametrize("kind", LONG)
async def test_each_long_field_counts_when_it_is_written(
    database: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    seen: set[bool] = set()
    encode = rows.encode_message

    def spy(*given: Any) -> rows.EncodedMessage:
        seen.add(threading.current_thread() is threading.main_thread())
        return encode(*given)

    monkeypatch.setattr(request, "encode_message", spy)
    async with await database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", LONG[kind])
        assert seen == {False}
        await ledger.messages.append("t", [user("x")])
        assert seen == {False, True}, "a thread would cost a short message more than it saves"


def test_a_batch_that_is_no_batch_is_not_long() -> None:
    for given in (None, "x" * 2_000_000, 3, [None, 3, object(), "x" * 2_000_000], ()):
        assert not rows.is_long_batch(given)  # type: ignore[arg-type]
    endless: list[Any] = []
    endless.append(endless)
    assert rows.is_long_batch([], endless)
