"""A ledger of random calls, with everything that a ledger can have, and all that its public reads answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from chatledger import (
    ChatLedgerError,
    ChatMessage,
    Feedback,
    KeyRing,
    Ledger,
    Pace,
    TextPart,
    ThinkPart,
    ToolCall,
    Usage,
)
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.storage.repositories.outputs import add_outputs, list_agents, list_outputs, replace_agents
from chatledger.types import Page
from tests.checks import findings_of

KEYS = KeyRing({"k": bytes(range(32))})
TENANTS = ("default", "te\x00nant", "half \ud800")
USERS = (None, "ada", "eve \udfff", "b\x00b", "ada2")
WORDS = ("Tokyo", "sun\x00ny", "half \ud83d", "\ue000 first", "\ue001 second", "ß 東京", "", "back\\slash", "x" * 900)
LONGER = 3_600.0


@dataclass
class Filler:
    """`random` decides everything but the marks and times of the ledger."""

    random: Random
    ledger: Ledger
    count: int = 0

    def word(self) -> str:
        return self.random.choice(WORDS) + str(self.random.randrange(9))

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}" + self.random.choice(("", "\x00", " \udc00", "/ü"))

    def maybe(self, value: Any) -> Any:
        return value if self.random.random() < 0.5 else None

    async def fill(self, threads: int) -> None:
        names = [self.new("t") for _ in range(threads)]
        for name in names:
            await self._thread(name)
        for name in names:
            for _ in range(self.random.randrange(8)):
                with suppress(ChatLedgerError):
                    await self._change(name)
        for _ in range(3):
            scope: Any = self.random.choice((("tenant",), ("user", "ada"), ("user", "b\x00b", "space")))
            await self.ledger.kv.put(scope, self.new("key"), {"a": self.word()})
        for kind, chance in (("thread", 0.5), ("user", 0.3), ("tenant", 0.05)):
            if self.random.random() < chance:
                owner: Any = {"thread": ("thread", names[-1]), "user": ("user", "ada2"), "tenant": ("tenant",)}[kind]
                await self.ledger.erasures.erase(owner, keep_scores=self.random.random() < 0.5)

    async def _thread(self, name: str) -> None:
        user, at = (
            self.random.choice(USERS),
            datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=self.count, microseconds=7),
        )
        ledger = self.ledger if user is None else self.ledger.user(user)
        options = {"kind": self.maybe("app"), "metadata": self.maybe({"a": [1, 2.5, None, self.word()]})}
        await ledger.threads.create(name, title=self.maybe(self.word()), created_at=at, rules="lenient", **options)
        for _ in range(self.random.randrange(4)):
            await self._turn(name)

    async def _turn(self, name: str) -> None:
        run, call = self.new("run"), self.new("call")
        use_run = self.maybe(run)
        calls = [ToolCall(id=call, name="weather", arguments=self.random.choice(("{}", '{"b":1, "a":2}', "not json")))]
        content: Any = self.random.choice((self.word(), [TextPart(text=self.word()), TextPart(text=self.word())], None))
        messages = [
            ChatMessage(role="user", content=self.word(), message_id=self.maybe(self.new("m"))),
            ChatMessage(role="assistant", content=content, tool_calls=calls, message_id=self.new("m")),
            ChatMessage(
                role="tool", tool_call_id=call, content=self.word(), is_error=self.random.choice((None, True, False))
            ),
            ChatMessage(
                role="assistant",
                content=self.word(),
                reasoning=[ThinkPart(text=self.word())],
                message_id=self.new("m"),
                custom_data=self.maybe({"z": self.word()}),
            ),
        ]
        messages = messages[: self.random.choice((1, 2, 4, 4, 4))]
        await self.ledger.messages.append(
            name,
            messages,
            run_id=use_run,
            idempotency_key=self.maybe(self.new("once")),
            on_open_calls="close",
            kv=self.maybe({self.new("state"): self.word()}),
        )
        if use_run is not None:
            if self.random.random() < 0.6:
                details: Any = {
                    "input_tokens": 3,
                    "output_tokens": 4,
                    "cost": self.random.choice(("0.10", "1E+2", "0")),
                }
                error = self.maybe(self.word())
                await self.ledger.runs.finish(
                    run, status="failed" if error else "completed", usage=Usage(**details), error=error
                )
            for _ in range(self.random.randrange(3)):
                score = Feedback(
                    run_id=run,
                    key="stars",
                    score=self.random.choice((1, 4.5, -0.25)),
                    user_id=self.random.choice(USERS[:2]),
                )
                stored = await self.ledger.feedback.record(score, idempotency_key=self.maybe(self.new("score")))
                if self.random.random() < 0.2:
                    await self.ledger.feedback.remove(stored.feedback_id or "")

    async def _change(self, name: str) -> None:
        messages = (await self.ledger.messages.history(name)).messages
        ids = [message.message_id for message in messages if message.message_id] or ["none"]
        match self.random.randrange(13):
            case 0:
                await self.ledger.branches.fork(name, self.random.choice(ids), activate=self.random.random() < 0.5)
                await self._turn(name)
            case 1:
                await self.ledger.messages.pop(name)
            case 2:
                await self.ledger.messages.rewind(name, self.random.choice(ids))
            case 3:
                await self.ledger.messages.revise(
                    name, self.random.choice(ids), ChatMessage(role="user", content=self.word())
                )
            case 4:
                await self.ledger.messages.erase(name, self.random.choice(ids))
            case 5:
                await self.ledger.messages.remove(name, self.random.choice(ids))
            case 6:
                await self.ledger.threads.update(name, archived=True, title=self.word())
            case 7:
                output = Output(branch=0, seq=1, nonce=self.new("n"), mime_type="text/plain", text=self.word())
                await add_outputs(scope_of(self.ledger), name, [output])
            case 8:
                agents = [ThreadAgent(name=self.new("agent"), definition={"a": self.word()})]
                await replace_agents(scope_of(self.ledger), name, agents, stored=[])
            case 9:
                pace = Pace(interval=LONGER, lease=2 * LONGER)
                draft = self.ledger.messages.stream(
                    name, message=ChatMessage.assistant(message_id=self.new("m")), pace=pace, on_open_calls="close"
                )
                await draft.__aenter__()
                await draft.feed(self.word())
            case 10:
                key = self.new("key")
                await self.ledger.kv.put(("thread", name), key, [self.word()])
                await self.ledger.kv.put(("thread", name), key, {"b": 1})
            case 11:
                await self.ledger.runs.start(
                    name, run_id=self.new("run"), agent="guide", model="m", input={"q": self.word()}
                )
            case 12:
                await self._turn(name)


async def fill(url: str, seed: int, *, threads: int = 4) -> bool:
    """Fill the tenants of a database, and return whether it is encrypted: every third is."""
    encrypted = seed % 3 == 2
    async with Ledger.open(url, encryption=KEYS if encrypted else None) as ledger:
        random = Random(seed)
        for tenant in TENANTS:
            await Filler(random, ledger.tenant(tenant)).fill(threads)
    return encrypted


# --- What everybody can read ------------------------------------------------------------------------------------------


async def reads(url: str, *, encrypted: bool) -> dict[tuple[str, ...], Any]:
    """What each public read answers, by the read, its tenant and its thread."""
    found: dict[tuple[str, ...], Any] = {}
    async with Ledger.open(url, encryption=KEYS if encrypted else None, migrate=False) as ledger:
        for tenant in TENANTS:
            async for read, answer in _of_tenant(ledger.tenant(tenant)):
                found[tenant, *read] = answer
    return found


async def _all(call: Any, **options: Any) -> list[Any]:
    page: Page[Any] = await call(**options, limit=7)
    items = list(page)
    assert not page.damaged
    while page.next_cursor is not None:
        page = await call(**options, limit=7, cursor=page.next_cursor)
        items += page
    return items


async def _of_tenant(ledger: Ledger) -> AsyncIterator[tuple[tuple[str, ...], Any]]:
    threads = await _all(ledger.threads.list, archived=None)
    yield ("threads",), threads
    yield ("created",), await _all(ledger.threads.list, archived=None, order="created")
    yield ("count",), await ledger.threads.count(archived=None)
    yield ("runs",), await _all(ledger.runs.list)
    yield ("usage",), await ledger.runs.usage(by=("agent", "status", "thread"))
    yield ("scores",), await _all(ledger.feedback.list)
    yield ("events",), await _all(ledger.feedback.list, events=True)
    yield ("summary",), await ledger.feedback.summary()
    yield ("erasures",), await _all(ledger.erasures.list)
    yield ("stats",), await ledger.stats()
    yield ("days",), await ledger.stats("day")
    yield ("search",), await _all(ledger.messages.search, query="東京")
    yield ("drafts",), [draft.model_dump(exclude={"since"}) for draft in await ledger.drafts.list()]
    for scope in (("tenant",), ("user", "ada"), ("user", "b\x00b", "space")):
        yield ("kv", *scope), await _all(_bound(ledger.kv.list, scope))
    for owner in (("user", "ada2"), ("tenant",), *(("thread", f"t{number}") for number in range(1, 9))):
        yield ("tombstone", *owner), await ledger.erasures.find(owner)  # type: ignore[arg-type]
    for thread in threads:
        async for read, answer in _of_thread(ledger, thread.thread_id):
            yield (*read, thread.thread_id), answer
    for user in filter(None, USERS):
        yield ("of", user), await _all(ledger.user(user).threads.list, archived=None)


def _bound(call: Any, scope: Any) -> Any:
    return lambda **options: call(scope, **options)


async def _or_error(answer: Awaitable[Any]) -> Any:
    """The answer, or the text of the error, which is an answer too: of a message that its branch gave up."""
    try:
        return await answer
    except ChatLedgerError as error:
        return f"{type(error).__name__}: {error}"


async def _of_thread(ledger: Ledger, thread_id: str) -> AsyncIterator[tuple[tuple[str, ...], Any]]:
    branches = await ledger.branches.list(thread_id)
    yield ("branches",), branches
    for branch in branches:
        history = await ledger.messages.history(thread_id, branch=branch.branch)
        yield ("history", str(branch.branch)), history
        for message in history.messages:
            if message.message_id:
                place = message.message_id
                yield ("revisions", str(branch.branch), place), await ledger.messages.revisions(thread_id, message)
                asked = ledger.messages.alternatives(thread_id, message)
                yield ("alternatives", str(branch.branch), place), await _or_error(asked)
    yield ("values",), await _all(_bound(ledger.kv.list, ("thread", thread_id)))
    yield ("outputs",), await list_outputs(scope_of(ledger), thread_id)
    yield ("agents",), await list_agents(scope_of(ledger), thread_id)
    yield ("findings",), await findings_of(ledger, thread_id)


async def accept_marks(url: str, marks: Mapping[tuple[str, str], Any], *, encrypted: bool) -> int:
    """Append with a mark of the source to each thread; a stale mark raises. Returns how many were accepted."""
    next_ = ChatMessage(role="user", content="on")
    async with Ledger.open(url, encryption=KEYS if encrypted else None, migrate=False) as ledger:
        for (tenant, thread_id), mark in marks.items():
            await ledger.tenant(tenant).messages.append(
                thread_id, next_, branch=0, expected=mark, on_open_calls="close", rules="lenient"
            )
    return len(marks)
