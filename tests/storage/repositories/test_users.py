"""A user's ledger: only that user's threads exist in it, whatever is called.

The calls are read from the objects and their signatures, so one that is added is called as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Draft, Feedback, InvalidArgument, Ledger, NotFound, Payload, Thread, ThreadNotFound, Transaction
from chatledger.admin import configure_sqlite
from chatledger.errors import IdConflict, RunConflict, RunNotFound, TenantOnly
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import Repositories, scope_of
from chatledger.storage.lists.thread_ids import ids_with_prefix, iterate_ids
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from chatledger.storage.repositories.outputs import add_outputs, replace_agents
from chatledger.storage.repositories.runs import find_runs
from chatledger.storage.schema.tables import metadata
from chatledger.types import OpenDraft, Page
from tests.conftest import ENCRYPTED, KEYS, Database
from tests.conversations import assistant, call, result, turn, user
from tests.hostile.calls import NOW, Call, calls_of
from tests.storage.raw import query
from tests.views import of_user

SECRET = "s3cr3t"
"""It stands in all that Bob stores."""
BOBS = {"thread_id": "bob's", "run_id": "run of bob", "message_id": "bob's message", "branch": 1, "seq": 1, "after": 1}
"""The ids of Bob's things, by the name of the argument."""
SKIPPED = {"open", "close", "begin", "over", "replica"}
"""They reach no thread by themselves."""


def with_keys() -> dict[str, Any]:
    return {"encryption": KEYS} if ENCRYPTED else {}


@pytest.fixture
async def bob(ledger: Ledger) -> Ledger:
    """Bob's own ledger, with a thread that has all that a thread can have; and threads of Ada and of nobody."""
    bob = ledger.user("bob")
    await bob.threads.create("bob's", title=SECRET, metadata={"a": SECRET})
    question = user(SECRET, message_id="bob's message")
    asked = assistant(SECRET, calls=[call("c", "f", f'{{"a": "{SECRET}"}}')])
    await bob.messages.append("bob's", [question, asked, result("c", SECRET), assistant(SECRET)], run_id="run of bob")
    await fork_at(scope_of(bob), "bob's", 1, activate=False)
    await bob.feedback.record(Feedback(run_id="run of bob", key=SECRET, score=1, feedback_id="bob's score"))
    await add_outputs(scope_of(bob), "bob's", [Output(branch=0, seq=1, nonce="n", mime_type="x/y", text=SECRET)])
    await replace_agents(scope_of(bob), "bob's", [ThreadAgent(name=SECRET, definition={})], stored=[])
    await bob.messages.append("bob's", [assistant(SECRET, state="partial", message_id="p")], branch=1)
    for scope in (("thread", "bob's"), ("user", "bob")):
        await bob.kv.put(scope, SECRET, SECRET)
    await ledger.threads.create("nobody's", title=SECRET)
    await ledger.user("ada").threads.create("ada's")
    await ledger.messages.append("ada's", turn(), run_id="run of ada")
    return bob


async def usual(bob: Ledger) -> dict[str, Any]:
    """The value of each argument that a call asks for, or that names something of Bob's."""
    mark = (await bob.messages.history("bob's")).mark
    partial: OpenDraft = (await bob.drafts.list())[0]
    thread = Thread(thread_id="bob's", created_at=NOW, active_at=NOW)
    return {
        **BOBS,
        "at": BOBS["message_id"],
        "table": "runs",
        "user_id": "bob",
        "prefix": "b",
        "query": SECRET,
        "name": "acme",
        "messages": [user("?")],
        "payload": [{"role": "user", "content": "?"}],
        "format": "openai-chat",
        "feedback": Feedback(run_id="run of bob", key="k", score=1),
        "status": "completed",
        "thread": thread,
        "new": user("?", message_id=BOBS["message_id"]),
        "scope": ("thread", "bob's"),
        "owner": ("thread", "bob's"),
        "scopes": [("thread", "bob's")],
        "key": SECRET,
        "value": 1,
        "values": {"a": 1},
        "feedback_id": "bob's score",
        "message": user("?", message_id=BOBS["message_id"]),
        "to": BOBS["message_id"],
        "source": "bob's",
        "thread_ids": ["bob's", "nobody's"],
        "run_ids": ["run of bob"],
        "mark": mark,
        "listed": [ThreadAgent(name="a", definition={})],
        "stored": [],
        "added": [Output(branch=0, seq=1, nonce="n", mime_type="x/y", text="x")],
        "older_than": NOW,
        "draft": partial,
        "agents": {"weather": no_agent},
        "token": "0" * 16,
    }


