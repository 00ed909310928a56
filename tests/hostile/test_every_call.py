"""Every public call with values of any kind: it returns, or raises an error of ours that quotes nothing of them."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chatledger import Feedback, Ledger, Pace, StorageError, Thread, Usage
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import Repositories, scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import prepare_thread
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.hostile.calls import CANARY, NOW, Call, arguments_of, calls_of, make, public_calls, quoted
from tests.storage.raw import query
from tests.views import of_user

MIXED = 25
SKIPPED = {"close", "open"}
"""A ledger that is closed refuses everything; opening has a test of its own."""


async def filled(owner: Repositories) -> dict[str, Any]:
    """A thread with all that it can have, and the usual value of each argument."""
    await of_user(owner, "u").threads.create("t")
    await owner.messages.append("t", [user("?", message_id="m"), assistant("!")], run_id="r")
    await fork_at(scope_of(owner), "t", 1, activate=False)
    await owner.threads.create("s")
    await owner.messages.append("s", [assistant("So", state="partial")])
    new = Thread(thread_id="new", created_at=NOW, active_at=NOW)
    agent, output = ThreadAgent(name="a", definition={}), Output(branch=0, seq=1, nonce="n", mime_type="x/y", text="x")
    return {
        "thread_id": "t",
        "user_id": "u",
        "message_id": "m",
        "run_id": "r",
        "branch": 0,
        "seq": 1,
        "at": 1,
        "name": "n",
        "messages": [user("?")],
        "payload": [{"role": "user", "content": "?"}],
        "format": "openai-chat",
        "feedback": Feedback(run_id="r", key="k", score=1),
        "status": "completed",
        "usage": Usage(input_tokens=1),
        "thread": new,
        "new": [prepare_thread(scope_of(owner), new, [user("?")])],
        "thread_ids": ["t"],
        "run_ids": ["r"],
        "mark": None,
        "listed": [agent],
        "stored": [],
        "added": [output],
        "older_than": timedelta(days=1_000_000),
        "table": "runs",
        "message": "m",
        "limit": 2,
        "last": 1,
        "max_tokens": 100,
        "metadata": {"a": 1},
        "title": "x",
        "pace": Pace(interval=0.1, lease=1.0),
        "partial": (await owner.drafts.list())[0],
    }


class Findings:
    """The outcomes of the calls."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wrong: dict[tuple[str, ...], str] = {}

    async def note(self, call: Call, arguments: dict[str, Any]) -> None:
        try:
            error = await make(call, arguments)
        except Exception as other:
            self._add(call, other, "")
            return
        self.outcomes["returned" if error is None else type(error).__name__] += 1
        if quoted(error):
            assert error is not None
            self._add(call, error, "quotes: ")

    def _add(self, call: Call, error: Exception, what: str) -> None:
        """One of each kind is enough."""
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if "chatledger" in frame.filename]
        last = places[-1] if places else traceback.FrameSummary("?", 0, "?")
        key = (what, call.name, type(error).__name__, Path(last.filename).name, str(last.lineno))
        self.wrong.setdefault(key, f"{error!r:.300}")


async def test_every_call_of_a_ledger_returns_or_raises_an_error_of_ours(database: Database) -> None:
    findings = Findings()
    async with database.open() as ledger:
        names = [call.name for call in calls_of(ledger) if call.name not in SKIPPED]
        for number, name in enumerate(names):
            owner = ledger.tenant(f"fuzz {number}")  # a thread of its own for each call: some delete it
            usual = await filled(owner)
            call = next(call for call in calls_of(owner) if call.name == name)
            for arguments in arguments_of(call, usual, random.Random(name), MIXED):
                await findings.note(call, arguments)
    assert not findings.wrong, "\n".join(map(str, findings.wrong.items()))
    assert findings.outcomes.keys() >= {"returned", "InvalidArgument", "LimitExceeded", "ThreadNotFound"}


