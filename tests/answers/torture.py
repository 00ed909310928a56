"""Answers under kills, on both databases: `make torture MINUTES=10`.

A parent process imports the library and forks two servers. One of them is killed each second, with SIGKILL, and forked
again. This process is the client, which is not killed: it asks in twenty conversations, retries with its keys,
approves, refuses and stops. In the end it compares what is stored with what the models said and the tools did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatledger import ChatLedgerError, ChatMessage, Ledger, TextDelta, ToolCallDelta
from chatledger.admin import migrate
from chatledger.answers import Agent, Answer, Call, Pending, Turn
from chatledger.errors import RunLive
from tests.postgres import server

SERVERS = 2
CONVERSATIONS = 20
LEASE = 2.0
PIECES = 100
STEPS = 2
"""Rounds of tools before the last message."""
UNKNOWN = "The tool was interrupted. It is unknown whether it ran."


def words_of(question: str, step: int) -> list[str]:
    return [f"{question}.{step}.{number} " for number in range(PIECES)]


# --- A server ---------------------------------------------------------------------------------------------------------


def agent(log: Path, *, once: bool) -> Agent:
    """Answers in two rounds of tools, which run side by side, and a text. With `once`, no tool begins twice, and the
    text begins anew after a kill; otherwise it goes on.
    """

    def note(word: str, call: Call) -> None:
        with log.open("a", encoding="utf-8") as file:  # one short write, which a kill cannot cut
            file.write(json.dumps([word, call.idempotency_key, once]) + "\n")

    async def run_tool(call: Call) -> str:
        if call.name == "pay" and not call.approved:
            raise Pending("it costs something")
        note("begun", call)
        await asyncio.sleep(random.uniform(0, 0.6))
        note("ended", call)
        return f"result of {call.call_id}"

    async def answer(turn: Turn) -> None:
        question = turn.question.text or ""
        for step in range(STEPS):
            await turn.ask(lambda prompt, step=step: calls(question, step))  # type: ignore[misc]
            await turn.call_tools(run_tool, again=not once)
        await turn.ask(lambda prompt: text(question, prompt), resume=not once)

    return answer


async def calls(question: str, step: int) -> AsyncIterator[Any]:
    names = ["look", "look"] if step == 0 else ["pay" if question.endswith("pay") else "look"]
    for index, name in enumerate(names):
        yield ToolCallDelta(index=index, id=f"{question}/{step}/{index}", name=name, arguments="{}")


async def text(question: str, prompt: Any) -> AsyncIterator[Any]:
    begun = "" if prompt.history.draft is None else prompt.history.draft.text or ""
    so_far = ""
    for word in words_of(question, STEPS):
        so_far += word
        if len(so_far) > len(begun):
            yield TextDelta(text=word)
            await asyncio.sleep(0.002)  # a step takes less than a second, as between two kills


async def serve(url: str, log: Path) -> None:
    agents = {"again": agent(log, once=False), "once": agent(log, once=True)}
    async with Ledger.open(url) as ledger, ledger.answers.serve(agents, lease=LEASE):
        await asyncio.sleep(3600)


def nursery(url: str, log: Path) -> None:
    """Fork the servers, and fork another one for each that dies, until the standard input closes."""
    children: set[int] = set()
    while True:
        while len(children) < SERVERS:
            child = os.fork()
            if not child:
                random.seed(os.getpid())
                with suppress(KeyboardInterrupt):
                    asyncio.run(serve(url, log))
                os._exit(0)
            children.add(child)
            print(child, flush=True)
        dead, _ = os.wait()
        children.discard(dead)


# --- The client -------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    asked: int = 0
    completed: int = 0
    stopped: int = 0
    kills: int = 0
    retries: int = 0
    wrong: list[str] = field(default_factory=list)

    def say(self, what: str) -> None:
        self.wrong.append(what)


@dataclass
class Client:
    ledger: Ledger
    until: float
    report: Report
    stops: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    answered: list[tuple[str, str, Answer]] = field(default_factory=list)

    async def talk(self, thread: str) -> None:
        number = 0
        while time.monotonic() < self.until:
            await self.ask(thread, f"{thread}-{number}{'-pay' if number % 3 == 2 else ''}", number)
            number += 1

    async def ask(self, thread: str, question: str, number: int) -> None:
        agent = "once" if number % 2 else "again"
        answer = await self.start(thread, question, agent)
        self.report.asked += 1
        if number % 5 == 4:
            await asyncio.sleep(random.uniform(0, 1.5))
            await self.retried(lambda: self.ledger.answers.stop(answer.run.run_id))
            self.stops[answer.run.run_id] = await self.stored(thread)
            self.report.stopped += 1
            await asyncio.sleep(0.5)
            if await self.stored(thread) != self.stops[answer.run.run_id]:
                self.report.say(f"{question}: written after the stop returned")
            return
        while True:
            run = await self.retried(answer.wait)
            now = await self.retried(lambda: self.ledger.answers.get(answer.run.run_id))
            if now.waiting:
                await self.decide(now, approves=number % 2 == 1)
            elif run.ended_at is not None:
                break
        self.answered.append((thread, question, answer))
        if run.status != "completed":
            self.report.say(f"{question}: {run.status}, {run.error}")
        self.report.completed += run.status == "completed"

    async def decide(self, answer: Answer, *, approves: bool) -> None:
        calls = list(answer.waiting)
        approve, refuse = (calls, []) if approves else ([], calls)
        run_id = answer.run.run_id
        await self.retried(lambda: self.ledger.answers.resume(run_id, approve=approve, refuse=refuse))

    async def start(self, thread: str, question: str, agent: str) -> Answer:
        """As a client that sends its request twice."""
        options: dict[str, Any] = {"agent": agent, "idempotency_key": question, "create": True}
        for _ in range(2):
            answer: Answer = await self.retried(lambda: self.ledger.answers.start(thread, question, **options))
            self.report.retries += answer.replayed
        return answer

    async def retried(self, call: Any) -> Any:
        while True:
            try:
                return await call()
            except RunLive as live:
                self.report.say(f"{live}")
                await self.ledger.answers.stop(live.run_id)
            except ChatLedgerError as error:
                if not getattr(error, "retryable", False):
                    raise
                await asyncio.sleep(0.05)

    async def stored(self, thread: str) -> list[tuple[str, str]]:
        history = await self.ledger.messages.history(thread)
        shown = [*history.messages, *([] if history.draft is None else [history.draft])]
        return [(message.role, message.text or "") for message in shown]


async def torture(url: str, seconds: float, log: Path) -> Report:
    report, until = Report(), time.monotonic() + seconds
    command = [sys.executable, "-m", "tests.answers.torture", url, "--nursery", str(log)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    servers: list[int] = []

    async def listen(lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            servers.append(int(line))

    async def kill() -> None:
        while time.monotonic() < until:
            await asyncio.sleep(1)
            if len(servers) >= SERVERS:
                with suppress(ProcessLookupError):
                    os.kill(servers.pop(random.randrange(len(servers))), signal.SIGKILL)
                    report.kills += 1

    listening = asyncio.create_task(listen(process.stdout))
    try:
        async with Ledger.open(url) as ledger:
            client = Client(ledger, until, report)
            killing = asyncio.create_task(kill())
            async with asyncio.timeout(seconds + 120):
                await asyncio.gather(*(client.talk(f"t{number}") for number in range(CONVERSATIONS)))
            await killing
            await compare(client, log)
    finally:
        process.kill()
        for server in servers:
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
        await process.wait()
        listening.cancel()
    return report


async def compare(client: Client, log: Path) -> None:
    """What is stored, with what was asked, said and done."""
    report = client.report
    for thread, question, answer in client.answered:
        history = await client.ledger.messages.history(thread, branch=0)
        own = [message for message in history.messages if message.run_id == answer.run.run_id]
        asked = sum(message.text == question for message in history.messages)
        if asked != 1:
            report.say(f"{question}: stored {asked} times")
        last: ChatMessage | None = own[-1] if own else None
        if last is None or last.text != "".join(words_of(question, STEPS)):
            report.say(f"{question}: another text, {len(last.text or '') if last else 0} characters")
        results = Counter(message.tool_call_id for message in own if message.role == "tool")
        if len(results) != 3 or max(results.values(), default=0) != 1:
            report.say(f"{question}: results {dict(results)}")
    for key, count in begun_once(log).items():
        if count > 1:
            report.say(f"tool {key} began {count} times")
    async for checked in client.ledger.check():
        for finding in checked.findings:
            if finding.rule != "R13":  # two questions in a row: the first was stopped before its first word
                report.say(f"check: {checked.thread_id}: {finding}")


def begun_once(log: Path) -> Counter[str]:
    """How often each tool began that must not begin twice."""
    begun = Counter[str]()
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        word, key, once = json.loads(line)
        if word == "begun" and once:
            begun[key] += 1
    return begun


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("url", nargs="?", help="a database for this alone; both, of their own, without it")
    parser.add_argument("--minutes", type=float, default=1, help="on each database")
    parser.add_argument("--nursery", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.nursery is not None:
        nursery(arguments.url, arguments.nursery)
    if arguments.url is not None:
        return run(arguments.url, arguments.minutes)
    with tempfile.TemporaryDirectory() as folder:
        failed = run(str(Path(folder) / "answers.db"), arguments.minutes)
    with server() as running, running.database() as url:
        return failed | run(url, arguments.minutes)


def run(url: str, minutes: float) -> int:
    """1 if something is wrong."""
    migrate(url)
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(torture(url, minutes * 60, Path(folder) / "tools.jsonl"))
    print(
        f"{url.partition(':')[0]}: {report.kills} kills, {report.asked} asked, {report.completed} completed, "
        f"{report.stopped} stopped, {report.retries} repeated; {len(report.wrong)} wrong",
        flush=True,
    )
    for line in report.wrong[:40]:
        print(f"  {line}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