async def no_agent(turn: object) -> None:
    raise AssertionError("nobody asked")


def attempts(call: Call, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments that are asked for, with each choice of the others that name something of Bob's."""
    if call.name == "threads.list":
        given = {**given, "after": "bob's"}
    if call.name == "follow":
        given = {**given, "after": given["mark"]}
    asked = {name: given[name] for name in call.asked}
    if call.name == "answers.start":
        asked |= {"question": "?", "agent": "a"}
    others = [name for name in call.parameters if name in BOBS and name not in asked]
    choices: list[tuple[dict[str, Any], ...]] = [({}, {name: given[name]}) for name in others]
    for choice in product(*choices):
        yield asked | {name: value for one in choice for name, value in one.items()}


async def outcome(call: Call, arguments: Mapping[str, Any]) -> object:
    """The result of the call, or its error."""
    try:
        done = call.function(**arguments)
        if inspect.isawaitable(done):
            done = await done
        if isinstance(done, Draft):
            async with done:
                await done.feed("x")
        if hasattr(done, "__aiter__"):
            return [one async for one in done]
        return done
    except (NotFound, TenantOnly, IdConflict, RunConflict, InvalidArgument) as error:
        return error


def tells_nothing(done: object) -> bool:
    """Whether the outcome is what it would be if Bob had never been there."""
    if type(done) is InvalidArgument:
        return done.argument == "user_id" and SECRET not in str(done)
    if isinstance(done, Exception):
        return SECRET not in repr((str(done), vars(done)))
    if isinstance(done, dict):  # by what was asked for
        return all(map(tells_nothing, done.values()))
    if isinstance(done, Page):
        done = done.items
    return not done or (SECRET not in repr(done) and "bob" not in repr(done))


async def everything(database: Database) -> dict[str, list[str]]:
    """All rows of all tables."""
    names = [table.name for table in metadata.sorted_tables]
    return {name: sorted(map(repr, await query(database, f"SELECT * FROM {name}"))) for name in names}


async def refused(owner: Repositories, given: Mapping[str, Any]) -> dict[str, str]:
    """The faults of a user's ledger or transaction: each call that does or tells more than it may, by its name."""
    wrong: dict[str, str] = {}
    for one in calls_of(owner):
        for arguments in attempts(one, given) if one.name not in SKIPPED else ():
            if one.name == "messages.follow" and isinstance(owner, Transaction):
                continue  # refused for everybody
            if one.name == "threads.create" and "thread_id" not in arguments:
                continue  # a thread of her own
            done = await outcome(one, arguments)
            if not tells_nothing(done):
                wrong[f"{one.name}({', '.join(arguments)})"] = repr(done)
    return wrong


async def test_nothing_of_another_user_exists_for_any_call(ledger: Ledger, bob: Ledger, database: Database) -> None:
    given, before = await usual(bob), await everything(database)
    assert await refused(ledger.user("ada"), given) == {}
    assert await everything(database) == before
    async with ledger.user("ada").begin() as transaction:
        assert await refused(transaction, given) == {}
    assert await everything(database) == before


async def test_nothing_exists_for_a_user_in_a_callers_transaction(bob: Ledger, database: Database) -> None:
    given, before = await usual(bob), await everything(database)
    url = database.url.replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url if database.kind == "postgresql" else f"sqlite+aiosqlite:///{url}")
    if database.kind == "sqlite":
        configure_sqlite(engine)
    try:
        async with engine.begin() as connection:
            assert await refused(Transaction(connection, user="ada", **with_keys()), given) == {}
            assert (await Transaction(connection, user="bob", **with_keys()).threads.get("bob's")).title == SECRET
    finally:
        await engine.dispose()
    assert await everything(database) == before


