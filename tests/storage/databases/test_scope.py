"""Tenants: the ids of another tenant behave exactly as ids that do not exist, for every public method.

The methods are found by looking, so that a new one fails here until it has calls below.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Any, get_args

import asyncpg
import pytest

from chatledger import ChatMessage, Draft, Feedback, Ledger, Thread, Transaction, Turns, Usage
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import REPOSITORIES, Repositories, scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.lists.thread_ids import ids_with_prefix, iterate_ids
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories.alternatives import find_ways
from chatledger.storage.repositories.branches import advance, fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from chatledger.storage.repositories.find import list_names
from chatledger.storage.repositories.outputs import add_outputs, list_agents, list_outputs, replace_agents
from chatledger.storage.repositories.runs import find_runs
from chatledger.storage.schema.tables import INSERTION_ORDER, tenants
from chatledger.storage.schema.text import encode_key, write_mark
from chatledger.types import FrameTable, OpenDraft
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.places import at
from tests.storage.durable import make_durable
from tests.storage.raw import query
from tests.views import of_user

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Ids:
    thread: str
    user: str
    message: str
    run: str
    feedback: str
    key: str
    agent: str
    partial: str
    erased: str
    erased_user: str


THEIRS = Ids(
    "their thread",
    "their user",
    "their message ",
    "their run",
    "their feedback",
    "their key",
    "their agent",
    "their partial",
    "their erased",
    "their gone",
)
NOBODYS = Ids(
    "fake thread",
    "fake user",
    "fake message ",
    "fake run",
    "fake feedback",
    "fake key",
    "fake agent",
    "fake partial",
    "fake erased",
    "fake gone",
)

OUTPUT = Output(branch=0, seq=1, nonce="n", mime_type="text/plain", text="x")

Call = Callable[[Repositories, Ids], Awaitable[object]]


async def fill(repositories: Repositories, ids: Ids) -> None:
    """All that a tenant can have, under these ids."""
    await of_user(repositories, ids.user).threads.create(ids.thread, title="secret", created_at=NOON)
    await repositories.runs.start(ids.thread, run_id=ids.run, agent=ids.agent, model="m")
    await make_durable(repositories, ids.thread, ids.run, author=ids.user)
    await repositories.messages.append(ids.thread, turn(ids=ids.message), run_id=ids.run)
    await repositories.messages.append(ids.thread, [user("?"), assistant(reasoning="hm")], idempotency_key=ids.key)
    await fork_at(scope_of(repositories), ids.thread, 5, activate=False)
    await repositories.messages.revise(ids.thread, f"{ids.message}0", user("And in Oslo?"))
    await add_outputs(scope_of(repositories), ids.thread, [OUTPUT])
    await repositories.kv.put(("thread", ids.thread), ids.key, {"secret": 1})
    left = assistant("Su", state="partial")
    scope = scope_of(repositories)
    await load_threads(scope, [prepare_thread(scope, new_thread(ids.partial), [left])])  # nobody writes it
    await of_user(repositories, ids.erased_user).threads.create(ids.erased)
    await repositories.runs.start(ids.erased, run_id=f"{ids.run} once")
    await repositories.feedback.record(Feedback(run_id=f"{ids.run} once", key="stars", score=2))
    await repositories.erasures.erase(("user", ids.erased_user), keep_scores=True)
    await replace_agents(scope_of(repositories), ids.thread, [ThreadAgent(name=ids.agent, definition={})], stored=[])
    stars = Feedback(run_id=ids.run, key="stars", score=4, feedback_id=ids.feedback, message_id=f"{ids.message}4")
    await repositories.feedback.record(stars)
    await repositories.feedback.record(Feedback(run_id=ids.run, key="up", score=1), idempotency_key=ids.key)


async def iterate(repositories: Repositories, thread_id: str) -> list[Any]:
    return [message async for message in repositories.messages.iterate(thread_id)]


async def followed(repositories: Any, thread_id: str) -> object:
    """The first change since the thread was empty. A transaction cannot follow."""
    if isinstance(repositories, Transaction):
        return None
    async with aclosing(repositories.messages.follow(thread_id, cursor=write_mark(thread_id, 0, 0, 0))) as changes:
        return (await anext(changes)).message


async def framed(batches: AsyncIterator[Any]) -> list[Any]:
    return [row async for batch in batches for row in batch.to_pylist()]


def frames_of(table: FrameTable) -> list[Call]:
    return [
        lambda s, ids: framed(s.frames(table)),
        lambda s, ids: framed(of_user(s, ids.user).frames(table, agent=ids.agent)),
    ]


async def checked(repositories: Repositories, thread_id: str | None = None) -> list[Any]:
    return [one async for one in repositories.check(thread_id)]


async def all_ids(repositories: Repositories) -> list[str]:
    return [thread_id async for thread_id in iterate_ids(scope_of(repositories))]


async def find_many(repositories: Repositories, thread_ids: Sequence[str]) -> list[Thread]:
    found = await find_threads(scope_of(repositories), thread_ids)
    return [found[id_] for id_ in thread_ids if id_ in found]


async def said(draft: Draft) -> object:
    async with draft:
        await draft.feed("!")
    return draft.message


def new_thread(thread_id: str) -> Thread:
    return Thread(thread_id=thread_id, created_at=NOON, active_at=NOON)


def stars(run_id: str, **fields: Any) -> Feedback:
    return Feedback(run_id=run_id, key="stars", score=1, **fields)


# Each is called by a tenant who has a thread "mine" with a run "my run" and nothing else.
CALLS: dict[str, list[Call]] = {
    "messages.prompt": [lambda s, ids: s.messages.prompt(ids.thread, "openai-chat")],
    "check": [lambda s, ids: checked(s), lambda s, ids: checked(s, ids.thread)],
    "storage.iterate_ids": [lambda s, ids: all_ids(s)],
    "storage.ids_with_prefix": [
        lambda s, ids: ids_with_prefix(scope_of(s), ids.thread, 9),
        lambda s, ids: ids_with_prefix(scope_of(s), "m", 9),
    ],
    "threads.create": [
        lambda s, ids: s.threads.create(ids.thread),
        lambda s, ids: of_user(s, "me").threads.create(ids.thread, exist_ok=True),
    ],
    "threads.copy": [
        lambda s, ids: s.threads.copy(ids.thread),
        lambda s, ids: s.threads.copy(ids.thread, branch=1, until=f"{ids.message}0"),
        lambda s, ids: s.threads.copy("mine", ids.thread),
    ],
    "storage.load_threads": [
        lambda s, ids: load_threads(scope_of(s), [prepare_thread(scope_of(s), new_thread(ids.thread), turn())])
    ],
    "threads.get": [lambda s, ids: s.threads.get(ids.thread), lambda s, ids: of_user(s, ids.user).threads.get("mine")],
    "threads.find": [
        lambda s, ids: s.threads.find(ids.thread),
        lambda s, ids: of_user(s, ids.user).threads.find("mine"),
    ],
    "threads.update": [
        lambda s, ids: s.threads.update(ids.thread, title="mine now"),
        lambda s, ids: s.threads.update(ids.thread, rules="strict"),
        lambda s, ids: s.threads.update(ids.thread, archived=True),
    ],
    "storage.check_thread": [
        lambda s, ids: findings_of(s, ids.thread),
        lambda s, ids: findings_of(s, ids.thread, branch=1),
    ],
    "threads.delete": [lambda s, ids: s.threads.delete(ids.thread)],
    "threads.search": [lambda s, ids: of_user(s, ids.user).threads.search("secret")],
    "threads.list": [
        lambda s, ids: s.threads.list(),
        lambda s, ids: of_user(s, ids.user).threads.list(),
    ],
    "threads.count": [lambda s, ids: of_user(s, ids.user).threads.count()],
    "messages.append": [
        lambda s, ids: s.messages.append(ids.thread, turn()),
        lambda s, ids: s.messages.append(ids.thread, turn(), reply_to=at(1)),
        lambda s, ids: s.messages.append("mine", turn(), reply_to=f"{ids.message}0"),
        lambda s, ids: s.messages.append(ids.thread, []),
        lambda s, ids: s.messages.append(ids.thread, turn(ids=ids.message), run_id=ids.run),
        lambda s, ids: s.messages.append(ids.thread, turn(), branch=1, expected=0),
        lambda s, ids: s.messages.append("mine", turn(ids=ids.message)),
        lambda s, ids: s.messages.append("mine", turn(), run_id=ids.run),
        lambda s, ids: s.messages.append("mine", [user("?")], idempotency_key=ids.key),
    ],
    "messages.sync": [
        lambda s, ids: s.messages.sync(ids.thread, turn(ids=ids.message)),
        lambda s, ids: s.messages.sync("mine", turn(ids=ids.message), run_id=ids.run),
    ],
    "messages.history": [
        lambda s, ids: s.messages.history(ids.thread),
        lambda s, ids: s.messages.history(ids.thread, Turns(1)),
        lambda s, ids: s.messages.history("mine", run_id=ids.run),
        lambda s, ids: s.messages.history("mine"),
    ],
    "messages.iterate": [lambda s, ids: iterate(s, ids.thread)],
    "messages.get": [
        lambda s, ids: s.messages.get(ids.thread, f"{ids.message}1"),
        lambda s, ids: s.messages.get("mine", f"{ids.message}1"),
    ],
    "messages.search": [
        lambda s, ids: of_user(s, ids.user).messages.search("secret"),
        lambda s, ids: s.messages.search("tokyo", thread_id=ids.thread),
    ],
    "messages.find": [lambda s, ids: s.messages.find(f"{ids.message}1")],
    "storage.names": [lambda s, ids: list_names(s._scope, ids.thread, "message-file")],
    "messages.close_open_calls": [lambda s, ids: s.messages.close_open_calls(ids.thread, reason="gone")],
    "branches.fork": [
        lambda s, ids: s.branches.fork(ids.thread, f"{ids.message}4"),
        lambda s, ids: s.branches.fork(ids.thread, f"{ids.message}4", branch=1),
        lambda s, ids: s.branches.fork("mine", f"{ids.message}4"),
        lambda s, ids: s.branches.fork(ids.thread, None),
    ],
    "messages.alternatives": [
        lambda s, ids: s.messages.alternatives(ids.thread, f"{ids.message}0"),
        lambda s, ids: s.messages.alternatives("mine", f"{ids.message}0"),
    ],
    "branches.activate": [lambda s, ids: s.branches.activate(ids.thread, 1)],
    "branches.list": [lambda s, ids: s.branches.list(ids.thread)],
    "storage.find_ways": [
        lambda s, ids: find_ways(scope_of(s), ids.thread, 0, [1]),
        lambda s, ids: find_ways(scope_of(s), ids.thread, 1, [1]),
    ],
    "branches.get": [lambda s, ids: s.branches.get(ids.thread), lambda s, ids: s.branches.get(ids.thread, 1)],
    "storage.advance": [
        lambda s, ids: advance(scope_of(s), ids.thread, write_mark(encode_key(ids.thread, "thread_id"), 0, 7, 1))
    ],
    "storage.add_outputs": [
        lambda s, ids: add_outputs(scope_of(s), ids.thread, [OUTPUT]),
        lambda s, ids: add_outputs(scope_of(s), ids.thread, []),
    ],
    "storage.list_outputs": [lambda s, ids: list_outputs(scope_of(s), ids.thread)],
    "storage.replace_agents": [
        lambda s, ids: replace_agents(scope_of(s), ids.thread, [ThreadAgent(name="a", definition={})], stored=[]),
        lambda s, ids: replace_agents(scope_of(s), ids.thread, [], stored=[ThreadAgent(name=ids.agent, definition={})]),
        lambda s, ids: replace_agents(scope_of(s), "mine", [], stored=[ThreadAgent(name=ids.agent, definition={})]),
    ],
    "storage.list_agents": [lambda s, ids: list_agents(scope_of(s), ids.thread)],
    "runs.start": [
        lambda s, ids: s.runs.start(ids.thread, run_id="r"),
        lambda s, ids: s.runs.start(ids.thread, run_id=ids.run),
        lambda s, ids: s.runs.start("mine", run_id=ids.run, agent="other"),
    ],
    "runs.finish": [lambda s, ids: s.runs.finish(ids.run, status="failed", usage=Usage(input_tokens=1))],
    "runs.delete": [lambda s, ids: s.runs.delete(ids.run)],
    "runs.get": [lambda s, ids: s.runs.get(ids.run)],
    "runs.find": [lambda s, ids: s.runs.find(ids.run)],
    "storage.find_runs": [lambda s, ids: find_runs(scope_of(s), [ids.run])],
    "runs.list": [lambda s, ids: s.runs.list(), lambda s, ids: s.runs.list(thread_id=ids.thread)],
    "runs.usage": [
        lambda s, ids: s.runs.usage(by=("thread", "user")),
        lambda s, ids: of_user(s, ids.user).runs.usage(thread_id=ids.thread, agent=ids.agent),
    ],
    "feedback.record": [
        lambda s, ids: s.feedback.record(stars(ids.run)),
        lambda s, ids: s.feedback.record(stars(ids.run), idempotency_key=ids.key),
        lambda s, ids: s.feedback.record(stars("my run", feedback_id=ids.feedback)),
        lambda s, ids: s.feedback.record(stars("my run", message_id=f"{ids.message}4")),
        lambda s, ids: s.feedback.record(stars("my run"), idempotency_key=ids.key),
    ],
    "feedback.remove": [lambda s, ids: s.feedback.remove(ids.feedback)],
    "feedback.list": [
        lambda s, ids: s.feedback.list(),
        lambda s, ids: s.feedback.list(run_id=ids.run, user_id=ids.user),
        lambda s, ids: s.feedback.list(thread_id=ids.thread, key="stars"),
        lambda s, ids: s.feedback.list(events=True),
        lambda s, ids: s.feedback.list(events=True, run_id=ids.run),
        lambda s, ids: s.feedback.list(events=True, thread_id=ids.thread),
    ],
    "stats": [lambda s, ids: s.stats("model"), lambda s, ids: of_user(s, ids.user).stats("day")],
    "feedback.compare": [
        lambda s, ids: s.feedback.compare("stars", by="agent", agent=ids.agent),
        lambda s, ids: s.feedback.compare("stars", by="metadata.x", user_id=ids.user),
    ],
    "feedback.summary": [lambda s, ids: s.feedback.summary(), lambda s, ids: s.feedback.summary(agent=ids.agent)],
}
CALLS |= {
    "messages.stream": [
        lambda s, ids: said(s.messages.stream(ids.thread)),
        lambda s, ids: said(s.messages.stream("mine", run_id=ids.run)),
        lambda s, ids: said(s.messages.stream("mine", message=ChatMessage.assistant(message_id=f"{ids.message}4"))),
    ],
    "messages.attach": [
        lambda s, ids: said(s.messages.attach(ids.thread, f"{ids.message}4", "0" * 16)),
        lambda s, ids: said(s.messages.attach("mine", f"{ids.message}4", "0" * 16)),
    ],
    "drafts.list": [lambda s, ids: s.drafts.list(), lambda s, ids: s.drafts.list(abandoned_for=0)],
    "drafts.interrupt": [
        lambda s, ids: s.drafts.interrupt(
            OpenDraft(thread_id=ids.partial, branch=0, seq=1, message_id=None, run_id=None, created_at=NOON, since=NOON)
        )
    ],
}
CALLS |= {
    "answers.start": [
        lambda s, ids: s.answers.start(ids.thread, "?", agent=ids.agent, idempotency_key=ids.key),
        lambda s, ids: s.answers.start(ids.thread, "?", agent=ids.agent, when_live="stop"),
        lambda s, ids: s.answers.start("mine", reply_to=f"{ids.message}0", agent="a"),
    ],
    "answers.get": [lambda s, ids: s.answers.get(ids.run)],
    "answers.resume": [lambda s, ids: s.answers.resume(ids.run, refuse=["call_0"])],
    "answers.stop": [lambda s, ids: s.answers.stop(ids.run)],
}
CALLS |= {
    "frames": [call for table in get_args(FrameTable) for call in frames_of(table)],
    "messages.follow": [lambda s, ids: followed(s, ids.thread)],
    "kv.get": [
        lambda s, ids: s.kv.get(("thread", ids.thread), ids.key),
        lambda s, ids: s.kv.get(("user", "u"), ids.key),
    ],
    "kv.list": [lambda s, ids: s.kv.list(("thread", ids.thread)), lambda s, ids: s.kv.list(("user", ids.user))],
    "kv.list_many": [
        lambda s, ids: s.kv.list_many([("thread", ids.thread), ("thread", "mine")]),
        lambda s, ids: s.kv.list_many([("user", ids.user)]),
    ],
    "kv.put": [
        lambda s, ids: s.kv.put(("thread", ids.thread), ids.key, 2, expected=0),
        lambda s, ids: s.kv.put(("thread", ids.thread), ids.key, {"b": 2}, merge=True),
    ],
    "kv.delete": [lambda s, ids: s.kv.delete(("thread", ids.thread), ids.key)],
    "messages.remove": [
        lambda s, ids: s.messages.remove(ids.thread, f"{ids.message}4"),
        lambda s, ids: s.messages.remove("mine", f"{ids.message}4"),
    ],
    "messages.pop": [lambda s, ids: s.messages.pop(ids.thread), lambda s, ids: s.messages.pop(ids.thread, branch=1)],
    "messages.rewind": [
        lambda s, ids: s.messages.rewind(ids.thread, f"{ids.message}0"),
        lambda s, ids: s.messages.rewind("mine", f"{ids.message}0"),
        lambda s, ids: s.messages.rewind(ids.thread, None),
    ],
}
CALLS |= {
    "storage.find_threads": [lambda s, ids: find_many(s, [ids.thread, "mine"])],
    "threads.delete_inactive": [lambda s, ids: s.threads.delete_inactive(older_than=NOON)],
    "messages.erase": [
        lambda s, ids: s.messages.erase(ids.thread, f"{ids.message}0"),
        lambda s, ids: s.messages.erase("mine", f"{ids.message}0"),
        lambda s, ids: erase_at(scope_of(s), ids.thread, 1, branch=1),
    ],
    "messages.revise": [
        lambda s, ids: s.messages.revise(ids.thread, f"{ids.message}0", user("other words")),
        lambda s, ids: s.messages.revise("mine", f"{ids.message}0", user("other words")),
    ],
    "messages.revisions": [
        lambda s, ids: s.messages.revisions(ids.thread, f"{ids.message}0"),
        lambda s, ids: s.messages.revisions("mine", f"{ids.message}0"),
    ],
    "erasures.erase": [
        lambda s, ids: s.erasures.erase(("thread", ids.thread), dry_run=True),
        lambda s, ids: s.erasures.erase(("user", ids.user)),
        lambda s, ids: s.erasures.erase(("thread", ids.thread)),
        lambda s, ids: s.erasures.erase(("thread", ids.erased)),
        lambda s, ids: s.erasures.erase(("tenant",)),
    ],
    "erasures.find": [
        lambda s, ids: s.erasures.find(("thread", ids.erased)),
        lambda s, ids: s.erasures.find(("user", ids.erased_user)),
    ],
    "erasures.list": [lambda s, ids: s.erasures.list()],
}
LIFETIME = {
    "answers.serve",
    "open",
    "tenant",
    "user",
    "replica",
    "begin",
    "close",
    "metrics",
    "over",
    "ping",
    "position",
    "reencrypt",
}
"""The calls that make and end ledgers and transactions, or ask the database for no id."""


def public_methods(owner: type) -> set[str]:
    functions = inspect.getmembers(owner, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    return {name for name, _ in functions if not name.startswith("_")}


async def test_every_public_method_is_called_below(ledger: Ledger) -> None:
    found = public_methods(Ledger) | public_methods(Transaction)
    for noun in REPOSITORIES:
        found |= {f"{noun}.{name}" for name in public_methods(type(getattr(ledger, noun)))}
    assert found - LIFETIME == {name for name in CALLS if not name.startswith("storage.")}


@asynccontextmanager
async def in_ledger(ledger: Ledger) -> AsyncIterator[Repositories]:
    yield ledger


@asynccontextmanager
async def in_transaction(ledger: Ledger) -> AsyncIterator[Repositories]:
    async with ledger.begin() as tx:
        yield tx


async def outcome(repositories: Repositories, call: Call, ids: Ids) -> str:
    """The result or error of the call, without values that differ from call to call: ids, times, minted ids, marks."""
    try:
        told = repr(await call(repositories, ids))
    except Exception as error:
        told = f"{type(error).__qualname__} {error} {sorted(vars(error).items())}"
    for name, id_ in vars(ids).items():
        told = told.replace(id_, f"<{name}>")
    told = re.sub(r"'[\w-]{32}'", "<mark>", told)
    told = re.sub(r"subject='[0-9a-f]{64}'", "subject=<code>", told)  # under the secret of a tombstone
    told = re.sub(r"datetime\.datetime\([^)]*\)", "<time>", told)
    told = re.sub(r"\b\d{16}\b", "<microseconds>", told)  # the first version of a value
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<new id>", told)


VARIES = r"redacted 2[^']*|\nDETAIL:[^[]*(?= \[)"
"""The words that differ between two databases, or under row-level security, which gives no details of a key."""


async def tell(ledger: Ledger, scope: Any, prefix: str, *, filled_by: Ledger | None = None) -> dict[str, list[str]]:
    """The answers of every public method to a tenant, for ids that it has and for ids that it does not have."""
    told = {}
    for name, calls in CALLS.items():
        own = (filled_by or ledger).tenant(f"{prefix} {name}")
        await fill(own, THEIRS)
        await own.threads.create("mine", created_at=NOON)
        await own.runs.start("mine", run_id="my run")
        async with scope(ledger.tenant(f"{prefix} {name}")) as repositories:
            outcomes = [await outcome(repositories, call, ids) for call in calls for ids in (NOBODYS, THEIRS)]
        told[name] = [re.sub(VARIES, "", one).replace(prefix, "") for one in outcomes]
    return told


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_ids_of_another_tenant_are_treated_as_unknown_ids(database: Database, ledger: Ledger, scope: Any) -> None:
    await fill(ledger.tenant("a"), THEIRS)
    before = await rows_of(database, "a")
    differing = {}
    for name, calls in CALLS.items():
        for number, call in enumerate(calls):
            outcomes = []
            for ids in (THEIRS, NOBODYS):
                own = ledger.tenant(f"{name} {number} {ids.user}")
                await own.threads.create("mine", created_at=NOON)
                await own.runs.start("mine", run_id="my run")
                async with scope(own) as repositories:
                    outcomes.append(await outcome(repositories, call, ids))
            if outcomes[0] != outcomes[1]:
                differing[name, number] = outcomes
    assert differing == {}
    assert await rows_of(database, "a") == before


async def rows_of(database: Database, tenant: str) -> dict[str, list[tuple[Any, ...]]]:
    filled = [table.name for table in INSERTION_ORDER if table is not tenants]  # which only says that one is encrypted
    selected = ((name, f"SELECT * FROM {name} WHERE tenant_id = '{tenant}'") for name in filled)
    rows = {name: sorted(await query(database, statement), key=repr) for name, statement in selected}
    assert all(rows.values())
    return rows


# They take no id, tell none, or leave nothing for the calls after them.
BLUNT = {
    "threads.delete",
    "runs.delete",
    "threads.create",
    "storage.load_threads",
    "threads.delete_inactive",
    "erasures.list",
}


async def test_the_comparison_can_fail(ledger: Ledger) -> None:
    """With their own ids the same calls do tell something else, wherever a call takes an id."""
    await fill(ledger.tenant("a"), THEIRS)
    same = []
    for name, calls in CALLS.items():
        owner = ledger.tenant("a")
        if name in BLUNT:
            continue
        told = [await outcome(owner, call, THEIRS) == await outcome(owner, call, NOBODYS) for call in calls]
        same += [name] if all(told) else []
    assert same == []


async def test_tenants_may_use_the_same_ids(ledger: Ledger) -> None:
    one, other = ledger.tenant("one"), ledger.tenant("other")
    for tenant in (one, other):
        await fill(tenant, THEIRS)
    await one.threads.delete(THEIRS.thread)
    assert await one.threads.find(THEIRS.thread) is None
    assert (await other.messages.history(THEIRS.thread)).last_seq == 8
    assert len(await other.feedback.list(events=True)) == 2
    assert (await other.runs.get(THEIRS.run)).agent == THEIRS.agent


async def test_an_empty_tenant_sees_nothing(ledger: Ledger) -> None:
    await fill(ledger.tenant("a"), THEIRS)
    for name in ("b", "A", "a\0", "a ", "default"):
        tenant = ledger.tenant(name)
        assert (await tenant.threads.list()).items == []
        assert (await tenant.runs.list()).items == []
        assert (await tenant.feedback.list(events=True)).items == []
        assert await tenant.feedback.summary() == []


async def test_a_cursor_of_another_tenant_shows_nothing_of_theirs(ledger: Ledger) -> None:
    await fill(ledger.tenant("a"), THEIRS)
    await ledger.tenant("a").threads.create("second")
    await ledger.threads.create("mine", created_at=NOON)
    cursor = (await ledger.tenant("a").threads.list(limit=1)).next_cursor
    assert [thread.thread_id for thread in await ledger.threads.list(cursor=cursor)] in ([], ["mine"])


async def test_closing_a_tenants_view_closes_nothing(ledger: Ledger) -> None:
    async with ledger.tenant("a") as tenant:
        await fill(tenant, THEIRS)
    assert (await ledger.tenant("a").threads.get(THEIRS.thread)).message_count == 7


def test_no_two_ids_are_alike() -> None:
    """Otherwise replacing one in an outcome would hide another."""
    ids = [*astuple(THEIRS), *astuple(NOBODYS)]
    assert len(set(ids)) == len(ids)


def literals(names: Sequence[str], row: Sequence[Any], between: str) -> str:
    given = (value if isinstance(value, int) else f"'{value}'" for value in row)
    return between.join(f"{name} = {value}" for name, value in zip(names, given, strict=True))


async def change(database: Database, statement: str) -> None:
    if database.kind == "postgresql":
        await query(database, statement)
        return
    with closing(sqlite3.connect(database.url)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(statement)


async def test_no_row_can_be_linked_to_another_tenants(database: Database, ledger: Ledger) -> None:
    """Not even by SQL: the tenant is in every foreign key, so what is there for one is not there for another."""
    await fill(ledger.tenant("a"), THEIRS)
    await fill(ledger.tenant("b"), NOBODYS)
    links = [(table, link) for table in INSERTION_ORDER for link in table.foreign_key_constraints]
    assert len(links) >= 13
    for table, link in links:
        assert (link.column_keys[0], link.elements[0].column.name) == ("tenant_id", "tenant_id")
        key, columns = table.primary_key.columns.keys(), link.column_keys[1:]
        linked = " AND ".join(f"{column} IS NOT NULL" for column in columns)
        rows = f"FROM {table.name} WHERE {linked} AND tenant_id ="
        theirs = (await query(database, f"SELECT {', '.join(columns)} {rows} 'a'"))[0]
        mine = (await query(database, f"SELECT {', '.join(key)} {rows} 'b'"))[0]
        update = f"UPDATE {table.name} SET {literals(columns, theirs, ', ')} WHERE {literals(key, mine, ' AND ')}"
        with pytest.raises((sqlite3.IntegrityError, asyncpg.ForeignKeyViolationError), match=r"(?i)foreign key"):
            await change(database, update)
