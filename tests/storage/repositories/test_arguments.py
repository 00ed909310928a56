"""Every argument of every public call, given something else than its annotation says: refused by name, before all else.

The calls and their arguments are read from the signatures, so one that is added is tried as well.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncConnection

from chatledger import (
    ChatLedgerError,
    ChatMessage,
    InvalidArgument,
    Ledger,
    Limits,
    Newest,
    Oldest,
    Tokens,
    Transaction,
    Turns,
    admin,
)
from chatledger.errors import LimitExceeded
from chatledger.repositories import Repositories, scope_of
from chatledger.repositories.branches import BranchRepository
from chatledger.repositories.drafts import DraftRepository
from chatledger.repositories.erasures import ErasureRepository
from chatledger.repositories.feedback import FeedbackRepository
from chatledger.repositories.kv import KvRepository
from chatledger.repositories.messages import MessageRepository
from chatledger.repositories.runs import RunRepository
from chatledger.repositories.threads import ThreadRepository
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories.branches import advance
from tests.conversations import turn

NOUNS = {
    "branches": BranchRepository,
    "erasures": ErasureRepository,
    "feedback": FeedbackRepository,
    "kv": KvRepository,
    "messages": MessageRepository,
    "drafts": DraftRepository,
    "runs": RunRepository,
    "threads": ThreadRepository,
}
JUDGED_ELSEWHERE = {
    "object",  # a payload: its format says what is wrong
    "JsonValue",  # this and what follows by a model, when it is built
    "datetime | None",
    "Feedback | Any",
    "Scope",  # this and what follows are ours
    "LedgerGuard",
}
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "str": "t",
    "int": 0,
    "RunStatus": "completed",
    "FrameTable": "messages",
    "ChatMessage": ChatMessage(role="user"),
    "Sequence[ChatMessage]": [],
    "AsyncConnection": AsyncConnection.__new__(AsyncConnection),
    "KvScope": ("tenant",),
    "Messages": [],
    "PromptFormat": "openai-chat",
    "ChatMessage | str": "m",
    "Owner": ("tenant",),
    "Sequence[KvScope]": [],
    "dict[str, Any]": {},
    "Address": "t.db",
    "str | os.PathLike[str]": "u.db",
}
"""The values of the other arguments that a call needs."""


def calls() -> Iterator[tuple[str, Any]]:
    """The public calls, by their names."""
    classes = {"": Repositories, "ledger": Ledger, **NOUNS}
    for place, kind in classes.items():
        for name, value in vars(kind).items():
            if not name.startswith("_") and inspect.isroutine(value):
                yield f"{place}.{name}".lstrip("."), getattr(kind, name)
    yield "transaction", Transaction
    for name in ("migrate", "schema_status", "offline_sql", "backup", "restore"):
        yield f"admin.{name}", getattr(admin, name)


CALLS = dict(calls())


def judged(name: str) -> list[str]:
    """The arguments of a call that are judged where they are given."""
    parameters = inspect.signature(CALLS[name]).parameters.values()
    return [one.name for one in parameters if one.name != "self" and one.annotation not in JUDGED_ELSEWHERE]


async def make(ledger: Ledger, name: str, argument: str, value: object) -> None:
    place, _, own = name.rpartition(".")
    target = getattr(ledger, place, ledger) if place in ("", "ledger", *NOUNS) else admin
    call: Any = Transaction if name == "transaction" else getattr(target, own)
    asked = [one for one in inspect.signature(call).parameters.values() if one.default is one.empty]
    given = {one.name: GIVEN.get(one.annotation) for one in asked} | {argument: value}
    done = call(**given)
    if inspect.isawaitable(done):
        await done


@pytest.mark.parametrize("name", [name for name in CALLS if judged(name)])
async def test_an_argument_of_another_type_is_refused_by_its_name(name: str) -> None:
    async with Ledger.open(":memory:") as ledger:
        for argument in judged(name):
            with pytest.raises(InvalidArgument, match=f"^{argument} must be .* not object$") as caught:
                await make(ledger, name, argument, object())
            assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"branch": "a"}, "branch must be an int or None, not str"),
        ({"run_id": 5}, "run_id must be a str or None, not int"),
        ({"window": 5}, "window must be Newest, Oldest, Turns or Tokens, not int"),
        ({"thread_id": None}, "thread_id must be a str, not None"),
    ],
)
async def test_a_wrong_window_argument_says_what_is_expected(ledger: Ledger, given: dict[str, Any], text: str) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    with pytest.raises(InvalidArgument) as caught:
        await ledger.messages.history(**({"thread_id": "t"} | given))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda any_: Oldest(any_("3")), "count must be an int, not str"),
        (
            lambda any_: Newest(3, before=any_(2.5)),
            "before must be a cursor, a mark or a seq; a message has .seq, not float",
        ),
        (lambda any_: Turns(any_(True)), "count must be an int, not bool"),
        (lambda any_: Tokens(9, any_(4)), "count must be a function or None, not int"),
    ],
)
def test_a_window_checks_itself(make: Any, text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make(lambda value: value)
    assert str(caught.value) == text


@pytest.mark.parametrize("cost", [None, "9", -1, float("nan"), True])
async def test_a_counter_must_count(ledger: Ledger, cost: Any) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    with pytest.raises(InvalidArgument, match="count_tokens must return a number") as caught:
        await ledger.messages.history("t", Tokens(9, lambda _: cost))
    assert caught.value.argument == "count_tokens"


async def test_every_call_refuses_unknown_words_alike(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    level = "rules must be 'lenient', 'strict', 'ordered' or None, not 'stern'"
    close = "on_open_calls must be 'error', 'close' or 'interrupt', not 'closed'"
    word: Any
    for text, say in (
        (level, lambda word: ledger.threads.create("u", rules=word)),
        (level, lambda word: ledger.messages.append("t", turn(), rules=word)),
        (close, lambda word: ledger.messages.append("t", turn(), on_open_calls=word)),
    ):
        word = text.rpartition(" ")[2].strip("'")
        with pytest.raises(InvalidArgument) as caught:
            await say(word)
        assert str(caught.value) == text
    assert await ledger.threads.find("u") is None


async def test_a_list_of_something_else_is_no_list_of_messages(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for append in (ledger.messages.append, ledger.messages.sync):
        with pytest.raises(InvalidArgument, match=r"not of dict; Payload"):
            await append("t", [{"role": "user", "content": "a"}])  # type: ignore[list-item]
        with pytest.raises(InvalidArgument, match="whose it is"):
            await append("t", "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="thread_ids must be a list of str"):
        await find_threads(scope_of(ledger), "t")
    assert await find_threads(scope_of(ledger), ["t", 5, None, ""]) == {"t": await ledger.threads.get("t")}  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("thread_id must not be empty; 1 to 512 bytes are allowed", lambda ledger: ledger.threads.create("")),
        ("count: -1 given, at least 0 allowed", lambda ledger: ledger.messages.history("t", Oldest(-1))),
        ("limit: 0 given, at least 1 allowed", lambda ledger: ledger.threads.list(limit=0)),
        (
            "0 tokens are too few: at least 1 are needed for the newest turn with the leading instructions",
            lambda ledger: ledger.messages.history("t", Tokens(0)),
        ),
    ],
)
async def test_a_number_out_of_bounds_says_which_bound(ledger: Ledger, text: str, slip: Any) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [ChatMessage(role="user", content="a")])
    with pytest.raises(LimitExceeded) as caught:
        await slip(ledger)
    assert str(caught.value) == text


@pytest.mark.parametrize("given", [{"messages": "5"}, {"bytes": 0}, {"messages": True}])
def test_limits_are_numbers(given: dict[str, Any]) -> None:
    [name] = given
    with pytest.raises(InvalidArgument, match=f"^{name} must be an int of at least 1, not "):
        Limits(**given)


@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("metadata must be a dict or None, not str", lambda ledger: ledger.threads.create("u", metadata="secret")),
        ("metadata must be a dict or None, not str", lambda ledger: ledger.threads.update("t", metadata="secret")),
        ("metadata must be a dict or None, not str", lambda ledger: ledger.runs.start("t", metadata="secret")),
        (
            "metadata is not valid: $.a: set is not JSON",
            lambda ledger: ledger.threads.create("u", metadata={"a": {"secret"}}),
        ),
        (
            "mark is not a mark: pass the mark of a history or of an append as it is",
            lambda ledger: advance(scope_of(ledger), "t", "secret"),
        ),
    ],
)
async def test_an_argument_is_refused_without_its_value(ledger: Ledger, text: str, slip: Any) -> None:
    """Neither the error nor what a traceback shows above it says what somebody stores."""
    await ledger.threads.create("t")
    with pytest.raises(InvalidArgument) as caught:
        await slip(ledger)
    assert str(caught.value) == text
    assert "secret" not in "".join(traceback.format_exception(caught.value, limit=0))
    assert await ledger.threads.find("u") is None


async def test_an_age_that_reaches_into_the_future_is_refused(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for wrong in (timedelta(days=-1), timedelta.max, datetime(2024, 5, 1)):  # noqa: DTZ001 - that is the case
        with pytest.raises(InvalidArgument, match="older_than"):
            await ledger.threads.delete_inactive(older_than=wrong)
    assert await ledger.threads.find("t")


def test_argument_errors_are_chatledger_errors_and_value_errors(tmp_path: Path) -> None:
    assert issubclass(InvalidArgument, (ChatLedgerError, ValueError))
    engine: Any = create_engine("sqlite://")
    with pytest.raises(InvalidArgument, match="url must be a str, a path, an AsyncEngine or None, not Engine"):
        Ledger.open(engine)
