"""Serves a database that is upgraded meanwhile: appends, reads and answers.

    python serving.py make URL KIND
    python serving.py open URL KIND
    python serving.py serve URL KIND NAME LOG AGENT…

It writes to threads that begin with NAME, and obeys lines of JSON: the name of a command and its arguments. What was
acknowledged is a line in LOG, which a kill leaves. It imports nothing of the checkout, so that the wheel of a candidate
can run it too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from chatledger import ChatMessage, KeyRing, Ledger, Newest, TextDelta, ToolCallDelta
from chatledger.admin import migrate
from chatledger.answers import Call, Pending, Turn

KEYS = KeyRing({"1": bytes(range(32))}, current="1")
LEASE = 2.0
WRITERS = 3
WORDS = [f"word {number}, " for number in range(6)]
RESULT = "It rains."
LONG = 600.0
"""Seconds of what ends only when its process does."""

Log = Callable[..., None]


def opened(url: str, kind: str) -> AbstractAsyncContextManager[Ledger]:
    return Ledger.open(url, encryption=KEYS) if kind == "encrypted" else Ledger.open(url)


async def serve(url: str, kind: str, name: str, log: Log, *names: str) -> None:
    agents = {agent: function for agent, function in make_agents(log).items() if agent in names}
    async with opened(url, kind) as ledger, ledger.answers.serve(agents, lease=LEASE):
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                tasks.create_task(append(ledger, f"{name} appends {number}", log, stop))
            asking = [tasks.create_task(ask(ledger, f"{name} {agent}", agent, log)) for agent in ("words", "tools")]
            await obey(ledger, log)
            stop.set()
            for task in asking:  # an answer of each may go on: it is left to another process
                task.cancel()


async def obey(ledger: Ledger, log: Log) -> None:
    commands = Commands(ledger)
    while (given := json.loads(await asyncio.to_thread(sys.stdin.readline)))[0] != "stop":
        log("did", result=await getattr(commands, given[0])(*given[1:]))


# --- Traffic ----------------------------------------------------------------------------------------------------------


async def append(ledger: Ledger, thread: str, log: Log, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        turn = [("user", f"question {number}"), ("assistant", f"answer {number}")]
        messages = [ChatMessage(role=role, content=text) for role, text in turn]
        for _ in range(1 + (number % 5 == 0)):  # some are sent twice, as by a client that saw no response
            await ledger.messages.append(thread, messages, create=True, idempotency_key=f"{thread} {number}")
        log("appended", thread=thread, number=number)
        history = await ledger.messages.history(thread, Newest(2))
        assert [(message.role, message.text) for message in history.messages] == turn
        number += 1
        await asyncio.sleep(0.01)


async def ask(ledger: Ledger, thread: str, agent: str, log: Log) -> None:
    """One question after the other, each sent twice, and followed until its answer ends."""
    number = 0
    while True:
        question, key = f"question {number}", f"{thread} {number}"
        options: dict[str, Any] = {"agent": agent, "idempotency_key": key, "create": True}
        answer = await ledger.answers.start(thread, question, **options)
        again = await ledger.answers.start(thread, question, **options)
        assert (again.run.run_id, again.replayed) == (answer.run.run_id, True)
        async for _ in answer.follow():
            pass
        run = await answer.wait()
        assert run.status == "completed", run
        log("answered", thread=thread, number=number)
        number += 1


class Commands:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def create(self, thread: str, user: str) -> None:
        await self.ledger.user(user).threads.create(thread)

    async def start(self, thread: str, agent: str) -> str:
        answer = await self.ledger.answers.start(thread, "question 0", agent=agent, create=True)
        if agent == "refunds":
            await answer.wait()  # until it pauses
        return answer.run.run_id

    async def approve(self, run_id: str) -> None:
        await self.ledger.answers.resume(run_id, approve=["call-0"])

    async def delete(self, thread: str) -> Mapping[str, int]:
        return (await self.ledger.threads.delete(thread)).rows

    async def erase(self, user: str) -> Mapping[str, int]:
        return (await self.ledger.erasures.erase(("user", user))).rows


# --- Agents -----------------------------------------------------------------------------------------------------------


def make_agents(log: Log) -> dict[str, Any]:
    """`slow` stops after three words, and `once` in its tool, until another process goes on."""

    async def say_words(prompt: Any) -> AsyncIterator[Any]:
        for word in WORDS:
            yield TextDelta(text=word)
            await asyncio.sleep(0.02)

    async def call_first(prompt: Any) -> AsyncIterator[Any]:
        if prompt.payload[-1]["role"] == "user":
            yield ToolCallDelta(index=0, id="call-0", name="weather", arguments='{"city": "Tokyo"}')
            return
        async for delta in say_words(prompt):
            yield delta

    async def say_slowly(prompt: Any) -> AsyncIterator[Any]:
        begun = prompt.history.draft is not None and bool(prompt.history.draft.text)
        for word in WORDS[3:] if begun else WORDS[:3]:
            yield TextDelta(text=word)
        if not begun:
            await asyncio.sleep(1)  # the words are written
            log("slow")
            await asyncio.sleep(LONG)

    async def run_tool(call: Call) -> str:
        return RESULT

    async def run_if_approved(call: Call) -> str:
        if not call.approved:
            raise Pending("who pays?")
        return RESULT

    async def run_for_long(call: Call) -> str:
        log("once")
        await asyncio.sleep(LONG)
        return RESULT

    def calling(tool: Any, *, again: bool) -> Any:
        async def agent(turn: Turn) -> None:
            for _ in range(3):
                message = await turn.ask(call_first)
                if not message.tool_calls:
                    return
                await turn.call_tools(tool, again=again)

        return agent

    async def words(turn: Turn) -> None:
        await turn.ask(say_words)

    async def slow(turn: Turn) -> None:
        await turn.ask(say_slowly, resume=True)

    tools, refunds = calling(run_tool, again=True), calling(run_if_approved, again=False)
    return {
        "words": words, "tools": tools, "refunds": refunds, "slow": slow, "once": calling(run_for_long, again=False),
    }  # fmt: skip


# --- The process ------------------------------------------------------------------------------------------------------


def log_to(path: str) -> Log:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def log(event: str, **values: Any) -> None:
        os.write(file, (json.dumps({"event": event, **values}) + "\n").encode())

    return log


async def open_once(url: str, kind: str) -> None:
    async with opened(url, kind):
        pass


def main(command: str, url: str, kind: str, *rest: str) -> None:
    if command == "make":
        migrate(url, encrypted=kind == "encrypted")
    elif command == "open":
        asyncio.run(open_once(url, kind))
    else:
        name, path, *agents = rest
        asyncio.run(serve(url, kind, name, log_to(path), *agents))


if __name__ == "__main__":
    main(*sys.argv[1:])
