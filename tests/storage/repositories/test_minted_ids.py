"""The ids that calls mint: random, or made of ids and idempotency keys, and never of words."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import chatledger
from chatledger import Feedback, Ledger, Payload
from chatledger.ids import new_id
from chatledger.repositories import scope_of
from chatledger.storage.lists.thread_ids import iterate_ids
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions
from tests.conversations import user

PACKAGE = Path(chatledger.__file__).parent
MADE_OF = {
    "answers/calls.py begin": "the tenant, the thread's id and the idempotency key",
    "answers/turn.py _run_tools": "a random value of the run, and the place of the call",
    "answers/turn.py finish": "the same, as the function inside",
    "ids.py erasure_digest": "the id of what was erased",
    "ids.py derived_id": "defines it",
    "cli/demo.py _perform": "a constant",
    "server/callers/chosen_ids.py made_of": "the user's id and the idempotency key",
    "server/conversations/conversations.py _new_id": "the user's id and the idempotency key",
    "server/conversations/items.py to_messages": "the conversation's id, the idempotency key and an index",
    "storage/append/request.py _fill_ids": "the thread's id, the idempotency key and an index",
    "storage/drafts/response.py _following_id": "the thread's id, the first message's id and an index",
    "repositories/feedback.py _feedback_id": "the run's id and the idempotency key",
    "transfer/other_stores/langchain.py decode": "the session and the row of the store",
    "transfer/other_stores/openai_agents.py decode": "the session and the row of the store",
    "transfer/plan.py _identified": "the thread's id, the branch and an index",
    "transfer/plan.py _ids": "the record's id",
    "transfer/plan.py _id_of_place": "the name of the file and the record's place in it",
    "transfer/plan.py other_ids": "the values of a record, to look for one that was imported with an id field",
    "transfer/plan.py _earlier_id": "a tree's own id; else a digest, to look for what an earlier release imported",
}
"""Each function that derives an id, and what it derives the id of. A new one is added here; never of words."""


def test_every_function_that_derives_an_id_is_listed() -> None:
    assert {place for path in PACKAGE.rglob("*.py") for place in _deriving(path)} == set(MADE_OF)


def _deriving(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    functions = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    where = path.relative_to(PACKAGE).as_posix()
    return [f"{where} {one.name}" for one in functions if any(map(_derives, ast.walk(one)))]


def _derives(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("derived_id", "deriving")


async def append(ledger: Ledger, words: str, key: str | None) -> str | None:
    return (await ledger.messages.append("t", [user(words)], idempotency_key=key)).messages[0].message_id


async def append_payload(ledger: Ledger, words: str, key: str | None) -> str | None:
    payload = [{"role": "user", "content": words}]
    return (
        (await ledger.messages.append("t", Payload(payload, "openai-chat"), idempotency_key=key)).messages[0].message_id
    )


async def stream(ledger: Ledger, words: str, key: str | None) -> str | None:
    async with ledger.messages.stream("t", idempotency_key=key) as draft:
        await draft.feed(words)
    return draft.message.message_id


async def score(ledger: Ledger, words: str, key: str | None) -> str | None:
    await ledger.runs.start("t", run_id="run")
    feedback = Feedback(run_id="run", key="k", score=1, kwargs={"comment": words}, author=words)
    return (await ledger.feedback.record(feedback, idempotency_key=key)).feedback_id


async def sync(ledger: Ledger, words: str, key: str | None) -> str | None:
    await ledger.messages.append("t", [user("?")])
    stored = await ledger.messages.sync("t", [user(words)], branch=0, on_difference="branch")
    return stored.messages[0].message_id


async def bring(ledger: Ledger, words: str, key: str | None) -> str | None:
    """The key is the file's name."""
    record = json.dumps({"messages": [{"role": "user", "content": words}]}).encode()
    file = key or f"{new_id()}.json"
    await import_file(ledger, io.BytesIO(record), ImportOptions(), file=file)
    [thread_id] = [one async for one in iterate_ids(scope_of(ledger)) if one != "t"]
    await ledger.threads.delete(thread_id)
    return thread_id


MINTING: dict[str, Callable[[Ledger, str, str | None], Awaitable[str | None]]] = {
    one.__name__: one for one in (append, append_payload, stream, score, sync, bring)
}


async def minted(ledger: Ledger, name: str, words: str, key: str | None) -> str | None:
    await ledger.threads.create("t")
    made = await MINTING[name](ledger, words, key)
    await ledger.threads.delete("t")
    return made


@pytest.mark.parametrize("name", MINTING)
async def test_an_id_is_the_same_for_other_words_with_a_key_and_never_without(ledger: Ledger, name: str) -> None:
    if name != "sync":  # which takes no key
        assert len({await minted(ledger, name, words, "k") for words in ("my PIN is 4711", "else")}) == 1
    assert len({await minted(ledger, name, "my PIN is 4711", None) for _ in range(3)}) == 3
