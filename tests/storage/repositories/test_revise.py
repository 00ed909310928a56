"""Revising: a stored message gets other words, in its place, and everything else stays."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import (
    ChatMessage,
    ImagePart,
    InvalidArgument,
    Ledger,
    Limits,
    Newest,
    Payload,
    RuleViolation,
    TextPart,
    ThinkPart,
    ThreadNotFound,
    ToolCall,
    Turns,
    VersionConflict,
)
from chatledger.errors import DraftLive, IdConflict, LimitExceeded, MessageNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.tables import metadata
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.leases import pass_time
from tests.storage.raw import query

STAYS = ("role", "seq", "branch", "message_id", "tool_call_id", "run_id", "created_at", "state", "is_error")


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn("m"), run_id="r")
    return ledger


async def stored(database: Database) -> str:
    tables = metadata.sorted_tables
    return repr([await query(database, f"SELECT * FROM {table.name}") for table in tables])


async def test_a_revised_message_is_read_with_its_new_words(asked: Ledger) -> None:
    before = (await asked.messages.history("t")).messages
    revised = await asked.messages.revise("t", "m0", user("And in Oslo?"))
    history = await asked.messages.history("t")
    assert history.messages == [revised, *before[1:]]
    assert (revised.text, history.last_seq) == ("And in Oslo?", 6)
    assert [getattr(revised, name) for name in STAYS] == [getattr(before[0], name) for name in STAYS]
    assert await asked.messages.get("t", "m0") == revised


NEW_WORDS: list[tuple[str, ChatMessage]] = [
    ("m0", user("", name="ada", custom_data={"a": 1}, response_metadata={"b": [2]})),
    ("m0", user("x", format="mine", residual={"r": 1})),
    ("m0", ChatMessage(role="user")),
    ("m0", ChatMessage(role="user", content=[TextPart(text="one"), ImagePart(url="https://x"), TextPart(text="two")])),
    ("m1", assistant("thought", reasoning="first", calls=[call("call_0", arguments="not JSON"), call("call_1")])),
    (
        "m1",
        assistant(
            reasoning=[ThinkPart(text="hm", signature="s")],
            calls=[
                ToolCall(id=None, name="weather", arguments={"city": "Oslo"}, extras={"e": 1}),
                ToolCall(id="call_1", name="weather"),
            ],
        ),
    ),
    ("m2", result("call_1", "rainy", name="weather")),
    ("m2", ChatMessage(role="tool", content=[TextPart(text="rainy")])),
    ("m4", assistant("nul \0 and half a pair \ud800", calls=None)),
    ("m4", assistant("empty calls", calls=[])),
]


@pytest.mark.parametrize(("message_id", "message"), NEW_WORDS)
async def test_any_words_can_be_given_and_taken_back(asked: Ledger, message_id: str, message: ChatMessage) -> None:
    before = await asked.messages.get("t", message_id)
    revised = await asked.messages.revise("t", message_id, message)
    for name in ("content", "reasoning", "name", "response_metadata", "custom_data", "format", "residual"):
        assert getattr(revised, name) == getattr(message, name)
    assert [(one.arguments, one.extras) for one in revised.tool_calls or ()] == [
        (one.arguments, one.extras) for one in message.tool_calls or ()
    ]
    assert await asked.messages.get("t", message_id) == revised
    assert await asked.messages.revise("t", message_id, before) == before
    assert (await asked.messages.history("t")).messages[(before.seq or 0) - 1] == before
    first, second = await asked.messages.revisions("t", message_id)
    assert (first.message, second.message) == (before, revised)


async def test_the_revisions_keep_the_earlier_form(asked: Ledger) -> None:
    assert await asked.messages.revisions("t", "m4") == []
    before = await asked.messages.get("t", "m4")
    for text in ("one", "two"):
        await asked.messages.revise("t", "m4", assistant(text))
    first, second = await asked.messages.revisions("t", "m4")
    assert (first.message, first.kind, first.branch, first.seq) == (before, "revised", 0, 6)
    assert second.message is not None
    assert (second.message.text, second.kind, second.branch, second.seq) == ("one", "revised", 0, 7)
    assert first.created_at <= second.created_at


async def test_the_row_counts_its_revisions(database: Database, asked: Ledger) -> None:
    for text in ("one", "two"):
        await asked.messages.revise("t", "m4", assistant(text))
    assert await query(database, "SELECT message_id, revision FROM messages WHERE revision IS NOT NULL") == [("m4", 2)]


async def test_each_change_takes_a_position_that_no_message_has(database: Database, asked: Ledger) -> None:
    await asked.messages.revise("t", "m0", user("one"))
    await asked.messages.revise("t", "m4", assistant("two"))
    said = await asked.messages.append("t", [user("next")])
    assert (said.messages[0].seq, said.last_seq) == (8, 8)
    assert await query(database, "SELECT last_seq, absent FROM branches") == [(8, 2)]
    assert [message.seq for message in (await asked.messages.history("t")).messages] == [1, 2, 3, 4, 5, 8]


async def test_equal_words_change_nothing(database: Database, asked: Ledger) -> None:
    revised = await asked.messages.revise("t", "m0", user("And in Oslo?"))
    before = await stored(database)
    assert await asked.messages.revise("t", "m0", user("And in Oslo?")) == revised
    assert await asked.messages.revise("t", "m0", revised) == revised
    assert await stored(database) == before


# --- The fields that stay ---------------------------------------------------------------------------------------------

CALLED = [call("call_0"), call("call_1")]
REFUSED: list[tuple[str, ChatMessage, str]] = [
    ("m0", assistant("x"), "message.role"),
    ("m0", user("x", message_id="m1"), "message.message_id"),
    ("m0", user("x", thread_id="u"), "message.thread_id"),
    ("m0", user("x", branch=1), "message.branch"),
    ("m0", user("x", seq=2), "message.seq"),
    ("m0", user("x", run_id="other"), "message.run_id"),
    ("m0", user("x", state="interrupted"), "message.state"),
    ("m0", ChatMessage(role="user", content="x", created_at="2020-01-01T00:00:00Z"), "message.created_at"),
    ("m2", result("call_0", "x"), "message.tool_call_id"),
    ("m2", result("call_1", "x", is_error=True), "message.is_error"),
    ("m1", assistant("x"), "message.tool_calls"),
    ("m1", assistant("x", calls=CALLED[:1]), "message.tool_calls"),
    ("m1", assistant("x", calls=[*CALLED, call("call_2")]), "message.tool_calls"),
    ("m1", assistant("x", calls=CALLED[::-1]), "message.tool_calls[0].id"),
    ("m1", assistant("x", calls=[CALLED[0], call("call_1", "time")]), "message.tool_calls[1].name"),
    ("m4", assistant("x", calls=[call("c")]), "message.tool_calls"),
]


@pytest.mark.parametrize(("message_id", "message", "argument"), REFUSED)
async def test_changing_a_field_that_must_stay_is_refused_by_name(
    database: Database, asked: Ledger, message_id: str, message: ChatMessage, argument: str
) -> None:
    before = await stored(database)
    with pytest.raises(InvalidArgument) as caught:
        await asked.messages.revise("t", message_id, message)
    assert caught.value.argument == argument
    assert await stored(database) == before


async def test_an_unknown_message_cannot_be_revised(asked: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await asked.messages.revise("u", "m0", user("x"))
    with pytest.raises(ThreadNotFound):
        await asked.messages.revisions("u", "m0")
    with pytest.raises(MessageNotFound):
        await asked.messages.revise("t", "m9", user("x"))
    with pytest.raises(MessageNotFound):
        await asked.messages.revisions("t", "m9")
    for other in (asked.tenant("other"),):
        with pytest.raises(ThreadNotFound):
            await other.messages.revise("t", "m0", user("x"))


async def test_a_revision_is_limited_as_an_append(database: Database, asked: Ledger) -> None:
    async with database.open(limits=Limits(bytes=100)) as limited:
        with pytest.raises(LimitExceeded):
            await limited.messages.revise("t", "m0", user("x" * 101))
        await limited.messages.revise("t", "m0", user("x" * 50))


async def test_arguments_that_are_not_json_are_recorded_and_refused_where_order_is_kept(
    database: Database, asked: Ledger
) -> None:
    broken = assistant(calls=[call("call_0", arguments="{"), call("call_1")])
    assert [one.rule for one in (await asked.messages.revise("t", "m1", broken)).violations] == ["R9"]
    mended = await asked.messages.revise("t", "m1", assistant(calls=CALLED))
    assert mended.violations == []
    assert (await asked.messages.get("t", "m1")).violations == []
    async with database.open(rules="ordered") as ordered:
        with pytest.raises(RuleViolation, match=r"^seq 2 of branch 0 breaks R13") as caught:
            await ordered.messages.revise("t", "m1", broken)
    assert (caught.value.rule, caught.value.index) == ("R13", 2)


async def test_a_violation_of_its_place_stays_recorded(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    said = [user("?"), assistant(calls=[call("c")]), user("!", message_id="m"), result("d", message_id="orphan")]
    await ledger.messages.append("t", said, rules="lenient")
    before = [await ledger.messages.get("t", id_) for id_ in ("m", "orphan")]
    assert [[one.rule for one in message.violations] for message in before] == [["R8"], ["R6"]]
    assert (await ledger.messages.revise("t", "m", user("?!"))).violations == before[0].violations
    assert (await ledger.messages.revise("t", "orphan", result("d", "rain"))).violations == before[1].violations


# --- Branches and writers ---------------------------------------------------------------------------------------------


async def test_every_branch_that_shares_the_message_follows(asked: Ledger) -> None:
    await fork_at(scope_of(asked), "t", 1)
    await fork_at(scope_of(asked), "t", 0)
    marks = [(await asked.branches.get("t", branch)).mark for branch in (0, 1, 2)]
    await asked.messages.revise("t", "m0", user("And in Oslo?"))
    for branch, version in ((0, 6), (1, 1)):
        history = await asked.messages.history("t", branch=branch)
        assert (history.messages[0].text, history.last_seq) == ("And in Oslo?", version)
    moved = [(await asked.branches.get("t", branch)).mark != mark for branch, mark in enumerate(marks)]
    assert moved == [True, True, False]
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [user("x")], expected=marks[1])


async def test_a_call_that_was_revised_is_answered(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("c")], message_id="m")])
    await ledger.messages.revise("t", "m", assistant("Let me see.", calls=[call("c", arguments='{"city": "Oslo"}')]))
    await ledger.messages.append("t", [result("c"), assistant("Sunny.")])
    assert texts(await ledger.messages.history("t")) == ["?", "Let me see.", "sunny", "Sunny."]


async def test_two_ledgers_revise_and_append_at_once(database: Database, asked: Ledger) -> None:
    async with database.open() as other:
        revisions = [
            ledger.messages.revise("t", "m0", user(f"{name} {number}"))
            for number in range(5)
            for name, ledger in (("a", asked), ("b", other))
        ]
        appends = [ledger.messages.append("t", turn()) for ledger in (asked, other) for _ in range(3)]
        await asyncio.gather(*revisions, *appends)
    history = await asked.messages.history("t")
    assert (history.last_seq, len(history.messages)) == (5 + 10 + 30, 35)
    changes = await asked.messages.revisions("t", "m0")
    said = {f"{name} {number}" for name in "ab" for number in range(5)}
    assert {change.message.text for change in changes[1:] if change.message} | {history.messages[0].text} == said
    taken = {change.seq for change in changes} | {message.seq for message in history.messages}
    assert taken == set(range(1, 46))


async def test_a_live_draft_at_the_end_keeps_its_branch(asked: Ledger) -> None:
    async with asked.messages.stream("t", message=ChatMessage.assistant(message_id="live")) as draft:
        await draft.feed("piece")
        await draft.flush()
        for id_, message in (("m0", user("x")), ("live", assistant("x"))):
            with pytest.raises(DraftLive) as caught:
                await asked.messages.revise("t", id_, message)
            assert caught.value.message_id == "live"
    assert texts(await asked.messages.history("t"))[-1] == "piece"


async def test_a_draft_on_a_fork_goes_on_beside_a_revision(asked: Ledger) -> None:
    await fork_at(scope_of(asked), "t", 5)
    async with asked.messages.stream("t", message=ChatMessage.assistant(message_id="live")) as draft:
        await draft.feed("one ")
        await draft.flush()
        await asked.messages.revise("t", "m0", user("And in Oslo?"))
        await draft.feed("two")
    history = await asked.messages.history("t")
    assert (history.branch, texts(history)[0], texts(history)[-1]) == (1, "And in Oslo?", "one two")


async def test_an_abandoned_message_is_interrupted_first_and_not_itself_revised(asked: Ledger) -> None:
    partial = assistant("half", message_id="half", state="partial", calls=[call("c")])
    await asked.messages.append("t", [partial])
    await pass_time(asked, 11)
    with pytest.raises(InvalidArgument, match=r"drafts\.interrupt"):
        await asked.messages.revise("t", "half", assistant("whole", calls=[call("c")]))
    await asked.messages.revise("t", "m0", user("And in Oslo?"))
    history = await asked.messages.history("t")
    assert [message.state for message in history.messages[-2:]] == ["interrupted", "synthetic"]
    revised = await asked.messages.revise("t", "half", assistant("half!", calls=[call("c")]))
    assert (revised.state, revised.text) == ("interrupted", "half!")


# --- Retries ----------------------------------------------------------------------------------------------------------


async def test_a_repeat_of_any_form_that_was_stored_is_a_replay(asked: Ledger) -> None:
    forms = [turn("m")[0], *(user(text, message_id="m0") for text in ("one", "two"))]
    for form in forms[1:]:
        await asked.messages.revise("t", "m0", form)
    now = (await asked.messages.history("t")).messages
    for form in forms:
        again = await asked.messages.append("t", [form, *turn("m")[1:]], run_id="r")
        assert (again.replayed, list(again.messages)) == (True, now)
    with pytest.raises(IdConflict, match="other content"):
        await asked.messages.append("t", [user("three", message_id="m0"), *turn("m")[1:]], run_id="r")


async def test_a_repeat_by_key_of_a_revised_append_is_a_replay(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    first = await ledger.messages.append("t", turn(), idempotency_key="k")
    revised = await ledger.messages.revise("t", first.messages[4].message_id or "", assistant("Rain."))
    again = await ledger.messages.append("t", turn(), idempotency_key="k")
    assert (again.replayed, again.messages[4]) == (True, revised)


# --- Redaction --------------------------------------------------------------------------------------------------------

CANARY = "canary"


async def test_a_redaction_covers_the_revisions(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    forms = [user(f"{CANARY} {number}", message_id="m", custom_data={"c": CANARY}) for number in range(3)]
    await ledger.messages.append("t", forms[:1])
    for form in forms[1:]:
        await ledger.messages.revise("t", "m", form)
    redacted = await erase_at(scope_of(ledger), "t", 1)
    assert CANARY not in await stored(database)
    assert [(one.kind, one.message) for one in await ledger.messages.revisions("t", "m")] == [("revised", None)] * 2
    for form in forms:
        again = await ledger.messages.append("t", [form])
        assert (again.replayed, list(again.messages)) == (True, [redacted])
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [user(f"{CANARY} 3", message_id="m", custom_data={"c": CANARY})])
    assert CANARY not in await stored(database)


async def test_a_redacted_message_can_have_words_again_and_lose_them(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    first, second = (user(f"{CANARY} {number}", message_id="m") for number in range(2))
    await ledger.messages.append("t", [first])
    redacted = await erase_at(scope_of(ledger), "t", 1)
    revised = await ledger.messages.revise("t", "m", second)
    assert revised.violations == []
    (change,) = await ledger.messages.revisions("t", "m")
    assert change.message == redacted
    for form in (first, second):
        assert (await ledger.messages.append("t", [form])).messages[0] == revised
    await erase_at(scope_of(ledger), "t", 1)
    assert CANARY not in await stored(database)
    for form in (first, second):
        assert (await ledger.messages.append("t", [form])).replayed


async def test_an_erasure_covers_the_revisions(database: Database, asked: Ledger) -> None:
    await asked.messages.revise("t", "m0", user("And in Oslo?"))
    erasure = await asked.erasures.erase(("thread", "t"))
    assert erasure.rows["revisions"] == 1
    assert await query(database, "SELECT count(*) FROM revisions") == [(0,)]


# --- Readers ----------------------------------------------------------------------------------------------------------


async def test_a_format_writes_the_new_words_without_the_old_payload(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    payload = [{"role": "user", "content": CANARY, "own_field": CANARY}]
    said = await ledger.messages.append("t", Payload(payload, "openai-chat"))
    id_ = said.messages[0].message_id or ""
    assert (await ledger.messages.history("t")).encode("openai-chat").payload == payload
    await ledger.messages.revise("t", id_, user("And in Oslo?"))
    said_now = [{"role": "user", "content": "And in Oslo?"}]
    assert (await ledger.messages.history("t")).encode("openai-chat").payload == said_now
    assert (await ledger.messages.prompt("t", "openai-chat")).payload == said_now


async def test_the_view_shows_the_new_words(database: Database) -> None:
    async with database.open(encryption=None) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("old", message_id="m")])
        await ledger.messages.revise("t", "m", user("new"))
        assert await query(database, "SELECT text FROM transcript") == [("new",)]


# --- Removed messages -------------------------------------------------------------------------------------------------


async def remove(ledger: Ledger, how: str) -> None:
    if how == "pop":
        await ledger.messages.pop("t")
    else:
        await ledger.messages.remove("t", "m")


@pytest.mark.parametrize("how", ["pop", "retract"])
@pytest.mark.parametrize("redacted_first", [True, False])
async def test_the_words_of_a_removed_message_are_redacted_by_its_seq(
    database: Database, ledger: Ledger, how: str, redacted_first: bool
) -> None:
    await ledger.threads.create("t")
    forms = [user(f"{CANARY} {number}", message_id="m") for number in range(2)]
    await ledger.messages.append("t", forms[:1])
    await ledger.messages.revise("t", "m", forms[1])
    if redacted_first:
        await erase_at(scope_of(ledger), "t", 1)
        await remove(ledger, how)
    else:
        await remove(ledger, how)
        assert [change.message and change.message.text for change in await ledger.messages.revisions("t", "m")] == [
            f"{CANARY} 0",
            f"{CANARY} 1",
        ]
        await erase_at(scope_of(ledger), "t", 1)
    assert CANARY not in await stored(database)
    revised, removed = await ledger.messages.revisions("t", "m")
    assert (revised.message, removed.kind) == (None, "popped" if how == "pop" else "retracted")
    assert removed.message == await erase_at(scope_of(ledger), "t", 1)
    assert removed.message.text == "[redacted]"
    with pytest.raises(MessageNotFound):
        await ledger.messages.revise("t", "m", user("x"))


@pytest.mark.parametrize("shared", [1, 2])
async def test_the_words_of_a_message_that_left_a_branch_beside_a_fork_are_redacted(
    database: Database, ledger: Ledger, shared: int
) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?", message_id="first"), assistant(CANARY, message_id="m")])
    await fork_at(scope_of(ledger), "t", shared, activate=False)
    for _ in range(2):  # what the fork shares leaves a gap in the lineage
        await ledger.messages.pop("t")
    for seq in (0, 3, 4, 5, 2**70):  # the changes have no words
        with pytest.raises(MessageNotFound):
            await erase_at(scope_of(ledger), "t", seq)
    foreseen = await erase_at(scope_of(ledger), "t", 2, dry_run=True)
    redacted = await erase_at(scope_of(ledger), "t", 2)
    assert (foreseen.text, redacted.text, redacted.message_id) == ("[redacted]", "[redacted]", "m")
    assert CANARY not in await stored(database)
    in_fork = (await ledger.messages.history("t", branch=1)).messages
    assert [message.text for message in in_fork] == ["?", "[redacted]"][:shared]


@pytest.mark.parametrize("redacted_first", [True, False])
async def test_a_repeat_by_key_of_a_popped_and_redacted_message_is_a_replay(
    database: Database, ledger: Ledger, redacted_first: bool
) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user(CANARY)], idempotency_key="k")
    if redacted_first:
        await erase_at(scope_of(ledger), "t", 1)
    await ledger.messages.pop("t")
    redacted = await erase_at(scope_of(ledger), "t", 1)
    again = await ledger.messages.append("t", [user(CANARY)], idempotency_key="k")
    assert (again.replayed, list(again.messages)) == (True, [redacted])
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [user(f"{CANARY}!")], idempotency_key="k")
    assert CANARY not in await stored(database)
    assert (await ledger.messages.history("t")).messages == []


async def test_windows_and_check_pass_over_the_positions_of_revisions(asked: Ledger) -> None:
    for text in ("one", "two"):
        await asked.messages.revise("t", "m0", user(text))
        await asked.messages.append("t", [user(text), assistant("!")])
    messages = (await asked.messages.history("t")).messages
    assert [message.seq for message in messages] == [1, 2, 3, 4, 5, 7, 8, 10, 11]
    assert (await asked.messages.history("t", Turns(2))).messages == messages[5:]
    assert (await asked.messages.history("t", Newest(2))).messages == messages[7:]
    assert (await asked.messages.history("t", Newest(3, before=10), branch=0)).messages == messages[4:7]
    assert [message async for message in asked.messages.iterate("t")] == messages
    assert [one for one in await findings_of(asked, "t") if one.severity == "error"] == []
    branch = await fork_at(scope_of(asked), "t", 9)
    assert (await asked.messages.history("t", branch=branch.branch)).messages == messages[:7]