async def test_the_same_calls_reach_the_users_own_rows(bob: Ledger) -> None:
    """Shows that the test above proves something: each read finds the rows that it would have revealed."""
    assert {thread.thread_id for thread in (await bob.threads.list()).items} == {"bob's"}
    assert [id_ async for id_ in iterate_ids(scope_of(bob))] == await ids_with_prefix(scope_of(bob), "", 9) == ["bob's"]
    assert set(await find_threads(scope_of(bob), ["bob's", "ada's", "nobody's"])) == {"bob's"}
    assert [run.run_id for run in (await bob.runs.list()).items] == ["run of bob"]
    assert set(await find_runs(scope_of(bob), ["run of bob", "run of ada", "nobody's"])) == {"run of bob"}
    current = await bob.feedback.list(run_id=["run of bob", "run of ada"])
    assert [score.feedback_id for score in current] == ["bob's score"]
    assert [score.feedback_id for score in (await bob.feedback.list(events=True)).items] == ["bob's score"]
    assert [one.count for one in await bob.feedback.summary()] == [1]
    assert [one.thread_id for one in await bob.drafts.list()] == ["bob's"]
    assert [one.thread_id async for one in bob.check("bob's")] == ["bob's"]
    assert (await bob.messages.get("bob's", "bob's message")).text == SECRET
    assert len(await bob.branches.list("bob's")) == 2
    assert await bob.messages.append("bob's", turn(), on_open_calls="close", branch=0)


async def test_what_a_user_creates_is_the_users(ledger: Ledger, bob: Ledger) -> None:
    ada = ledger.user("ada")
    assert (await ada.threads.create("new")).user_id == (await ledger.threads.get("new")).user_id == "ada"
    async with ada.begin() as transaction:
        assert (await of_user(transaction, "ada").threads.create("newer")).user_id == "ada"
    with pytest.raises(InvalidArgument, match="user_id is another user than the one whose threads are seen here"):
        await ada.user("bob").threads.create("newest")
    assert await ledger.threads.find("newest") is None
    for name in ("bob's", "nobody's"):
        with pytest.raises(IdConflict) as caught:
            await ada.threads.create(name)
        assert (caught.value.what, caught.value.id) == ("thread", name)
        with pytest.raises(ThreadNotFound):
            await ada.threads.create(name, exist_ok=True)


async def test_an_id_that_is_taken_says_nothing_of_its_user(ledger: Ledger, bob: Ledger) -> None:
    ada = ledger.user("ada")
    for name in ("start", "append"):
        with pytest.raises(RunConflict, match=r"^run 'run of bob': belongs to another thread$") as caught:
            if name == "start":
                await ada.runs.start("ada's", run_id="run of bob")
            else:
                await ada.messages.append("ada's", turn(), run_id="run of bob")
        assert vars(caught.value) == {"run_id": "run of bob"}
    with pytest.raises(RunNotFound):
        await ada.feedback.record(Feedback(run_id="run of bob", key="k", score=1))
    with pytest.raises(IdConflict) as other:
        await ada.feedback.record(Feedback(run_id="run of ada", key="k", score=1, feedback_id="bob's score"))
    assert "bob" not in str(other.value).replace("bob's score", "")


async def test_a_score_is_that_of_the_user(ledger: Ledger, bob: Ledger) -> None:
    score = Feedback(run_id="run of bob", key="stars", score=4)
    recorded = await bob.feedback.record(score, idempotency_key="once")
    assert recorded.user_id == "bob"
    assert await bob.feedback.record(score.model_copy(update={"user_id": "bob"}), idempotency_key="once") == recorded
    with pytest.raises(InvalidArgument, match="user_id is another user"):
        await bob.feedback.record(score.model_copy(update={"user_id": "ada"}))
    async with bob.begin() as tx:
        assert (await tx.feedback.record(score)).user_id == "bob"
    assert [one.user_id for one in await ledger.feedback.list(key="stars")] == ["bob"]
    assert (await ledger.feedback.record(score)).user_id is None


async def test_a_user_retracts_only_their_own_scores(ledger: Ledger, bob: Ledger) -> None:
    for scorer in (None, "ada"):
        given = await ledger.feedback.record(Feedback(run_id="run of bob", key="eval", score=0.1, user_id=scorer))
        with pytest.raises(TenantOnly):
            await bob.feedback.remove(given.feedback_id or "")
    assert [one.retracted_at for one in await bob.feedback.list(key="eval")] == [None, None]
    own = await bob.feedback.record(Feedback(run_id="run of bob", key="eval", score=1))
    assert (await bob.feedback.remove(own.feedback_id or "")).retracted_at is not None