async def test_every_call_of_a_draft_returns_or_raises_an_error_of_ours(database: Database) -> None:
    findings = Findings()
    async with database.open() as ledger:
        await ledger.threads.create("t", rules="lenient")
        names = [call.name for call in public_calls("", ledger.messages.stream("t"))]
        for name in names:
            for arguments in arguments_of(method(ledger.messages.stream("t"), name), {}, random.Random(name), 0):
                async with ledger.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
                    await findings.note(method(draft, name), arguments)
    assert not findings.wrong, "\n".join(map(str, findings.wrong.items()))


def method(target: object, name: str) -> Call:
    return next(call for call in public_calls("", target) if call.name == name)


async def test_opening_returns_or_raises_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a text names a file, it is one in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    findings = Findings()
    opening = next(call for call in public_calls("", Ledger) if call.name == "open")
    for arguments in arguments_of(opening, {}, random.Random("open"), 200):
        await findings.note(opening, {"url": "t.db", **arguments})
    for url in URLS:
        await findings.note(opening, {"url": url, "timeout": 0.2})
    assert not findings.wrong, "\n".join(map(str, findings.wrong.items()))


AT = f"postgresql://u:{CANARY}@127.0.0.1"
URLS = (
    *(f"{AT}:{port}/d" for port in ("99999", "0", "-1", "x", "", "5432x", "１２", "9" * 30)),
    *(f"postgresql:///d?{hosts}" for hosts in ("host=127.0.0.1&port=99999", "host=127.0.0.1:0", "port=x", "host=%00")),
    *(
        "postgresql:///d?host=a:1&host=b:2&port=3",
        "postgresql:///d?host=127.0.0.1:1,127.0.0.1:1",
        "postgresql://[::1/d",
    ),
    *(f"postgresql://{host}/d" for host in ("h..h", "h" * 300, "ü" * 70, "h\0st", "\ud800", "[zz]")),
    *(f"{AT}:1/d?{name}=-1" for name in ("connect_timeout", "command_timeout", "statement_cache_size", "timeout")),
    *(f"{AT}:1/d?{name}={CANARY}" for name in ("connect_timeout", "sslmode", "keepalives", "channel_binding")),
    *(f"{AT}:1/d?connect_timeout={value}" for value in ("nan", "1e400", "0", "")),
    *("sqlite:///\0", "sqlite:///" + "y" * 5_000, "~nobody-here/x", ".", "/", "://", "http://x/y", "a://"),
)


REFUSING = {
    "sqlite": ["CREATE TRIGGER refuse BEFORE INSERT ON threads BEGIN SELECT RAISE(ABORT, 'refused'); END"],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'refused'; END$$",
        "CREATE TRIGGER refuse BEFORE INSERT ON threads EXECUTE FUNCTION refuse()",
    ],
}


async def test_a_failed_statement_is_reported_without_its_values(database: Database) -> None:
    """Nor does the error of the driver, which a traceback shows above ours."""
    async with database.open() as ledger:
        for statement in REFUSING[database.kind]:
            await query(database, statement)
        with pytest.raises(StorageError, match="refused") as caught:
            await ledger.threads.create("t", title=CANARY, metadata={"a": CANARY})
    assert caught.value.__cause__ is not None
    assert not quoted(caught.value)


async def test_every_call_of_a_transaction_leaves_it_usable(database: Database) -> None:
    findings = Findings()
    async with database.open() as ledger:
        async with ledger.begin() as tx:
            names = [call.name for call in calls_of(tx) if call.name != "over"]
        for number, name in enumerate(names):
            owner = ledger.tenant(f"fuzz {number}")
            usual = await filled(owner)
            async with owner.begin() as tx:
                call = next(call for call in calls_of(tx) if call.name == name)
                for arguments in arguments_of(call, usual, random.Random(name), 0):
                    await findings.note(call, arguments)
                assert (await tx.threads.create("after")).thread_id == "after", name
    assert not findings.wrong, "\n".join(map(str, findings.wrong.items()))
