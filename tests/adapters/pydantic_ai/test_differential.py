"""The same 2,000 calls on our store and on the framework's own: every value and every exception is compared.

Ids and revisions are random, so both sides name them in the order in which they see them. Times of saves are each
side's own. No value differs. Where theirs raises KeyError, ours raises EntryNotFound; both are LookupErrors.
"""

from __future__ import annotations

import dataclasses
import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import messages as ai
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.usage import RunUsage

from chatledger.adapters.pydantic_ai import LedgerConversationStore
from tests.adapters.pydantic_ai.objects import HISTORY, TIME
from tests.conftest import Database

CALLS = 2_000
SEED = 16
IDS = ("a", "b", "c/1", "d e", "ü%2F", "f")
SCOPES = (None, "ada", "eve@example.com")
LONGEST = 9
"""Messages of a conversation. A longer one is deleted, so that the calls stay short."""
_OPS = {
    "new": 10,
    "load": 16,
    "extend": 20,
    "resave": 3,
    "rewrite": 6,
    "branch": 8,
    "fork": 8,
    "entries": 6,
    "list": 3,
    "delete": 8,
    "read record": 3,
    "read entry": 4,
    "read history": 5,
    "move": 4,
    "unknown head": 1,
    "stale": 2,
}


@dataclass
class Script:
    """Calls from one seed. A number names one of the things that both sides know, such as a loaded conversation."""

    random: random.Random
    made: int = 0

    def message(self, conversation_id: str) -> Any:
        self.made += 1
        if self.random.random() < 0.5:
            return deepcopy(self.random.choice(HISTORY))
        text = self.random.choice(("Oslo?", "", "line\nline", "Grüße 🌍", "nul\x00")) + str(self.made)
        shared: Any = {
            "run_id": self.random.choice((None, "run-1", "run-2", f"run-{self.made}")),
            "conversation_id": self.random.choice((None, conversation_id, conversation_id, "elsewhere")),
        }
        if self.random.random() < 0.5:
            return ai.ModelResponse(parts=[ai.TextPart(text)], timestamp=TIME, **shared)
        return ai.ModelRequest(parts=[ai.UserPromptPart(text, timestamp=TIME)], timestamp=TIME, **shared)

    def step(self) -> tuple[str, dict[str, Any]]:
        choice = self.random.choice
        (name,) = self.random.choices(list(_OPS), list(_OPS.values()))
        conversation_id = choice(IDS)
        return name, {
            "id": conversation_id,
            "other": choice((choice(IDS), *(f"fork {number}" for number in range(6)))),
            "scope": choice((None, None, None, *SCOPES)),
            "scope of other": choice(SCOPES),
            "number": self.random.randrange(10**6),
            "limit": choice((None, None, 0, 1, 2, 3, 50, -1)),
            "at": choice((None, 0, 0, 1, 1, 2, 3, 99)),
            "messages": [self.message(conversation_id) for _ in range(self.random.randrange(4))],
        }


