"""Every read of a thread whose messages were popped, rewound and retracted, beside a list that says what it holds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history import one_statement, tokens
from chatledger.storage.history.fold import fold_tip
from chatledger.storage.history.path import find_path
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import Violation
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.storage.raw import query
from tests.windows import read as read_window

STEPS = 45
READS = 5
"""Steps from one reading of everything to the next."""
PLACES = 10
"""The number of positions of a path, drawn again at each reading, at which the windows are read."""


@dataclass
class Model:
    """The messages on the path of each branch, the versions of the branches, and which one is active."""

    paths: list[list[ChatMessage]] = field(default_factory=lambda: [[]])
    versions: list[int] = field(default_factory=lambda: [0])
    active: int = 0

    @property
    def path(self) -> list[ChatMessage]:
        return self.paths[self.active]


def place(message: ChatMessage) -> tuple[int, int]:
    return message.branch or 0, message.seq or 0


def is_linked(message: ChatMessage) -> bool:
    return message.role == "tool" and not any(one.rule in ("R6", "R7") for one in message.violations)


class Walk:
    """Random writes to one thread, and the model that they should leave."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.ledger = ledger
        self.model = Model()
        self.random = random.Random(seed)
        self.count = 0

    async def step(self) -> str:
        verb = self.random.choices(["append", "pop", "rewind", "retract", "fork", "activate"], [40, 16, 8, 16, 10, 10])[
            0
        ]
        await getattr(self, verb)()
        return verb

    def some_turn(self) -> list[ChatMessage]:
        self.count += 1
        name = f"c{self.count}"
        if self.random.random() < 0.15:
            return [ChatMessage(role="system", content=f"system {self.count}")]
        if self.random.random() < 0.5:
            return [user(f"question {self.count}"), assistant(f"answer {self.count}")]
        calls = assistant(calls=[call(name), call(name + "b")])
        return [user(f"do {self.count}"), calls, result(name), result(name + "b"), assistant(f"done {self.count}")]

    async def append(self) -> None:
        stored = await self.ledger.messages.append("t", self.some_turn())
        assert stored.messages[0].seq == self.model.versions[self.model.active] + 1
        self.model.path.extend(stored.messages)
        self.model.versions[self.model.active] = stored.last_seq

    async def pop(self) -> None:
        popped = await self.ledger.messages.pop("t")
        assert popped == (self.model.path.pop() if self.model.path else None)
        self.model.versions[self.model.active] += popped is not None

    async def rewind(self) -> None:
        end = self.model.versions[self.model.active]
        to = self.random.randint(max(0, end - 9), end) if self.random.random() < 0.9 else 0
        gone = await rewind_to(scope_of(self.ledger), "t", to)
        assert gone == [message for message in self.model.path if (message.seq or 0) > to]
        self.model.path[:] = [message for message in self.model.path if (message.seq or 0) <= to]
        self.model.versions[self.model.active] += bool(gone)

    async def retract(self) -> None:
        if not self.model.path:
            return
        message = self.random.choice(self.model.path)
        assert await self.ledger.messages.remove("t", message.message_id or "") == message
        for number, path in enumerate(self.model.paths):
            if place(message) in map(place, path):
                self.model.versions[number] += 1
                waits = is_linked(message) and any(answered_by(message, one) for one in path)
                path[:] = [self.parted(one, message, waits) for one in path if place(one) != place(message)]

    def parted(self, one: ChatMessage, retracted: ChatMessage, waits: bool) -> ChatMessage:
        """A message after another was retracted, which may have been the other half of a call and its result. `waits`:
        it was the result, so the call is open again where later turns begin.
        """
        broken = None
        if is_linked(one) and answered_by(one, retracted):
            broken = Violation(rule="R6", detail="the call that it answered was retracted")
        if is_linked(retracted) and answered_by(retracted, one):
            broken = Violation(rule="R6", detail="the result of a call was retracted")
        if waits and one.role in ("user", "system") and (one.seq or 0) > (retracted.seq or 0):
            broken = Violation(rule="R8", detail="a call before it waits again, because its result was retracted")
        if broken is None or broken in one.violations:
            return one
        return one.model_copy(update={"violations": [*one.violations, broken]})

    async def fork(self) -> None:
        at = self.random.randint(0, self.model.versions[self.model.active])
        forked = await fork_at(scope_of(self.ledger), "t", at)
        assert (forked.branch, forked.last_seq) == (len(self.model.paths), at)
        self.model.paths.append([message for message in self.model.path if (message.seq or 0) <= at])
        self.model.versions.append(at)
        self.model.active = forked.branch

    async def activate(self) -> None:
        self.model.active = self.random.randrange(len(self.model.paths))
        await self.ledger.branches.activate("t", self.model.active)


