"""Shapes of an append. The docstring of each says when its statements are sent."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest

from chatledger import ChatMessage
from chatledger.storage.append import attempt
from tests.conversations import assistant, call, result, turn, user
from tests.storage.statements.scene import Scene


async def append_lone(scene: Scene) -> None:
    """a turn (a question, two calls, their results, an answer) is appended to a thread whose end this process
    remembers.
    """
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", turn())


async def append_message(scene: Scene) -> None:
    """one message is appended to a thread whose end this process remembers."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", user("Hi"))


async def append_tool_result(scene: Scene) -> None:
    """the result of a call is appended that was stored before."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", [user("?"), assistant(calls=[call("c")])], create=True)
        with scene.sending():
            await ledger.messages.append("t", result("c"))


async def append_parts(scene: Scene) -> None:
    """a message with reasoning is appended: its reasoning stands in rows of its own."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", [user("?"), assistant("!", reasoning="hm")])


async def append_new_run(scene: Scene) -> None:
    """an append names a run that this process does not know: the run is created unless it exists."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", [user("?"), assistant("!")], run_id="r")


async def append_known_run(scene: Scene) -> None:
    """an append names a run that an append of this process named before."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), run_id="r", create=True)
        with scene.sending():
            await ledger.messages.append("t", assistant("!"), run_id="r")


async def append_with_ids(scene: Scene) -> None:
    """an append brings its own message ids. They are not looked for: the unique index of ids refuses a repeat."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", turn(ids="m"))


async def append_with_key(scene: Scene) -> None:
    """an append has an idempotency key. It is not looked for: the ids of the messages are made of the key, and the
    unique index of ids refuses a repeat.
    """
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", user("?"), idempotency_key="k")


async def append_repeat_of_ids(scene: Scene) -> None:
    """an append is repeated with the same message ids. The first try fails at the unique index of ids, so nothing of it
    stays. Then the ids are looked for, and the stored messages are read and compared.
    """
    async with scene.open() as ledger:
        await ledger.messages.append("t", turn(ids="m"), create=True)
        with scene.sending():
            assert (await ledger.messages.append("t", turn(ids="m"))).replayed


async def append_repeat_of_key(scene: Scene) -> None:
    """an append is repeated with the same idempotency key. The first try fails at the unique index of ids, so nothing
    of it stays. Then the ids made of the key are looked for, and the stored messages are read and compared.
    """
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), idempotency_key="k", create=True)
        with scene.sending():
            assert (await ledger.messages.append("t", user("?"), idempotency_key="k")).replayed


async def append_with_values(scene: Scene) -> None:
    """values of the thread that are stored already are written together with a message."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True, kv={"mode": "long"})
        with scene.sending():
            await ledger.messages.append("t", assistant("!"), kv={"mode": "brief"})


async def append_with_new_value(scene: Scene) -> None:
    """a new value of the thread is written together with a message. It needs two statements in a transaction: another
    one may just have deleted a value of that key, and the new one takes a higher version.
    """
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", user("?"), kv={"mode": "brief"})


async def append_many(scene: Scene) -> None:
    """twenty messages are appended at once."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", turn() * 4)


async def append_to_unknown_thread(scene: Scene) -> None:
    """this process appends to a thread for the first time, so it does not remember the end: the end is read before."""
    async with scene.open() as other, scene.open() as ledger:
        await other.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", user("?"))


async def append_creates_thread(scene: Scene) -> None:
    """an append with `create=True` is the first of its thread."""
    async with scene.open() as ledger:
        with scene.sending():
            await ledger.messages.append("t", user("?"), create=True)


async def append_branch_moved_on(scene: Scene) -> None:
    """another process appended meanwhile, so the branch does not have the remembered stamp any more. The first try
    updates no branch and so stores nothing, and the append is judged again at the end that is stored.
    """
    async with scene.open() as ledger, scene.open() as other:
        await ledger.threads.create("t")
        await other.messages.append("t", user("of another process"))
        with scene.sending():
            assert (await ledger.messages.append("t", user("?"), rules="lenient")).last_seq == 2


async def append_touches_thread(scene: Scene) -> None:
    """a message is appended more than a second after the last one: the time of the thread's last activity moves too."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with pytest.MonkeyPatch.context() as patched, scene.sending():
            patched.setattr(attempt, "ACTIVITY_RESOLUTION", timedelta())
            await ledger.messages.append("t", user("?"))


async def append_reply(scene: Scene) -> None:
    """an append names an earlier message that it replies to: it begins a new branch there."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", turn(ids="m"), create=True)
        with scene.sending():
            appended = await ledger.messages.append("t", assistant("Rainy."), reply_to="m3")
        assert appended.messages[0].branch == 1


async def append_closes_calls(scene: Scene) -> None:
    """a question comes while a call is open: a result is written for the call before it."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", [user("?"), assistant(calls=[call("c")])], create=True)
        with scene.sending():
            await ledger.messages.append("t", user("Never mind."), on_open_calls="close")


async def append_completes_partial(scene: Scene) -> None:
    """a message that was stored as partial is appended again, complete."""
    asked = ChatMessage(role="assistant", content="Let me", state="partial", message_id="m")
    async with scene.open() as ledger:
        await ledger.messages.append("t", [user("?"), asked], create=True)
        with scene.sending():
            await ledger.messages.append("t", asked.model_copy(update={"content": "Let me see.", "state": "complete"}))


async def append_nothing(scene: Scene) -> None:
    """an empty batch is appended: it reads the version of the branch."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            await ledger.messages.append("t", [])


async def append_in_transaction(scene: Scene) -> None:
    """a turn is appended inside of a transaction of the caller."""
    async with scene.open() as ledger:
        await ledger.threads.create("t")
        with scene.sending():
            async with ledger.begin() as tx:
                await tx.messages.append("t", turn())


async def append_group(scene: Scene) -> None:
    """messages are appended to several threads at once. The first goes ahead; others wait for it and go together."""
    await _append_at_once(scene)


async def append_group_with_ids(scene: Scene) -> None:
    """messages with ids of the caller are appended to several threads at once."""
    await _append_at_once(scene, message_id="m")


async def append_group_of_runs(scene: Scene) -> None:
    """messages of new runs are appended to several threads at once."""
    await _append_at_once(scene, runs=True)


async def _append_at_once(scene: Scene, *, runs: bool = False, **fields: Any) -> None:
    async with scene.open() as ledger:
        threads = [f"t{number}" for number in range(8)]
        for thread_id in threads:
            await ledger.threads.create(thread_id)

        def append(thread_id: str) -> asyncio.Task[Any]:
            run_id = f"run of {thread_id}" if runs else None
            return asyncio.create_task(ledger.messages.append(thread_id, assistant("Hi", **fields), run_id=run_id))

        with _busy(scene) as release, scene.sending(once=True):
            ahead = append(threads[0])
            async with asyncio.timeout(20):
                while not scene.sent:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0)
            others = [append(thread_id) for thread_id in threads[1:]]
            await asyncio.sleep(0)
            release()
            await asyncio.gather(ahead, *others)


@contextmanager
def _busy(scene: Scene) -> Iterator[Callable[[], None]]:
    """Another process has the lock of a SQLite file until the release. A server takes its time anyway."""
    if scene.on_sqlite:
        with closing(sqlite3.connect(scene.url, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield other.close
    else:
        yield lambda: None