async def test_calls_for_all_users_are_refused(ledger: Ledger) -> None:
    ada = ledger.user("ada")
    for refuse in (
        lambda: ada.tenant("acme"),
        lambda: ada.check(),
        lambda: prepare_thread(scope_of(ada), Thread(thread_id="t", created_at=NOW, active_at=NOW), []),
    ):
        with pytest.raises(TenantOnly, match="whole tenant, and this ledger is a user's view; use the tenant's ledger"):
            refuse()
    for call_ in (
        ada.reencrypt(),
        ada.threads.delete_inactive(older_than=NOW),
        load_threads(scope_of(ada), []),
        ada.erasures.erase(("tenant",)),
        ada.erasures.list(),
        ada.erasures.find(("thread", "t")),
    ):
        with pytest.raises(TenantOnly):
            await call_
    with pytest.raises(InvalidArgument, match="user_id is another user"):
        ada.user("bob")
    assert ada.user("ada")._scope == ada._scope


async def test_the_values_of_kv_are_those_of_the_user(ledger: Ledger, bob: Ledger) -> None:
    ada = ledger.user("ada")
    await ada.kv.put(("user", "ada"), "k", 1)
    await ada.messages.append("ada's", turn(), kv={"k": 2})
    assert [(await ada.kv.get(scope, "k")) is None for scope in (("user", "ada"), ("thread", "ada's"))] == [False] * 2
    for call_ in (ada.kv.get, ada.kv.delete):
        with pytest.raises(InvalidArgument, match=r"^scope is that of another user"):
            await call_(("user", "bob"), SECRET)
        with pytest.raises(TenantOnly):
            await call_(("tenant",), "k")


async def test_a_user_erases_herself_and_nobody_else(ledger: Ledger, bob: Ledger, database: Database) -> None:
    ada = ledger.user("ada")
    for of_owner in (ada.erasures.erase, ada.erasures.find):
        with pytest.raises(InvalidArgument, match="user_id is another user"):
            await of_owner(("user", "bob"))
    await bob.erasures.erase(("thread", "bob's"), keep_scores=True)
    for dry_run in (True, False):  # its tombstone is not hers to see
        with pytest.raises(ThreadNotFound):
            await ada.erasures.erase(("thread", "bob's"), dry_run=dry_run)
    assert [one.count for one in await ledger.feedback.summary()] == [1]
    assert await ada.feedback.summary() == []
    assert (await ada.erasures.erase(("user", "ada"), dry_run=True)).rows["threads"] == 1
    assert (await ada.erasures.erase(("user", "ada"))).rows["threads"] == 1
    assert await ada.erasures.find(("user", "ada")) is not None
    assert [thread.thread_id for thread in (await ledger.threads.list()).items] == ["nobody's"]


# --- One call for a user ----------------------------------------------------------------------------------------------


async def test_a_call_for_a_user_judges_the_owner_as_the_users_ledger_does(
    ledger: Ledger, bob: Ledger, database: Database
) -> None:
    before = await everything(database)
    for thread_id in ("bob's", "nobody's", "unknown"):
        for message in (user(SECRET, message_id="bob's message"), user("?")):
            with pytest.raises(ThreadNotFound, match=rf'^there is no thread "?.?{thread_id}'):
                await ledger.user("ada").messages.append(thread_id, [message])
        with pytest.raises(ThreadNotFound):
            await ledger.user("ada").messages.append(thread_id, Payload([{"role": "user", "content": "?"}]))
        with pytest.raises(ThreadNotFound):
            async with ledger.user("ada").messages.stream(thread_id):
                pass
        with pytest.raises(ThreadNotFound):
            await ledger.user("ada").messages.history(thread_id)
    assert await everything(database) == before
    await ledger.user("ada").messages.append("ada's", Payload([{"role": "user", "content": "?"}]))
    async with ledger.user("ada").messages.stream("ada's") as draft:
        await draft.feed("!")
    assert (await ledger.messages.history("ada's")).messages[-1].text == "!"
    with pytest.raises(InvalidArgument, match="user_id is another user"):
        await ledger.user("ada").user("bob").messages.append("ada's", turn())


async def test_the_owner_is_judged_on_a_cached_tip_too(ledger: Ledger, bob: Ledger) -> None:
    for owner in (ledger.user("ada"), ledger):
        await ledger.messages.append("ada's", turn())  # the tip is cached now, with its owner
        with pytest.raises(ThreadNotFound):
            await bob.messages.append("ada's", turn())
        assert await owner.messages.append("ada's", turn())