def answered_by(result: ChatMessage, asking: ChatMessage) -> bool:
    return result.tool_call_id in {asked.id for asked in asking.tool_calls or ()}


# --- The messages that each window should hold ------------------------------------------------------------------------


def with_groups(path: list[ChatMessage], first: int) -> int:
    """The index at which a window of whole groups begins, if it would begin at `first`."""
    asked = {one.id: index for index, message in enumerate(path) for one in message.tool_calls or ()}
    while True:
        calls = [asked[one.tool_call_id] for one in path[first:] if is_linked(one) and one.tool_call_id in asked]
        if min(calls, default=first) >= first:
            return first
        first = min(calls)


def starts(path: list[ChatMessage]) -> list[int]:
    return [index for index, message in enumerate(path) if message.role == "user"]


def expected_last(path: list[ChatMessage], size: int) -> list[ChatMessage]:
    first = max(len(path) - size, 0)
    turns = [index for index in starts(path) if index >= first]
    if first == 0 or not path[first:]:
        return path[first:]
    if not turns:
        turns = [max([index for index in starts(path) if index < first], default=0)]
    return path[turns[0] :]


def expected_tokens(path: list[ChatMessage], maximum: int) -> list[ChatMessage] | None:
    """Each message costs one token. None: it does not fit."""
    leading = 0
    while leading < len(path) and path[leading].role == "system":
        leading += 1
    room = maximum - leading
    cuts = [leading, *(index for index in starts(path) if index > leading)]
    fitting = [at for at in cuts if len(path) - at <= room]
    if room < 0 or (len(path) > leading and not fitting):
        return None
    return path[:leading] + (path[fitting[0] :] if fitting else [])


async def require_windows(
    ledger: Ledger, path: list[ChatMessage], branch: int, size: int, chance: random.Random
) -> None:
    async def read(**window: Any) -> list[ChatMessage]:
        return (await read_window(ledger, "t", branch=branch, **window)).messages

    assert await read() == path
    assert await read(limit=size) == path[:size]
    assert await read(newest=size) == path[with_groups(path, max(len(path) - size, 0)) :]
    turns = starts(path)
    assert await read(last_turns=size) == path[turns[-size] if len(turns) >= size else 0 :]
    assert [message async for message in ledger.messages.iterate("t", branch=branch)] == path
    seqs = sorted({(message.seq or 0) + step for message in path for step in (0, 1)} | {0, 3})
    for seq in chance.sample(seqs, min(PLACES, len(seqs))):
        before = [message for message in path if (message.seq or 0) < seq]
        after = [message for message in path if (message.seq or 0) > seq]
        assert await read(before=seq, newest=size) == before[with_groups(before, max(len(before) - size, 0)) :]
        assert await read(after=seq, limit=size) == after[:size]
        assert await read(after=seq) == after
    expected = expected_tokens(path, 2 * size)
    if expected is None:
        with pytest.raises(LimitExceeded):
            await read(max_tokens=2 * size, count_tokens=lambda _: 1)
    else:
        assert await read(max_tokens=2 * size, count_tokens=lambda _: 1) == expected


