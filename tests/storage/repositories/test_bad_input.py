"""Bad input of every kind, on both databases. Bad files are tested elsewhere."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import ValidationError

import chatledger
import chatledger.admin
from chatledger import (
    ChatMessage,
    Feedback,
    InvalidArgument,
    Ledger,
    Oldest,
    Payload,
    RuleViolation,
    StorageError,
    ThreadNotFound,
    ToolCall,
)
from chatledger.errors import (
    BranchNotFound,
    DecodeError,
    IdConflict,
    LimitExceeded,
    MessageNotFound,
    RunConflict,
    RunNotFound,
    SchemaMismatch,
)
from chatledger.models import LENIENT
from chatledger.models.json import MAX_DEPTH, same_json
from chatledger.storage.upgrade.versions import HEAD
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user

NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture
async def t(ledger: Ledger) -> str:
    return (await ledger.threads.create("t")).thread_id


def rules_broken(messages: list[ChatMessage]) -> list[list[str]]:
    return [[violation.rule for violation in message.violations] for message in messages]


# --- What a model sees when it is built -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "built",
    [
        lambda: ChatMessage(role="robot", content="x"),
        lambda: user("x", created_at=datetime(2024, 5, 1)),  # noqa: DTZ001 - that is the case
        lambda: Feedback(run_id="r", key="k", score=NAN),
        lambda: Feedback(run_id="r", key="k", score=-INFINITY),
        lambda: Feedback(run_id="r", key="", score=1),
        lambda: Feedback(run_id="r", key="k", score=1, created_at=datetime(2024, 5, 1)),  # noqa: DTZ001
        lambda: user("x", custom_data={"a": (1, 2)}),
        lambda: user("x", custom_data={1: "a"}),
        lambda: user("x", custom_data={"a": object()}),
        lambda: ChatMessage(role="user", content=7),
        lambda: ChatMessage(role="user", text="x"),  # type: ignore[call-arg]
    ],
)
def test_a_model_refuses_bad_fields_when_it_is_built(built: Any) -> None:
    with pytest.raises(ValidationError):
        built()


async def test_an_unknown_role_is_kept_as_text_in_lenient(ledger: Ledger, t: str) -> None:
    robot = ChatMessage.model_validate({"role": "robot \0", "content": "x"}, context=LENIENT)
    with pytest.raises(RuleViolation, match="R3"):
        await ledger.messages.append(t, [robot])
    await ledger.messages.append(t, [robot], rules="lenient")
    (stored,) = (await ledger.messages.history(t)).messages
    assert (stored.role, rules_broken([stored])) == ("robot \0", [["R3"]])


# --- Rules ------------------------------------------------------------------------------------------------------------

CALLS = [user("?"), assistant(calls=[call("a"), call("b")])]


@pytest.mark.parametrize(
    ("refused", "rule"),
    [
        (result("orphan"), "R6"),
        (result("a", "second"), "R7"),
        (user("and?"), "R8"),
    ],
)
async def test_lenient_records_the_violations_that_strict_refuses(
    ledger: Ledger, t: str, refused: ChatMessage, rule: str
) -> None:
    await ledger.messages.append(t, [*CALLS, result("a")])
    before = (await ledger.messages.history(t)).messages
    with pytest.raises(RuleViolation) as caught:
        await ledger.messages.append(t, [refused, user("never stored")])
    assert (caught.value.rule, caught.value.index) == (rule, 0)
    assert (await ledger.messages.history(t)).messages == before
    await ledger.messages.append(t, [refused], rules="lenient")
    (stored,) = (await ledger.messages.history(t, Oldest(1_000, after=3), branch=0)).messages
    assert (stored.text, rules_broken([stored])) == (refused.text, [[rule]])


# --- Ids --------------------------------------------------------------------------------------------------------------


async def test_the_same_id_with_other_content_is_a_conflict(ledger: Ledger, t: str) -> None:
    await ledger.messages.append(t, [user("a", message_id="m"), assistant("b", message_id="n")])
    for changed in (
        assistant("c", message_id="n"),
        assistant("b", message_id="n", name="x"),
        user("b", message_id="n"),
    ):
        with pytest.raises(IdConflict) as caught:
            await ledger.messages.append(t, [changed])
        assert (caught.value.what, caught.value.id, caught.value.seq) == ("message", "n", 2)


async def test_unknown_ids_are_not_found(ledger: Ledger, t: str) -> None:
    calls: dict[type[Exception], list[Any]] = {
        ThreadNotFound: [
            lambda: ledger.threads.get("x"),
            lambda: ledger.messages.append("x", turn()),
            lambda: ledger.messages.history("x"),
        ],
        BranchNotFound: [
            lambda: ledger.messages.append(t, turn(), branch=1),
            lambda: ledger.messages.history(t, branch=1),
        ],
        MessageNotFound: [lambda: ledger.messages.get(t, "x")],
        RunNotFound: [
            lambda: ledger.runs.get("x"),
            lambda: ledger.runs.finish("x", status="completed"),
            lambda: ledger.feedback.record(Feedback(run_id="x", key="k", score=1)),
        ],
    }
    for error, unknown in calls.items():
        for called in unknown:
            with pytest.raises(error):
                await called()


async def test_a_run_of_another_thread_is_a_conflict(ledger: Ledger, t: str) -> None:
    await ledger.threads.create("u")
    await ledger.messages.append("u", turn(), run_id="r")
    for runs in ({"run_id": "r"}, {"run_id": "s"}):
        with pytest.raises(RunConflict) as caught:
            await ledger.messages.append(t, [user("a", run_id="r"), assistant("b")], **runs)  # type: ignore[arg-type]
        assert caught.value.run_id == "r"
    assert (await ledger.messages.history(t)).last_seq == 0
    assert await ledger.runs.find("s") is None


# --- Text -------------------------------------------------------------------------------------------------------------

TEXTS = {
    "NUL": "a\0b\0",
    "lone surrogates": "\ud800 and \udfff",
    "a pair that is not one": "\ud83d\ude00",
    "emoji": "🌦 👩‍👩‍👧‍👧",
    "quotes": "'\"`$$; DROP TABLE messages; --",
    "slashes": "a/b\\c\\u0000\\",
    "parameters": ":tenant $1 %s ? {schema}",
    "the mark of the codec": "\ue000\\u0000",
    "spaces": " \t\r\n\u2028 ",
    "other normal forms": "e\u0301 \u00e9",
    "the last character": "\U0010ffff\ufffe\ufeff",
    "a call id of 4,600 characters": "".join(chr(33 + n * 7919 % 90) for n in range(4_600)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
async def test_any_text_is_stored_as_it_is(ledger: Ledger, text: str) -> None:
    """In every field that takes text, ids that are keys included where they are not too long."""
    key = text if len(text) < 80 else "t"
    given = [
        user(text, name=text, message_id=f"{key}1", run_id=key, custom_data={text: [text]}),
        assistant(text, calls=[ToolCall(id=text, name=text, arguments=text, extras={text: text})], reasoning=text),
        result(text, text, name=text, residual=text, format=text, response_metadata={text: text}),
    ]
    await ledger.user(key).threads.create(key, title=text, metadata={text: text})
    stored = (await ledger.messages.append(key, given, run_id=key)).messages
    history = await ledger.user(key).messages.history(key, run_id=key)
    assert history.messages == stored
    assert rules_broken(stored) == [[], ["R9"], []]
    for before, after in zip(given, stored, strict=True):
        assert after.model_dump(include=before.model_fields_set) == before.model_dump(include=before.model_fields_set)
    assert (await ledger.messages.get(key, f"{key}1")).text == text
    found = await ledger.user(key).threads.get(key)
    assert (found.thread_id, found.title, found.metadata) == (key, text, {text: text})


async def test_ten_megabytes_are_stored_as_they_are(ledger: Ledger, t: str) -> None:
    text = "Grüße 🌦 " * (10 * 2**20 // 14)
    assert len(text.encode()) >= 9 * 2**20
    await ledger.messages.append(t, [user(text), assistant(text[:1000], reasoning=text)])
    stored = (await ledger.messages.history(t)).messages
    assert (stored[0].content == text, stored[1].reasoning == text) == (True, True)


# --- Limits -----------------------------------------------------------------------------------------------------------


async def test_a_thousand_messages_are_stored_and_one_more_is_refused(ledger: Ledger, t: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        await ledger.messages.append(t, turn() * 200 + [user("x")])
    assert (caught.value.given, caught.value.maximum) == (1_001, 1_000)
    assert (await ledger.messages.append(t, turn() * 200)).last_seq == 1_000


async def test_more_than_64_mebibytes_are_refused(ledger: Ledger, t: str) -> None:
    half = "x" * (32 * 2**20)
    with pytest.raises(LimitExceeded) as caught:
        await ledger.messages.append(t, [user(half), assistant(half)])
    assert caught.value.maximum == 64 * 2**20
    assert (await ledger.messages.history(t)).last_seq == 0


@pytest.mark.parametrize("key", ["", "x" * 513, "ä" * 257, "\0" * 86], ids=["empty", "ascii", "utf-8", "escaped"])
async def test_a_key_over_512_bytes_is_refused_wherever_it_is_written(ledger: Ledger, t: str, key: str) -> None:
    await ledger.runs.start(t, run_id="r")
    stars = Feedback(run_id="r", key="k", score=1)
    writes = (
        lambda: ledger.threads.create(key),
        lambda: ledger.user(key).threads.create("u"),
        lambda: ledger.messages.append(t, [user("x", message_id=key)]),
        lambda: ledger.messages.append(t, [user("x")], run_id=key),
        lambda: ledger.messages.append(key, [user("x")]),
        lambda: ledger.runs.start(t, run_id=key),
        lambda: ledger.feedback.record(stars, idempotency_key=key),
        lambda: ledger.messages.append(t, [user("?")], idempotency_key=key),
        lambda: ledger.feedback.record(stars.model_copy(update={"run_id": key})),
    )
    for write in writes:
        with pytest.raises(LimitExceeded) as caught:
            await write()
        assert caught.value.maximum == 512
    with pytest.raises(LimitExceeded):
        ledger.tenant(key)
    assert await ledger.threads.find("u") is None


async def test_keys_of_512_bytes_fit_in_every_index(ledger: Ledger) -> None:
    """Not compressible, all in one index row: what PostgreSQL refuses is over 2,704 bytes."""
    keys = ["".join(chr(33 + (n * n * step) % 93) for n in range(512)) for step in (7, 11, 13, 17, 19, 23)]
    tenant = ledger.tenant(keys[0])
    await tenant.user(keys[2]).threads.create(keys[1])
    await tenant.messages.append(keys[1], [user("x", message_id=keys[3])], run_id=keys[4])
    stars = Feedback(run_id=keys[4], key="k", score=1, feedback_id=keys[5], message_id=keys[3])
    await tenant.feedback.record(stars, idempotency_key=keys[0])
    assert (await tenant.messages.history(keys[1], run_id=keys[4])).messages[0].message_id == keys[3]
    assert [one.feedback_id for one in await tenant.feedback.list(events=True, thread_id=keys[1])] == [keys[5]]


# --- JSON and arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [
        ('{"city": "Tokyo", "city": "Lima"}', []),
        ('{"n": 1e400, "m": NaN, "k": 10000000000000000000000000000000}', []),
        ('{"city": "Tok', ["R9"]),
        ("", ["R9"]),
        ("[" * 100_000, ["R9"]),
        ({"b": 1, "a": [1e2, -0.0]}, []),
    ],
)
async def test_arguments_are_kept_verbatim(ledger: Ledger, t: str, arguments: Any, recorded: list[str]) -> None:
    await ledger.messages.append(t, [user("?"), assistant(calls=[call("a", arguments=arguments)])])
    stored = (await ledger.messages.history(t)).messages[1]
    assert stored.tool_calls is not None
    assert repr(stored.tool_calls[0].arguments) == repr(arguments)
    assert rules_broken([stored]) == [recorded]


async def test_numbers_are_kept_as_they_are_spelled(ledger: Ledger, t: str) -> None:
    numbers = {"b": [NAN, INFINITY, -INFINITY, 1e400, 10**30, -(10**400), -0.0, 1e2, 100, 5e-324, True, 1], "a": -0.0}
    extra = {"custom_data": numbers, "response_metadata": numbers, "residual": numbers}
    await ledger.messages.append(t, [user("x", **extra)])
    await ledger.threads.update(t, metadata=numbers)
    (stored,) = (await ledger.messages.history(t)).messages
    metadata = (await ledger.threads.get(t)).metadata
    for kept in (stored.custom_data, stored.response_metadata, stored.residual, metadata):
        assert repr(kept) == repr(numbers)


def nested(depth: int) -> Any:
    value: Any = []
    for level in range(depth - 1):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


async def test_json_up_to_500_deep_is_kept(ledger: Ledger, t: str) -> None:
    deep = nested(MAX_DEPTH - 1)
    await ledger.messages.append(t, [user("x", custom_data=deep, residual=deep)])
    (stored,) = (await ledger.messages.history(t)).messages
    assert same_json([stored.custom_data, stored.residual], [deep, deep])


async def test_deeper_json_is_refused(ledger: Ledger, t: str) -> None:
    with pytest.raises(ValidationError):
        user("x", custom_data=nested(10_000))
    with pytest.raises(DecodeError):
        await ledger.messages.append(t, Payload([{"role": "user", "content": "x", "odd": nested(501)}], "openai-chat"))
    assert (await ledger.messages.history(t)).last_seq == 0


async def test_a_number_that_python_will_not_write_is_refused(ledger: Ledger, t: str) -> None:
    """Of more than 4,300 digits: Python guards the conversion, whose time grows with the square."""
    with pytest.raises(ValidationError):
        user("x", custom_data={"n": 10**5_000})
    with pytest.raises(InvalidArgument, match="metadata is not valid: "):
        await ledger.threads.update(t, metadata={"n": -(10**5_000)})


# --- The database -----------------------------------------------------------------------------------------------------


async def test_a_file_locked_beyond_the_time_out_is_a_retryable_error(
    sqlite_database: Database,
) -> None:
    async with sqlite_database.open(timeout=0.05) as ledger:
        await ledger.threads.create("t")
        other = sqlite3.connect(sqlite_database.url, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for write in (lambda: ledger.messages.append("t", turn()), lambda: ledger.threads.create("u")):
            with pytest.raises(StorageError) as caught:
                await write()  # type: ignore[no-untyped-call]
            assert caught.value.retryable
        assert (await ledger.messages.history("t")).last_seq == 0
        other.execute("ROLLBACK")
        other.close()
        assert (await ledger.messages.append("t", turn())).last_seq == 5


async def test_a_row_locked_beyond_the_time_out_is_a_retryable_error(pg_database: Database) -> None:
    other = await asyncpg.connect(pg_database.url)
    name = pg_database.url.rpartition("/")[2]
    await other.execute(f"ALTER DATABASE \"{name}\" SET lock_timeout = '20ms'")
    async with pg_database.open() as ledger:
        await ledger.threads.create("t")
        async with other.transaction():
            await other.execute("SELECT FROM chatledger.branches FOR UPDATE")
            with pytest.raises(StorageError) as caught:
                await ledger.messages.append("t", turn())
            assert caught.value.retryable
        assert (await ledger.messages.append("t", turn())).last_seq == 5
    await other.close()


async def test_a_missing_database_is_an_error_that_names_it(tmp_path: Path, pg_database: Database) -> None:
    unreachable = "postgresql://nobody@127.0.0.1:1/nothing"
    unknown = pg_database.url + "_that_is_not_there"
    for url, said in (
        (str(tmp_path / "no" / "folder.db"), f"cannot open {tmp_path}/no/folder.db: the folder "),
        (str(tmp_path), f"cannot open {tmp_path}: it is a folder"),
        (unreachable, "the connection failed: "),
        (unreachable, ", at postgresql://nobody@127.0.0.1:1/nothing"),
        (unknown, "_that_is_not_there"),
        ("mysql://x/y", "mysql is not supported"),
    ):
        with pytest.raises(StorageError, match=re.escape(said)):
            await Ledger.open(url)


async def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(b"Dear diary, " * 1_000)
    for use in (lambda: Ledger.open(path), lambda: asyncio.to_thread(chatledger.admin.schema_status, path)):
        with pytest.raises(StorageError, match=re.escape(f"{path} is not a SQLite database")):
            await use()
    with pytest.raises(StorageError, match=re.escape(f"{path} is not a SQLite database")):
        chatledger.admin.restore(path, tmp_path / "other.db")
    assert path.read_bytes() == b"Dear diary, " * 1_000


async def test_parameters_of_a_url_are_read_as_other_tools_read_them(pg_database: Database) -> None:
    async with Ledger.open(f"{pg_database.url}?sslmode=disable&application_name=mine&work_mem=5MB") as ledger:
        await ledger.threads.create("t")
        told = await ledger._scope.read(
            lambda sql: sql.fetch("SELECT current_setting('application_name'), current_setting('work_mem')", {})
        )
        assert [tuple(row) for row in told] == [("mine", "5MB")]
    with pytest.raises(StorageError, match="wrong_mem"):
        await Ledger.open(f"{pg_database.url}?wrong_mem=5MB")


async def test_the_migrate_command_has_the_url_as_it_was_given(pg_url: str) -> None:
    given = pg_url.replace("//chatledger@", "//chatledger:s3cret@") + "?sslmode=disable"
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(given)
    assert caught.value.command == f"chatledger migrate --url '{given.replace('s3cret', '***')}'"


async def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path, pg_url: str) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.commit()
    for url in (str(path), pg_url):
        with pytest.raises(SchemaMismatch) as caught:
            await Ledger.open(url)
        assert (caught.value.found, caught.value.expected) == (None, HEAD)
        assert caught.value.command.startswith("chatledger migrate --url ")
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("orders",)]
    connection.close()


# --- Lifetimes --------------------------------------------------------------------------------------------------------


async def test_a_transaction_that_has_ended_says_so(ledger: Ledger, t: str) -> None:
    async with ledger.begin() as tx:
        await tx.messages.append(t, turn())
    for late in (lambda: tx.messages.append(t, turn()), lambda: tx.messages.history(t)):
        with pytest.raises(StorageError, match="this transaction has ended"):
            await late()


def test_a_ledger_that_was_not_awaited_says_so(tmp_path: Path) -> None:
    opening = Ledger.open(tmp_path / "ledger.db")
    with pytest.raises(AttributeError, match=r"no 'threads' before the ledger is open: `await` this"):
        _ = opening.threads  # type: ignore[attr-defined]