@dataclass
class Side:
    """One store, called by the words of the script, with the conversations that it loaded."""

    store: ConversationStore
    loaded: list[Any] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    revisions: list[str] = field(default_factory=list)

    async def call(self, name: str, given: dict[str, Any]) -> Any:
        try:
            return self.told(await self._call(name, given))
        except LookupError:
            return "LookupError"
        except Exception as error:  # whatever it is, the other side has to raise the same
            return type(error).__name__

    async def _call(self, name: str, given: dict[str, Any]) -> Any:
        store, id_, scope, number = self.store, given["id"], given["scope"], given["number"]
        if name == "new":
            conversation = Conversation(messages=given["messages"], conversation_id=id_)
            conversation.usage.incr(RunUsage(requests=1, input_tokens=number, details={"x": 1}))
            return await self.save(conversation, scope)
        if name == "load":
            return self.keep(await store.load(id_, limit=given["limit"], scope=scope))
        if name in ("extend", "resave", "rewrite"):
            conversation = self.loaded[number % len(self.loaded)] if self.loaded else None
            if conversation is None:
                return None
            conversation = dataclasses.replace(conversation) if name != "extend" else conversation
            if name == "rewrite":
                conversation.messages = [*conversation.messages[: given["at"]], *given["messages"]]
                conversation.new_message_index = None if number % 2 else conversation.new_message_index
            else:
                conversation.messages = [*conversation.messages, *given["messages"]]
            return await self.save(conversation, scope)
        if name == "entries":
            return await store.load_entries(id_, limit=given["limit"], scope=scope)
        if name == "branch":
            record = await store.read_record(id_)
            where = self.where(given, record)
            revision = record.revision if record and number % 7 else "stale"
            return self.keep(await store.branch(id_, **where, expected_revision=revision, scope=scope))
        if name == "fork":
            where, source = self.where(given, await store.read_record(id_)), given["scope"]
            where["scope"] = given["scope of other"]
            return self.keep(await store.fork(id_, **where, new_conversation_id=given["other"], source_scope=source))
        if name == "list":
            return await store.list_conversations(scope=scope, limit=given["limit"])
        if name == "delete":
            return await store.delete(given["other"], scope=scope)
        if name == "read record":
            return await store.read_record(id_)
        if name == "read entry":
            return await store.read_entry(self.entry(number))
        if name == "read history":
            return await store.read_history(self.entry(number), limit=given["limit"])
        return await self._write(name, given)

    async def _write(self, name: str, given: dict[str, Any]) -> Any:
        """The primitives, as an application of its own may call them."""
        store, record = self.store, await self.store.read_record(given["id"])
        if record is None or name == "stale":
            await store.delete_record(given["id"], expected_revision="stale")
        assert record is not None
        head = self.entry(given["number"]) if name == "move" else "nowhere"
        left = [] if record.head_id in (None, head) else [record.head_id]
        moved = dataclasses.replace(
            record, head_id=head, branches=[*record.branches, *left], revision=f"moved-{given['number']}"
        )
        return await store.write_record(moved, expected_revision=record.revision)

    def where(self, given: dict[str, Any], record: Any) -> dict[str, Any]:
        if given["number"] % 2 and record is not None and record.branches:
            return {"from_entry": record.branches[given["number"] % len(record.branches)]}
        if given["number"] % 5 == 0:
            return {"from_entry": self.entry(given["number"])}
        return {"at": given["at"]}

    def entry(self, number: int) -> str:
        return self.entries[number % len(self.entries)] if self.entries and number % 13 else "unknown"

    async def save(self, conversation: Any, scope: str | None) -> Any:
        saved = await self.store.save(conversation, scope=scope)
        self.keep(conversation)
        return saved, conversation

    def keep(self, conversation: Any) -> Any:
        """Only the last few are kept, so that most of them are not stale."""
        if conversation is not None:
            self.loaded = [*self.loaded, conversation][-4:]
        return conversation

    def told(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.told(one) for one in value]
        if isinstance(value, Conversation):
            fields = {name: getattr(value, name) for name in ("messages", "usage", "deferred_tool_requests")}
            revision = self.named(self.revisions, value.revision)
            return deepcopy((value.conversation_id, fields, revision, value.new_message_index))
        if isinstance(value, ConversationEntry):
            parent = self.named(self.entries, value.parent_id)
            return self.named(self.entries, value.id), parent, deepcopy(value.message), value.kind
        if isinstance(value, ConversationRecord):
            told = {one.name: deepcopy(getattr(value, one.name)) for one in dataclasses.fields(value)}
            del told["updated_at"]
            for name in ("head_id", "forked_at"):
                told[name] = self.named(self.entries, told[name])
            told["branches"] = [self.named(self.entries, one) for one in told["branches"]]
            told["revision"] = self.named(self.revisions, told["revision"])
            return told
        return value

    @staticmethod
    def named(known: list[str], value: str | None) -> int | None:
        if value is None:
            return None
        if value not in known:
            known.append(value)
        return known.index(value)


async def test_the_same_calls_have_the_same_results(database: Database) -> None:
    script = Script(random.Random(SEED))
    seen: dict[str, int] = {}
    async with database.open() as ledger:
        ours, theirs = Side(LedgerConversationStore(ledger)), Side(InMemoryConversationStore())
        for number in range(CALLS):
            name, given = script.step()
            expected = await theirs.call(name, deepcopy(given))
            got = await ours.call(name, deepcopy(given))
            assert got == expected, (number, name, given)
            kind = f"{name}: {expected if isinstance(expected, str) else type(expected).__name__}"
            seen[kind] = seen.get(kind, 0) + 1
            record = await theirs.store.read_record(given["id"])
            if record is not None and len(await theirs.store.read_history(record.head_id)) > LONGEST:
                for side in (ours, theirs):
                    await side.store.delete(given["id"])
    for kind in ("new: list", "extend: list", "rewrite: list", "branch: tuple", "fork: tuple", "move: NoneType"):
        assert seen[kind] > 10, seen
    for kind in ("new: ConversationConflict", "extend: ConversationConflict", "read entry: LookupError"):
        assert seen[kind] > 10, seen
