"""The same 2,000 calls on our provider and on the framework's own: every value and every exception is compared."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Content, FileHistoryProvider, HistoryProvider, InMemoryHistoryProvider, Message

from chatledger.adapters.agent_framework import LedgerHistoryProvider
from tests.conftest import Database

CALLS = 2_000
SESSIONS = [None, "a", "b/c", "thread: Grüße 🌍", *(f"s{number}" for number in range(30))]
TEXTS = ("Tokyo?", "", "Grüße 🌍", 'a "quoted" \\ text', "line\nline", "\x00", "Yes", "x" * 500)


@dataclass
class Script:
    """Messages of all kinds that the framework stores, and calls, from one seed."""

    random: random.Random
    said: dict[str | None, list[Message]] = field(default_factory=dict)

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def message(self) -> Message:
        call_id = f"call_{self.random.randrange(5)}"
        named: dict[str, Any] = self.random.choice(
            ({}, {}, {"author_name": "ada"}, {"message_id": f"m{self.random.randrange(9)}"})
        )
        properties: Any = self.random.choice((None, None, {"_excluded": True}, {"deep": [1, 2.5, None, {}]}))
        role, contents = self.random.choice(
            (
                ("user", [self.text()]),
                ("user", [self.text(), Content.from_uri("https://example.com/a.png", media_type="image/png")]),
                ("user", [Content.from_data(b"RIFF", "audio/wav", name="a.wav")]),
                ("assistant", [self.text()]),
                ("assistant", []),
                ("assistant", [Content.from_text_reasoning(text="So.", protected_data="c2ln"), Content.from_text("4")]),
                ("assistant", [Content.from_text_reasoning(id="rs_1", protected_data="gAAA")]),
                ("assistant", [Content.from_function_call(call_id, "weather", arguments='{"city": "Oslo"}')]),
                ("assistant", [Content.from_function_call(call_id, "weather", arguments={"city": self.text()})]),
                ("assistant", [Content.from_function_call(call_id, "search", hosted=True), Content.from_text("4")]),
                ("tool", [Content.from_function_result(call_id, result=self.text())]),
                ("tool", [Content.from_function_result(c, result=self.text()) for c in ("call_0", "call_1")]),
                ("tool", [Content.from_function_result(call_id, result="no", exception="ValueError")]),
                (
                    "tool",
                    [Content.from_function_result(call_id, result=[Content.from_text("a"), Content.from_text("b")])],
                ),
                ("tool", [self.text()]),
                ("system", [self.text()]),
                ("narrator", [self.text(), Content.from_error(message="no")]),
            )
        )
        return Message(role, contents, additional_properties=properties, **named)

    def batch(self, session: str | None) -> list[Message]:
        """New messages, or some that overlap with what was said, as a caller that gives its transcript again."""
        said = self.said.setdefault(session, [])
        new = [self.message() for _ in range(self.random.choice((0, 1, 1, 2, 3, 6)))]
        way = self.random.choice(("new", "new", "all", "end", "middle"))
        before = {"new": 0, "all": len(said), "end": self.random.randrange(1, 5), "middle": 3}[way]
        given = said[len(said) - before :] if before else []
        if way == "middle":
            given = given[:-1]
        said += new
        return [*given, *new]


async def outcome_of(provider: HistoryProvider, name: str, *arguments: Any, **options: Any) -> Any:
    try:
        found = await getattr(provider, name)(*arguments, **options)
    except Exception as error:  # whatever it is, the other one has to raise the same
        return type(error)
    return found if found is None else [message.to_dict() for message in found]


@pytest.mark.parametrize(("kind", "seed"), [("file", 1), ("memory", 2)])
@pytest.mark.filterwarnings("ignore::FutureWarning")
async def test_two_thousand_calls_have_the_same_outcome(
    database: Database, kind: str, seed: int, tmp_path: Path
) -> None:
    script = Script(random.Random(seed))
    skips = seed == 2
    states: dict[str | None, dict[str, Any]] = {session: {} for session in SESSIONS}
    theirs: HistoryProvider = InMemoryHistoryProvider(skip_excluded=skips)
    if kind == "file":
        theirs = FileHistoryProvider(tmp_path, skip_excluded=skips)
    seen = {"get_messages": 0, "save_messages": 0}
    async with database.open() as ledger:
        ours = LedgerHistoryProvider(ledger, skip_excluded=skips)
        for number in range(CALLS):
            session = script.random.choice(SESSIONS)
            name = script.random.choice(tuple(seen))
            arguments = [session, *([script.batch(session)] if name == "save_messages" else [])]
            got = await outcome_of(ours, name, *arguments)
            wanted = await outcome_of(theirs, name, *arguments, state=states[session])
            assert got == wanted, (number, name, session)
            seen[name] += 1
        for session in SESSIONS:
            got, wanted = [
                await outcome_of(provider, "get_messages", session, state=states[session])
                for provider in (ours, theirs)
            ]
            assert got == wanted
            assert [list(message) for message in got] == [list(message) for message in wanted]
    assert min(seen.values()) > CALLS // 3