async def require_cursors(ledger: Ledger, path: list[ChatMessage], branch: int, size: int) -> None:
    """Both ways, each message in one page, and no page without one."""
    for walk, cursor in (({"limit": size}, "after"), ({"newest": size}, "before")):
        page = await read_window(ledger, "t", branch=branch, **walk)
        found = list(page.messages)
        while (at := page.next_cursor if cursor == "after" else page.previous_cursor) is not None:
            page = await read_window(ledger, "t", branch=branch, **walk, **{cursor: at})
            assert page.messages
            found = found + page.messages if cursor == "after" else page.messages + found
        assert found == path
    whole = await ledger.messages.history("t", branch=branch)
    assert (whole.previous_cursor, whole.next_cursor) == (None, None)


async def require_the_rest(database: Database, ledger: Ledger, model: Model) -> None:
    """Counts, views, rules and tips."""
    thread = await ledger.threads.get("t")
    assert thread.message_count == len(model.path)
    far = (await ledger.messages.history("t")).last_seq - 50
    said = [one.content for one in model.path if one.role in ("user", "assistant") and (one.seq or 0) > far]
    assert thread.preview == next((text for text in reversed(said) if text), None)
    assert [branch.last_seq for branch in await ledger.branches.list("t")] == model.versions
    transcript = await query(database, "SELECT seq, role FROM transcript ORDER BY seq")
    assert transcript == [(message.seq, message.role) for message in model.path]
    async for checked in ledger.check("t"):
        assert [found for found in checked.findings if found.rule in ("R2", "R10", "R11")] == []
    for branch in range(len(model.paths)):
        found = [one for one in await findings_of(ledger, "t", branch=branch) if one.rule in ("R2", "R11")]
        assert found == []
        window = Window.of(ledger.messages._scope.tenant, "t", branch)
        stored, folded = await ledger.messages._scope.read(lambda sql, window=window: tips(sql, window))  # type: ignore[misc]
        assert stored == folded


TIP = """
SELECT last_seq, last_role, open_calls, partial_seq FROM {schema}branches
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch
"""


def tips(sql: WriteSql, window: Window) -> tuple[Any, Any]:
    path = find_path(sql, window)
    return read_tip("t", path.branch, *sql.fetch(TIP, window.place)[0]), fold_tip(sql, window, path, path.last_seq)


async def require_formats(ledger: Ledger, path: list[ChatMessage], branch: int) -> None:
    """Each format writes the same as for a thread that never held any other message."""
    name = f"copy {random.getrandbits(64)}"
    await ledger.threads.create(name, rules="lenient")
    bare = {"message_id": None, "seq": None, "branch": None, "thread_id": None}
    await ledger.messages.append(name, [message.model_copy(update=bare) for message in path])
    for format_name in ("openai-chat", "anthropic"):
        plain = (await ledger.messages.history(name)).encode(format_name).payload
        assert (await ledger.messages.history("t", branch=branch)).encode(format_name).payload == plain
        provider: Any = format_name
        try:
            sent = (await ledger.messages.prompt(name, provider)).payload
        except Exception as error:
            with pytest.raises(type(error)):
                await ledger.messages.prompt("t", provider, branch=branch)
            continue
        assert (await ledger.messages.prompt("t", provider, branch=branch)).payload == sent
    await ledger.threads.delete(name)


@pytest.mark.parametrize("seed", range(4))
async def test_every_read_equals_that_of_a_plain_list(
    database: Database, ledger: Ledger, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_FEW", 1 + seed % 3)
    monkeypatch.setattr(tokens, "PAGE", 2)
    if seed == 3:  # a whole branch is too large for one statement
        monkeypatch.setattr(one_statement, "SMALL", 4)
    await ledger.threads.create("t", rules="lenient")
    walk, chance = Walk(ledger, seed), random.Random(seed)
    for number in range(STEPS):
        await walk.step()
        if number % READS == READS - 1:
            model, size = walk.model, chance.randint(1, 6)
            branch = chance.randrange(len(model.paths))
            await require_windows(ledger, model.paths[branch], branch, size, chance)
            await require_cursors(ledger, model.paths[branch], branch, size)
            await require_formats(ledger, model.paths[branch], branch)
            await require_the_rest(database, ledger, model)
