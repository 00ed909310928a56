"""State beside the messages: put, merged and deleted by key, with an append or alone, gone with its thread or user."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from chatledger import ChatMessage, InvalidArgument, Ledger, Limits, Payload, Put, ThreadNotFound, VersionConflict
from chatledger.errors import DamagedCell, EncryptionError, InvalidCursor, LimitExceeded, TenantOnly
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.lists.cursors import to_page
from chatledger.storage.repositories import kv
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import KvValue
from tests.conftest import Database
from tests.conversations import user
from tests.reasons import about, because
from tests.storage.raw import query, raw_connection
from tests.storage.words import RING

TENANT, ADA, THREAD = ("tenant",), ("user", "ada"), ("thread", "t")
SCOPES = [TENANT, (*TENANT, "adk"), ADA, (*ADA, "adk"), THREAD, (*THREAD, "adk")]


@pytest.fixture
async def thread(ledger: Ledger) -> str:
    return (await ledger.user("ada").threads.create("t")).thread_id


async def values(ledger: Ledger, scope: tuple[str, ...]) -> dict[str, Any]:
    return {one.key: one.value for one in await ledger.kv.list(scope)}


# --- One value --------------------------------------------------------------------------------------------------------


async def test_a_service_keeps_a_plan_beside_a_thread(ledger: Ledger, thread: str) -> None:
    """Two workers read the same plan, and the second to write learns that it has to read it again."""
    assert await ledger.kv.get(THREAD, "plan") is None
    first = await ledger.kv.put(THREAD, "plan", {"steps": ["ask"]}, expected=0)
    one, other = await ledger.kv.get(THREAD, "plan"), await ledger.kv.get(THREAD, "plan")
    assert (
        one
        == other
        == first
        == KvValue(key="plan", value={"steps": ["ask"]}, version=first.version, updated_at=first.updated_at)
    )
    second = await ledger.kv.put(THREAD, "plan", {"steps": ["ask", "book"]}, expected=first.version)
    assert second.version == first.version + 1
    with pytest.raises(VersionConflict, check=about("value")) as caught:
        await ledger.kv.put(THREAD, "plan", {"steps": []}, expected=first.version)
    error = caught.value
    assert (error.key, error.expected, error.actual) == ("plan", first.version, second.version)
    assert await ledger.kv.get(THREAD, "plan") == second
    assert (await ledger.kv.put(THREAD, "plan", None)).version == second.version + 1


@pytest.mark.parametrize("scope", SCOPES, ids=str)
async def test_a_key_is_another_value_in_each_scope_and_namespace(ledger: Ledger, thread: str, scope: Any) -> None:
    for other in SCOPES:
        await ledger.kv.put(other, "k", {"of": list(other)})
    await ledger.kv.put(scope, "k", "mine")
    assert await values(ledger, scope) == {"k": "mine"}
    assert await ledger.kv.delete(scope, "k") is True
    assert await ledger.kv.get(scope, "k") is None
    assert await ledger.kv.delete(scope, "k") is False
    for other in SCOPES:
        assert await values(ledger, other) == ({} if other == scope else {"k": {"of": list(other)}})


async def test_another_tenant_has_values_of_its_own(ledger: Ledger) -> None:
    await ledger.kv.put(TENANT, "k", 1)
    assert await ledger.tenant("other").kv.get(TENANT, "k") is None


@pytest.mark.parametrize(
    "value",
    [None, False, 0, -0.0, 10**30, "", "a \0 \ud800", [], [None], {}, {"b": 1, "a": {"": "\ue001" + "1:k:x"}}],
    ids=repr,
)
async def test_a_value_comes_back_as_it_went_in(database: Database, value: Any) -> None:
    for options in ({}, {"encryption": RING, "tenant": "sealed"}):
        async with database.open(**options) as ledger:
            await ledger.kv.put(ADA, "k \0", value)
            found = await ledger.kv.get(ADA, "k \0")
            assert found is not None
            assert repr(found.value) == repr(value)


async def test_a_list_goes_on_behind_its_cursor(ledger: Ledger, thread: str) -> None:
    keys = ["a", "aa", "b", "ä", "\U0001f600"]
    for key in reversed(keys):
        await ledger.kv.put(THREAD, key, key)
    assert list(await values(ledger, THREAD)) == keys
    found, cursor = [], None
    for _ in range(3):
        page = await ledger.kv.list(THREAD, limit=2, cursor=cursor)
        found += [one.key for one in page]
        cursor = page.next_cursor
    assert (found, cursor) == (keys, None)
    with pytest.raises(InvalidCursor):
        await ledger.kv.list(THREAD, cursor="x")


async def test_many_scopes_are_listed_at_once(ledger: Ledger, thread: str) -> None:
    for scope in SCOPES:
        for key in ("a", "b", "c"):
            await ledger.kv.put(scope, key, [*scope, key])
    nobody, none = ("user", "eve"), ("thread", "not there")
    asked = [*SCOPES, nobody, none, THREAD]
    found = await ledger.kv.list_many(asked, limit=2)
    assert list(found) == [*SCOPES, nobody, none]
    for scope in SCOPES:
        page = await ledger.kv.list(scope, limit=2)
        assert (found[scope].items, found[scope].next_cursor) == (page.items, page.next_cursor)
        rest = await ledger.kv.list(scope, limit=2, cursor=found[scope].next_cursor)
        assert [one.value for one in [*found[scope], *rest]] == [[*scope, key] for key in ("a", "b", "c")]
    assert [list(found[scope]) for scope in (nobody, none)] == [[], []]
    assert await ledger.kv.list_many([]) == {}
    many = [("user", f"u{number}") for number in range(1_100)]
    for scope in (many[0], many[-1]):
        await ledger.kv.put(scope, "k \0", "é")
    listed = await ledger.kv.list_many(many)
    assert {scope: [one.key for one in page] for scope, page in listed.items() if page} == {
        many[0]: ["k \0"],
        many[-1]: ["k \0"],
    }


async def test_a_list_of_many_scopes_is_one_statement_for_500(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    execute = ReadSql.execute

    def counted(sql: ReadSql, statement: Any, parameters: Any = None) -> Any:
        asked.append(str(statement))
        return execute(sql, statement, parameters)

    monkeypatch.setattr(ReadSql, "execute", counted)
    for count, statements in ((1, 1), (500, 1), (501, 2)):
        asked.clear()
        await ledger.kv.list_many([("thread", f"t{number}") for number in range(count)])
        assert len(asked) == statements


async def test_a_list_of_many_scopes_reads_no_more_than_it_gives(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ledger.begin() as tx:
        for number in range(20):
            await tx.kv.put(ADA, f"{number}", number)
            await tx.kv.put(TENANT, f"{number}", number)
    read: list[int] = []

    def counted(rows: Any, *given: Any, **named: Any) -> Any:
        read.append(len(rows.rows))
        return to_page(rows, *given, **named)

    monkeypatch.setattr(kv, "to_page", counted)
    assert {scope: len(page) for scope, page in (await ledger.kv.list_many([ADA, TENANT], limit=5)).items()} == {
        ADA: 5,
        TENANT: 5,
    }
    assert read == [5, 5]


async def test_one_user_lists_nothing_of_another(ledger: Ledger, thread: str) -> None:
    await ledger.user("bob").threads.create("bob's")
    for scope in (THREAD, ("thread", "bob's"), ADA):
        await ledger.kv.put(scope, "k", 1)
    found = await ledger.user("ada").kv.list_many([THREAD, ("thread", "bob's"), ADA])
    assert {scope: len(page) for scope, page in found.items()} == {THREAD: 1, ("thread", "bob's"): 0, ADA: 1}
    with pytest.raises(InvalidArgument, match="another user"):
        await ledger.user("bob").kv.list_many([ADA])
    with pytest.raises(TenantOnly):
        await ledger.user("bob").kv.list_many([TENANT])


@pytest.mark.plain
async def test_a_damaged_value_hides_no_other_scope(database: Database, ledger: Ledger, thread: str) -> None:
    for scope in (THREAD, ADA):
        await ledger.kv.put(scope, "k", 1)
    async with raw_connection(database) as run:
        await run("UPDATE kv SET value = '{' WHERE kind = 'user'")
    found = await ledger.kv.list_many([THREAD, ADA])
    assert [one.value for one in found[THREAD]] == [1]
    assert ([*found[ADA]], [type(error) for error in found[ADA].damaged]) == ([], [DamagedCell])


@pytest.mark.parametrize("scopes", [THREAD, [("room", "t")], [["thread", "t"]], ["thread"]])
async def test_a_wrong_scope_among_many_is_refused(ledger: Ledger, scopes: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^scope must be"):
        await ledger.kv.list_many(scopes)


async def test_a_value_that_is_put_again_has_a_new_version(ledger: Ledger) -> None:
    held = await ledger.kv.put(ADA, "k", "read by somebody")
    assert await ledger.kv.delete(ADA, "k")
    again = await ledger.kv.put(ADA, "k", "another", expected=0)
    assert held.version < again.version < 2**53
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.put(ADA, "k", "stale", expected=held.version)
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.delete(ADA, "k", expected=held.version)
    assert await values(ledger, ADA) == {"k": "another"}


async def test_a_delete_expects_a_version_too(ledger: Ledger) -> None:
    held = await ledger.kv.put(ADA, "k", 1)
    with pytest.raises(VersionConflict, check=about("value")) as caught:
        await ledger.kv.delete(ADA, "k", expected=0)
    assert (caught.value.expected, caught.value.actual) == (0, held.version)
    assert await ledger.kv.delete(ADA, "k", expected=held.version) is True
    assert await ledger.kv.delete(ADA, "k", expected=0) is False
    with pytest.raises(
        VersionConflict,
        check=about("value"),
        match=r"^key 'k' has no value, and version \d+ was expected; read it again$",
    ):
        await ledger.kv.delete(ADA, "k", expected=held.version)


async def test_a_thread_that_is_not_there_has_no_values(ledger: Ledger) -> None:
    for call in (
        ledger.kv.put(THREAD, "k", 1),
        ledger.kv.put(THREAD, "k", 1, expected=1),
        ledger.kv.put(THREAD, "k", {}, merge=True),
        ledger.kv.get(THREAD, "k"),
        ledger.kv.list((*THREAD, "n")),
        ledger.kv.delete(THREAD, "k"),
    ):
        with pytest.raises(ThreadNotFound):
            await call


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        ("thread", "str"),
        ((), "()"),
        (("thread",), "('thread')"),
        (("room", "t"), "(str, str)"),
        (("tenant", "n", "m"), "('tenant', str, str)"),
        (("user", "ada", "n", "m"), "('user', str, str, str)"),
        (("user", 5), "('user', int)"),
        ((None, "t"), "(NoneType, str)"),
        (["thread", "t"], "list"),
    ],
)
async def test_a_wrong_scope_is_shown_the_right_ones(ledger: Ledger, scope: Any, given: str) -> None:
    forms = "('tenant',), ('user', user_id) or ('thread', thread_id), or one of these with a namespace behind it"
    with pytest.raises(InvalidArgument) as caught:
        await ledger.kv.get(scope, "k")
    assert str(caught.value) == f"scope must be {forms}, not {given}"


async def test_values_that_cannot_be_stored_are_refused_by_name(database: Database) -> None:
    async with database.open(limits=Limits(bytes=20)) as ledger:
        with pytest.raises(LimitExceeded, match="user_id must not be empty"):
            await ledger.kv.get(("user", ""), "k")
        with pytest.raises(LimitExceeded, match="bytes of namespace: 513 given"):
            await ledger.kv.put((*ADA, "n" * 513), "k", 1)
        with pytest.raises(LimitExceeded, match="key must not be empty"):
            await ledger.kv.put(ADA, "", 1)
        with pytest.raises(InvalidArgument, match=r"^value is not valid: \$\.a: set is not JSON$"):
            await ledger.kv.put(ADA, "k", {"a": {1}})
        with pytest.raises(LimitExceeded, match="bytes of a value: 21 given, at most 20 allowed"):
            await ledger.kv.put(ADA, "k", "x" * 19)
        with pytest.raises(InvalidArgument, match=r"^expected must be the version of the stored value, or 0"):
            await ledger.kv.put(ADA, "k", 1, expected=-1)
        await ledger.kv.put(ADA, "k", {"a": "x" * 8}, merge=True)
        with pytest.raises(LimitExceeded, match="bytes of a value"):
            await ledger.kv.put(ADA, "k", {"b": "x" * 8}, merge=True)
        assert await values(ledger, ADA) == {"k": {"a": "x" * 8}}


# --- Merging ----------------------------------------------------------------------------------------------------------


async def test_merged_keys_are_set_and_others_stay_in_their_order(ledger: Ledger) -> None:
    made = await ledger.kv.put(ADA, "k", {"b": {"x": 1}, "a": 1}, merge=True)
    merged = await ledger.kv.put(ADA, "k", {"c": None, "b": {"y": 2}}, expected=made.version, merge=True)
    assert list(merged.value.items()) == [("b", {"y": 2}), ("a", 1), ("c", None)]
    assert merged == await ledger.kv.get(ADA, "k")
    assert merged.version == made.version + 1
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.put(ADA, "k", {"a": 2}, expected=made.version, merge=True)
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.put(ADA, "other", {}, expected=made.version, merge=True)
    await ledger.kv.put(ADA, "k", [1])
    with pytest.raises(InvalidArgument, match=r"key 'k' holds a value that is no object, which put can replace"):
        await ledger.kv.put(ADA, "k", {"a": 1}, merge=True)


async def test_no_merge_undoes_another(database: Database, ledger: Ledger) -> None:
    """Through two ledgers, as two processes would, and from a key that is not there yet."""
    async with database.open() as other:

        async def merge(writer: int) -> None:
            for number in range(20):
                await (ledger, other)[writer % 2].kv.put(TENANT, "k", {f"{writer} {number}": number}, merge=True)

        await asyncio.gather(*map(merge, range(16)))
    found = await ledger.kv.get(TENANT, "k")
    assert found is not None
    assert set(found.value) == {f"{writer} {number}" for writer in range(16) for number in range(20)}


# --- With an append ---------------------------------------------------------------------------------------------------


async def texts(ledger: Ledger) -> list[str]:
    return [message.text for message in with_draft(await ledger.messages.history("t"))]


async def test_an_append_writes_values_with_its_messages(ledger: Ledger, thread: str) -> None:
    kv = {"b": {"step": 1}, "a": None, "c \0": "\ud800"}
    await ledger.messages.append("t", [user("1", message_id="m")], kv={**kv, "a": Put(kv["a"], expected=0)})
    stored = {one.key: one for one in await ledger.kv.list(THREAD)}
    assert {key: one.value for key, one in stored.items()} == kv
    again = await ledger.messages.append("t", [user("1", message_id="m")], kv={**kv, "a": Put(kv["a"], expected=0)})
    assert again.replayed
    assert {one.key: one for one in await ledger.kv.list(THREAD)} == stored
    version = stored["b"].version
    payload = [{"role": "assistant", "content": "2"}]
    await ledger.messages.append("t", Payload(payload, "openai-chat"), kv={"b": Put({"step": 2}, expected=version)})
    found = await ledger.kv.get(THREAD, "b")
    assert found is not None
    assert (found.value, found.version) == ({"step": 2}, version + 1)
    assert await texts(ledger) == ["1", "2"]


@pytest.mark.parametrize("warm", [True, False])
async def test_a_conflict_of_one_value_refuses_the_whole_append(
    database: Database, ledger: Ledger, thread: str, warm: bool
) -> None:
    held = await ledger.kv.put(THREAD, "k", 1)
    async with database.open() as other:
        writer = ledger if warm else other
        for expected, found in ((held.version + 1, held.version), (0, held.version)):
            with pytest.raises(VersionConflict, check=about("value")) as caught:
                kv = {"a": "new", "k": "new", "z": "new"}
                await writer.messages.append(
                    "t", [user("1")], run_id="r", kv={**kv, "k": Put(kv["k"], expected=expected)}
                )
            assert (caught.value.key, caught.value.expected, caught.value.actual) == ("k", expected, found)
        with pytest.raises(VersionConflict, check=about("value")):
            await writer.messages.append("t", [user("1")], kv={"none": Put(1, expected=7)})
    assert await values(ledger, THREAD) == {"k": 1}
    assert await texts(ledger) == []
    assert await ledger.runs.find("r") is None
    await ledger.messages.append("t", [user("1")], kv={"k": Put(2, expected=held.version)})
    assert (await texts(ledger), await values(ledger, THREAD)) == (["1"], {"k": 2})


async def test_a_conflict_in_a_transaction_leaves_it_usable(ledger: Ledger, thread: str) -> None:
    held = await ledger.kv.put(THREAD, "k", 1)
    async with ledger.begin() as tx:
        await tx.messages.append("t", [user("1")], kv={"k": Put(2, expected=held.version)})
        with pytest.raises(VersionConflict, check=about("value")) as caught:
            kv = {"a": 1, "k": 3}
            await tx.messages.append(
                "t", [ChatMessage(role="assistant", content="2")], kv={**kv, "k": Put(kv["k"], expected=0)}
            )
        assert (caught.value.key, caught.value.actual) == ("k", held.version + 1)
        await tx.kv.put(THREAD, "m", {"a": 1}, merge=True)
        await tx.messages.append("t", [ChatMessage(role="assistant", content="3")], kv={"n": Put(4, expected=0)})
    assert await texts(ledger) == ["1", "3"]
    assert await values(ledger, THREAD) == {"k": 2, "m": {"a": 1}, "n": 4}


@pytest.mark.parametrize("begins", [True, False], ids=["from 0", "from a version"])
async def test_of_eight_appends_that_expect_a_version_one_wins(
    database: Database, ledger: Ledger, thread: str, begins: bool
) -> None:
    """Each on a branch of its own, so that only the value stands between them; and through two ledgers."""
    for _ in range(7):
        await fork_at(scope_of(ledger), "t", 0, activate=False)
    async with database.open() as other:
        for number in range(20):
            key = f"k{number}" if begins else "k"
            found = await ledger.kv.get(THREAD, key)
            expected = 0 if found is None else found.version

            async def race(racer: int, key: str = key, expected: int = expected) -> bool:
                messages = (ledger, other)[racer % 2].messages
                try:
                    await messages.append(
                        "t",
                        [user(f"{key} {expected} {racer}")],
                        branch=racer,
                        rules="lenient",
                        kv={key: Put(racer, expected=expected), "last": racer},
                    )
                except VersionConflict as error:
                    return (error.key, error.expected, error.actual > expected) == (key, expected, True) and False
                return True

            won = await asyncio.gather(*map(race, range(8)))
            assert won.count(True) == 1
            stored = await values(ledger, THREAD)
            assert stored[key] == stored["last"] == won.index(True)
            lengths = [branch.last_seq for branch in await ledger.branches.list("t")]
            assert sum(lengths) == number + 1


async def test_eight_appends_at_the_end_of_one_branch_have_one_winner(
    database: Database, ledger: Ledger, thread: str
) -> None:
    async with database.open() as other:

        async def race(racer: int) -> bool:
            messages = (ledger, other)[racer % 2].messages
            try:
                await messages.append("t", [user(str(racer))], rules="lenient", kv={"k": Put(racer, expected=expected)})
            except VersionConflict:
                return False
            return True

        for number in range(20):
            found = await ledger.kv.get(THREAD, "k")
            expected = 0 if found is None else found.version
            won = await asyncio.gather(*map(race, range(8)))
            assert won.count(True) == 1
            assert await values(ledger, THREAD) == {"k": won.index(True)}
            assert len(await texts(ledger)) == number + 1


async def test_appends_with_values_that_wait_behind_each_other_are_all_stored(ledger: Ledger, thread: str) -> None:
    def append(number: int) -> Any:
        kv = {"k": number, f"k{number}": number} if number % 2 else None
        return ledger.messages.append("t", [user(str(number))], rules="lenient", kv=kv)

    await asyncio.gather(*map(append, range(32)))
    assert sorted(await texts(ledger)) == sorted(map(str, range(32)))
    stored = await values(ledger, THREAD)
    assert stored.pop("k") % 2
    assert stored == {f"k{number}": number for number in range(1, 32, 2)}


async def test_an_append_that_completes_a_partial_message_writes_values_too(ledger: Ledger, thread: str) -> None:
    await ledger.messages.append("t", [user("?")])
    for expected in (1, 0):
        partial = ChatMessage(role="assistant", content="a", message_id="m", state="partial")
        whole = ChatMessage(role="assistant", content="answer", message_id="m")
        if expected:
            await ledger.messages.append("t", [partial])
            with pytest.raises(VersionConflict, check=about("value")):
                await ledger.messages.append("t", [whole], kv={"k": Put(1, expected=expected)})
            assert await texts(ledger) == ["?", "a"]
        else:
            await ledger.messages.append("t", [whole], kv={"k": Put(1, expected=expected)})
    assert (await texts(ledger), await values(ledger, THREAD)) == (["?", "answer"], {"k": 1})


async def test_values_of_an_append_are_judged_before_it(database: Database) -> None:
    async with database.open(limits=Limits(bytes=200)) as ledger:
        await ledger.threads.create("t")
        append = ledger.messages.append
        with pytest.raises(InvalidArgument, match=r"^kv needs at least one message in the batch; to write"):
            await append("t", [], kv={"k": 1})
        with pytest.raises(InvalidArgument, match=r"^expected must be an int or None, not str$"):
            Put(1, expected="1")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match=r"^expected must be the version of the stored value, or 0"):
            Put(1, expected=-1)
        with pytest.raises(InvalidArgument, match=r"^kv\['k'\] is not valid: \$: set is not JSON$"):
            await append("t", [user("1")], kv={"k": {1}})
        with pytest.raises(InvalidArgument, match=r"^a key of kv must be a str, not int$"):
            await append("t", [user("1")], kv={1: 1})
        with pytest.raises(LimitExceeded, match=r"^bytes of an append: 246 given, at most 200 allowed"):
            await append("t", [user("1")], kv={"k": "x" * 200})
        with pytest.raises(LimitExceeded, match=r"^values of kv: 65 given, at most 64 allowed$"):
            await append("t", [user("1")], kv=dict.fromkeys(map(str, range(65))))
        await append("t", [user("1")], kv=dict.fromkeys(map(str, range(64)), 0))
        assert len(await ledger.kv.list(THREAD, limit=100)) == 64
        assert (await append("t", [], kv={})).last_seq == 1


# --- Deleted with what they belong to ---------------------------------------------------------------------------------


async def everywhere(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    await ledger.user("bob").threads.create("u")
    for scope in (*SCOPES, ("thread", "u"), ("user", "bob"), ("user", "t"), ("thread", "u", "t")):
        await ledger.kv.put(scope, "k", list(scope))


async def left(database: Database) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in await query(database, "SELECT kind, scope_id, namespace FROM kv")}


KEPT = {("thread", "u", ""), ("thread", "u", "t"), ("user", "bob", ""), ("user", "t", "")}
TENANTS = {("tenant", "", ""), ("tenant", "", "adk")}
ADAS = {("user", "ada", ""), ("user", "ada", "adk")}


async def test_the_values_of_a_thread_go_with_it(database: Database, ledger: Ledger) -> None:
    await everywhere(ledger)
    assert (await ledger.threads.delete("t")).rows["kv"] == 2
    assert await left(database) == KEPT | TENANTS | ADAS
    planned = await ledger.erasures.erase(("thread", "u"), dry_run=True)
    assert (planned.rows["kv"], (await ledger.erasures.erase(("thread", "u"))).rows["kv"]) == (2, 2)
    assert await left(database) == {("user", "bob", ""), ("user", "t", "")} | TENANTS | ADAS
    await ledger.threads.create("t")
    assert await values(ledger, THREAD) == {}


async def test_retention_takes_the_values_of_idle_threads(database: Database, ledger: Ledger) -> None:
    await everywhere(ledger)
    planned = await ledger.threads.delete_inactive(older_than=timedelta(0), dry_run=True)
    assert (planned.rows["kv"], (await ledger.threads.delete_inactive(older_than=timedelta(0))).rows["kv"]) == (4, 4)
    assert {row[0] for row in await left(database)} == {"tenant", "user"}


async def test_erasing_a_user_takes_her_values_and_those_of_her_threads(database: Database, ledger: Ledger) -> None:
    await everywhere(ledger)
    planned = await ledger.erasures.erase(("user", "ada"), dry_run=True)
    assert (planned.rows["kv"], (await ledger.erasures.erase(("user", "ada"))).rows["kv"]) == (4, 4)
    assert await left(database) == KEPT | TENANTS


async def test_erasing_a_tenant_takes_all_values_of_it(database: Database, ledger: Ledger) -> None:
    await everywhere(ledger)
    await ledger.tenant("other").kv.put(TENANT, "k", "stays")
    planned = await ledger.erasures.erase(("tenant",), dry_run=True)
    assert (planned.rows["kv"], (await ledger.erasures.erase(("tenant",))).rows["kv"]) == (10, 10)
    assert await query(database, "SELECT tenant_id FROM kv") == [("other",)]


async def test_no_value_outlives_its_thread(database: Database, ledger: Ledger) -> None:
    """Writers of values run beside the deletion: each value is deleted with the thread, or its write finds none."""
    async with database.open() as other:
        for number in range(10):
            await ledger.threads.create(f"t{number}")

            async def put(writer: int, scope: tuple[str, ...] = ("thread", f"t{number}")) -> None:
                try:
                    for step in range(4):
                        await (ledger, other)[writer % 2].kv.put(scope, f"{writer} {step}", 1)
                except ThreadNotFound:
                    pass

            async def delete(thread_id: str = f"t{number}") -> None:
                await asyncio.sleep(0.002)
                await ledger.threads.delete(thread_id)

            await asyncio.gather(delete(), *map(put, range(6)))
    assert await left(database) == set()


# --- Encrypted --------------------------------------------------------------------------------------------------------


async def test_values_are_encrypted_and_bound_to_their_place(database: Database) -> None:
    async with database.open(encryption=RING) as ledger, raw_connection(database) as run:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("1")], kv={"appended": "secret"})
        for scope in SCOPES:
            await ledger.kv.put(scope, "k", "secret")
        assert "secret" not in str(await run("SELECT value FROM kv"))
        await run("UPDATE kv SET value = 'null' WHERE kind = 'user'")
        with pytest.raises(
            EncryptionError, check=because("not-encrypted"), match=r"^kv\.value of 'user', 'ada', '', 'k': "
        ):
            await ledger.kv.get(ADA, "k")
        assert [type(error) for error in (await ledger.kv.list(ADA)).damaged] == [EncryptionError]
        await run("UPDATE kv SET value = '{' WHERE kind = 'thread'")
    async with database.open(encryption=None) as plain:
        with pytest.raises(DamagedCell, match=r"^kv\.value of 'thread', 't', 'adk', 'k': damaged"):
            await plain.kv.get((*THREAD, "adk"), "k")
