"""Shapes of histories, of lists, of a follower's reads and of searches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from chatledger import ChatMessage, Ledger, Newest, Oldest, Tokens, Turns
from tests.conversations import turn, user
from tests.storage.statements.scene import Scene


@asynccontextmanager
async def _with_thread(scene: Scene, turns: int = 1) -> AsyncIterator[Ledger]:
    """A thread `t` of a user, of so many turns."""
    async with scene.open() as ledger:
        await ledger.user("ada").threads.create("t", title="Trip")
        await ledger.messages.append("t", turn(ids="m"), run_id="r")
        for _ in range((turns - 1) // 10):
            await ledger.messages.append("t", turn() * 10)
        yield ledger


# --- Histories --------------------------------------------------------------------------------------------------------


async def history_whole(scene: Scene) -> None:
    """`messages.history` reads the whole active branch."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.history("t")


async def history_long(scene: Scene) -> None:
    """`messages.history` reads a whole branch of a thousand messages. On PostgreSQL, they are too many for the one
    statement, so a snapshot reads table by table.
    """
    async with _with_thread(scene, 201) as ledger:
        with scene.sending():
            assert (await ledger.messages.history("t")).last_seq == 1_005


async def history_newest(scene: Scene) -> None:
    """`messages.history` reads the newest messages."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.history("t", Newest(2))


async def history_before(scene: Scene) -> None:
    """`messages.history` reads the page before another page."""
    async with _with_thread(scene) as ledger:
        cursor = (await ledger.messages.history("t", Newest(1))).previous_cursor
        with scene.sending():
            await ledger.messages.history("t", Newest(2, before=cursor))


async def history_oldest(scene: Scene) -> None:
    """`messages.history` reads the oldest messages."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.history("t", Oldest(2))


async def history_after(scene: Scene) -> None:
    """`messages.history` reads the page after another page."""
    async with _with_thread(scene) as ledger:
        cursor = (await ledger.messages.history("t", Oldest(1))).next_cursor
        with scene.sending():
            await ledger.messages.history("t", Oldest(2, after=cursor))


async def history_turns(scene: Scene) -> None:
    """`messages.history` reads the last turns."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.history("t", Turns(1))


async def history_tokens(scene: Scene) -> None:
    """`messages.history` reads as many of the last turns as fit into a number of tokens."""
    async with _with_thread(scene, 11) as ledger:
        with scene.sending():
            await ledger.messages.history("t", Tokens(200))


async def history_of_run(scene: Scene) -> None:
    """`messages.history` reads the messages of a run."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.history("t", run_id="r")


async def history_of_user(scene: Scene) -> None:
    """`messages.history` reads a thread through the ledger of a user."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.user("ada").messages.history("t")


async def history_of_fork(scene: Scene) -> None:
    """`messages.history` reads a branch that shares messages with another one."""
    async with _with_thread(scene) as ledger:
        await ledger.messages.append("t", user("And in Oslo?"), alternative_to="m0")
        await ledger.branches.fork("t", "m3", branch=0)
        with scene.sending():
            await ledger.messages.history("t")


async def history_iterate(scene: Scene) -> None:
    """`messages.iterate` reads a thread page by page."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            assert len([one async for one in ledger.messages.iterate("t")]) == 5


async def message_get(scene: Scene) -> None:
    """`messages.get` reads one message of a thread by its id."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.get("t", "m1")


async def message_find(scene: Scene) -> None:
    """`messages.find` looks for a message id in all threads."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.messages.find("m1")


# --- Lists ------------------------------------------------------------------------------------------------------------


async def threads_list(scene: Scene) -> None:
    """`threads.list` reads the first page of a tenant."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.threads.list()


async def threads_list_of_user(scene: Scene) -> None:
    """`threads.list` reads the first page of a user."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.user("ada").threads.list()


async def threads_list_next(scene: Scene) -> None:
    """`threads.list` reads the page behind a cursor."""
    async with _with_thread(scene) as ledger:
        await ledger.threads.create("u")
        cursor = (await ledger.threads.list(limit=1)).next_cursor
        with scene.sending():
            await ledger.threads.list(cursor=cursor)


async def threads_list_created(scene: Scene) -> None:
    """`threads.list` reads the oldest threads of a kind, those that are put away too."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.threads.list(order="created", newest_first=False, archived=None, kind="chat")


async def threads_get(scene: Scene) -> None:
    """`threads.get` reads a thread."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.threads.get("t")


async def threads_count(scene: Scene) -> None:
    """`threads.count` counts the threads of a tenant."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.threads.count()


async def branches_list(scene: Scene) -> None:
    """`branches.list` reads the branches of a thread."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.branches.list("t")


async def runs_list(scene: Scene) -> None:
    """`runs.list` reads the first page of a tenant."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.runs.list()


async def feedback_list(scene: Scene) -> None:
    """`feedback.list` reads the current scores of a thread."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.feedback.list(thread_id="t")


async def kv_list(scene: Scene) -> None:
    """`kv.list` reads the values of a thread."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            await ledger.kv.list(("thread", "t"))


# --- Followers --------------------------------------------------------------------------------------------------------


async def follow_begin(scene: Scene) -> None:
    """`messages.follow` begins at a mark behind which the thread has changed: it reads these changes."""
    async with _with_thread(scene) as ledger:
        mark = (await ledger.messages.history("t")).mark
        await ledger.messages.append("t", user("And in Oslo?"))
        async with aclosing(ledger.messages.follow("t", cursor=mark)) as changes:
            with scene.sending():
                assert (await anext(changes)).kind == "appended"


async def follow_poll(scene: Scene) -> None:
    """a follower waits: one statement asks about all threads that are followed, four times a second."""
    async with _with_thread(scene) as ledger:
        with scene.sending(once=True):
            await until_polled(ledger, "t", scene)


async def follow_states(scene: Scene) -> None:
    """`messages.follow(deltas=True)` begins: it looks for the newest run of the branch, and at its status."""
    async with _with_thread(scene) as ledger:
        await ledger.messages.append("t", ChatMessage(role="assistant", content="Sunny.", run_id="r"))
        async with aclosing(ledger.messages.follow("t", deltas=True)) as changes:
            with scene.sending():
                assert (await anext(changes)).kind == "run"


async def until_polled(ledger: Ledger, thread_id: str, scene: Scene) -> None:
    """Follows until the statement that asks about followed threads was sent."""
    async with aclosing(ledger.messages.follow(thread_id)) as changes:
        waiting = asyncio.create_task(anext(changes))
        async with asyncio.timeout(20):
            while not any("unnest" in one.text or "json_each" in one.text for one in scene.sent):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        waiting.cancel()
        await asyncio.wait([waiting])


# --- Searches ---------------------------------------------------------------------------------------------------------


async def search_messages(scene: Scene) -> None:
    """`messages.search` looks for words in all threads."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            assert await ledger.messages.search("tokyo")


async def search_messages_of_thread(scene: Scene) -> None:
    """`messages.search` looks for words in a thread of a user."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            assert await ledger.user("ada").messages.search("tokyo", thread_id="t")


async def search_threads(scene: Scene) -> None:
    """`threads.search` looks for words in titles and messages."""
    async with _with_thread(scene) as ledger:
        with scene.sending():
            assert await ledger.threads.search("trip")
