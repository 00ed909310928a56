"""Lists of threads: previews, filters, both orders in both directions, and threads that are put away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    ImagePart,
    InvalidArgument,
    KeyRing,
    Ledger,
    TextPart,
    ThinkPart,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.errors import InvalidCursor
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.lists import thread_list
from chatledger.storage.lists.thread_list import cursor_behind, find_threads
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.reasons import about
from tests.storage.raw import query
from tests.views import of_user

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
KEYS = KeyRing({"a key with a long name".replace(" ", "-"): bytes(range(32))})


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


async def listed(ledger: Ledger, **options: Any) -> list[str]:
    return [thread.thread_id for thread in await ledger.threads.list(**options)]


def chosen_by(ledger: Ledger, options: dict[str, Any]) -> tuple[Ledger, dict[str, Any]]:
    """The view of the option `user_id`, and the other options."""
    rest = {name: value for name, value in options.items() if name != "user_id"}
    return of_user(ledger, options.get("user_id")), rest


async def preview_of(ledger: Ledger, *messages: ChatMessage) -> str | None:
    """That of a new thread with these messages, the same in a list as alone."""
    thread = await ledger.threads.create()
    await ledger.messages.append(thread.thread_id, list(messages), rules="lenient")
    found = await ledger.threads.get(thread.thread_id)
    assert (await ledger.threads.list(limit=1)).items == [found]
    assert await find_threads(scope_of(ledger), [thread.thread_id]) == {thread.thread_id: found}
    assert found.message_count == len(messages)
    return found.preview


@pytest.fixture(params=[None, KEYS], ids=["plain", "keys"])
async def either(request: pytest.FixtureRequest, database: Database) -> Any:
    """A ledger without keys, and one with."""
    async with database.open(encryption=request.param) as ledger:
        yield ledger


# --- Previews ---------------------------------------------------------------------------------------------------------


async def test_the_preview_is_what_was_said_last(either: Ledger) -> None:
    assert await preview_of(either) is None
    assert await preview_of(either, user("Hello?")) == "Hello?"
    assert await preview_of(either, *turn()) == "It is sunny in both."
    assert await preview_of(either, ChatMessage(role="system", content="Be brief.")) is None


@pytest.mark.parametrize("said", ["?", "ok", "yes", "é"])
async def test_a_short_text_is_a_preview(either: Ledger, said: str) -> None:
    assert await preview_of(either, user("before"), user(said)) == said


async def test_a_call_and_its_result_are_no_preview(either: Ledger) -> None:
    asked = [user("Weather?"), assistant("", calls=[call("c", arguments='{"city":"Rome"}')]), result("c", '{"t":1}')]
    assert await preview_of(either, *asked) == "Weather?"
    silent = assistant(calls=[call("c")]).model_copy(update={"content": None})
    assert await preview_of(either, user("Weather?"), silent, result("c", '{"t":1}')) == "Weather?"


@pytest.mark.parametrize(
    "said",
    ["é" * 201, "🌦" * 500, "\0" * 201, "a" + "\ud800" * 300, "\\" * 999 + "\0", "\ue000 marked " * 30, "\ue001 plain"],
    ids=["accents", "pictures", "zeros", "surrogates", "backslashes", "marked", "like ciphertext"],
)
async def test_a_preview_has_at_most_200_characters(either: Ledger, said: str) -> None:
    assert await preview_of(either, user(said)) == said[:200]


async def test_a_long_text_is_cut_and_a_long_sealed_one_has_no_preview(database: Database) -> None:
    async with database.open(encryption=None) as plain:
        assert await preview_of(plain, user("earlier"), user("word " * 1_000_000)) == ("word " * 40)
    async with database.open(encryption=KEYS) as sealed:
        sealed = sealed.tenant("sealed")
        assert await preview_of(sealed, user("word " * 1_000)) == "word " * 40
        assert await preview_of(sealed, user("earlier"), user("word " * 2_000)) is None


@pytest.mark.plain
async def test_only_the_beginning_leaves_the_database(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    to_thread = thread_list._to_thread

    def noted(tenant: Any, row: Any) -> Any:
        read.append(max(len(text) for text in (row["preview_text"], row["part_text"]) if text is not None))
        return to_thread(tenant, row)

    monkeypatch.setattr(thread_list, "_to_thread", noted)
    for said in ("word " * 1_000, "word\0" * 1_000):
        for message in (user(said), ChatMessage(role="user", content=[TextPart(text=said)])):
            await preview_of(ledger, message)
            assert 200 <= read[-1] <= 1 + 200 * len("\\ud800")


@pytest.mark.parametrize(
    ("content", "preview"),
    [
        ([ImagePart(url="u"), TextPart(text="first"), TextPart(text="second")], "first"),
        ([ThinkPart(text="hm"), TextPart(text=""), TextPart(text="said\0" * 100)], "said\0" * 40),
        ([TextPart(text="alone")], "alone"),
        ([ImagePart(url="u")], "before"),
        ([ThinkPart(text="hm")], "before"),
        ([], "before"),
        ("", "before"),
        (None, "before"),
    ],
)
async def test_of_several_parts_the_first_text_is_shown(
    either: Ledger, content: str | list[Any] | None, preview: str
) -> None:
    said = ChatMessage(role="assistant", content=content, reasoning="so")
    assert await preview_of(either, user("before"), said) == preview


async def test_a_preview_is_looked_for_in_50_positions(ledger: Ledger) -> None:
    asides = [ChatMessage(role="custom", content=str(number)) for number in range(50)]
    assert await preview_of(ledger, user("far"), *asides[:49]) == "far"
    assert await preview_of(ledger, user("too far"), *asides) is None


async def test_a_fork_shows_what_its_path_says(either: Ledger) -> None:
    await either.threads.create("t")
    await either.messages.append("t", [user("one"), assistant("two"), user("three"), assistant("four")])
    for at, preview in ((3, "three"), (1, "one"), (0, None)):
        await fork_at(scope_of(either), "t", at, branch=0)
        (found,) = await either.threads.list()
        assert (found.message_count, found.preview) == (at, preview)
    await either.branches.activate("t", 1)
    await either.messages.append("t", [ChatMessage(role="custom", content="aside")])
    await fork_at(scope_of(either), "t", 4)
    assert (await either.threads.get("t")).preview == "three"
    await either.messages.append("t", [assistant("other")])
    assert (await either.threads.get("t")).preview == "other"


async def test_positions_without_a_message_are_not_counted(database: Database, ledger: Ledger) -> None:
    """As removed messages leave them: the path has gaps, and its last position may be one."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user(str(number)) for number in range(1, 10)], rules="lenient")
    await query(database, "DELETE FROM messages WHERE seq IN (4, 5, 9)")
    await query(database, "UPDATE branches SET lineage = '[[0,1,3],[0,6,8],[0,11,null]]', last_seq = 10, absent = 4")
    found = await ledger.threads.get("t")
    assert (found.message_count, found.preview) == (6, "8")
    await query(database, "DELETE FROM messages WHERE seq > 3")
    assert (await ledger.threads.get("t")).preview == "3"


async def test_a_preview_follows_a_redaction(either: Ledger) -> None:
    await either.threads.create("t")
    await either.messages.append("t", [user("kept"), assistant("secret")])
    redacted = await erase_at(scope_of(either), "t", 2)
    assert (await either.threads.get("t")).preview == redacted.text != "secret"


# --- Filters ----------------------------------------------------------------------------------------------------------


async def six(ledger: Ledger) -> None:
    """t0 … t5: created in this order, t1 written last. Half are ada's, t2 and t3 of a kind, t4 archived."""
    for number in range(6):
        user_id, kind = "ada" if number % 2 else None, "app\0" if number in (2, 3) else None
        await of_user(ledger, user_id).threads.create(f"t{number}", kind=kind, created_at=minute(number))
    await ledger.messages.append("t1", [user("?")])
    await ledger.threads.update("t4", archived=True)


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "15320"),
    ({"user_id": "ada"}, "153"),
    ({"kind": "app\0"}, "32"),
    ({"kind": "app\0", "user_id": "ada"}, "3"),
    ({"kind": "other"}, ""),
    ({"archived": True}, "4"),
    ({"archived": None}, "154320"),
    ({"since": minute(3)}, "153"),
    ({"until": minute(3)}, "20"),
    ({"since": minute(2), "until": minute(4), "archived": None}, "32"),
    ({"order": "created"}, "53210"),
    ({"newest_first": False}, "02351"),
    ({"order": "created", "newest_first": False, "archived": None, "user_id": "ada"}, "135"),
]


@pytest.mark.parametrize(("options", "expected"), FILTERS, ids=[repr(options) for options, _ in FILTERS])
async def test_a_list_has_the_threads_that_fit_in_its_order(
    ledger: Ledger, options: dict[str, Any], expected: str
) -> None:
    await six(ledger)
    await ledger.tenant("other").threads.create("t9", kind="app\0")
    ids = [f"t{number}" for number in expected]
    ledger, options = chosen_by(ledger, options)
    assert await listed(ledger, **options) == ids
    filters = {name: value for name, value in options.items() if name not in ("order", "newest_first")}
    assert await ledger.threads.count(**filters) == len(ids)
    by_cursor: list[str] = []
    cursor = None
    for _ in range(7):
        page = await ledger.threads.list(**options, limit=2, cursor=cursor)
        by_cursor += [thread.thread_id for thread in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert by_cursor == ids


@pytest.mark.parametrize("options", [{"order": "created"}, {"newest_first": False}])
async def test_a_cursor_of_another_order_is_refused(ledger: Ledger, options: dict[str, Any]) -> None:
    await six(ledger)
    cursor = (await ledger.threads.list(limit=1)).next_cursor
    with pytest.raises(InvalidCursor, match="of a list in another order"):
        await ledger.threads.list(**options, cursor=cursor)
    cursor = (await ledger.threads.list(**options, limit=1)).next_cursor
    with pytest.raises(InvalidCursor, match="of a list in another order"):
        await ledger.threads.list(cursor=cursor)
    with pytest.raises(InvalidCursor):  # of a list that has one order
        await ledger.runs.list(cursor=cursor)


@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_list_by_creation_continues_behind_a_thread(ledger: Ledger, newest_first: bool) -> None:
    """Wherever it is, also an archived one, which is not in the list."""
    await six(ledger)
    ids = [f"t{number}" for number in range(6) if number != 4]
    for number in range(6):
        cursor = cursor_behind(await ledger.threads.get(f"t{number}"), newest_first=newest_first)
        behind = [id_ for id_ in ids if (id_ < f"t{number}" if newest_first else id_ > f"t{number}")]
        order: dict[str, Any] = {"order": "created", "newest_first": newest_first}
        assert await listed(ledger, **order, cursor=cursor) == sorted(behind, reverse=newest_first)


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": "title"},
        {"archived": "yes"},
        {"newest_first": None},
        {"since": NOON.replace(tzinfo=None)},
        {"until": "x"},
        {"kind": 1},
    ],
)
async def test_wrong_arguments_are_named(ledger: Ledger, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await ledger.threads.list(**wrong)
    assert caught.value.argument in wrong


async def test_a_kind_is_stored_with_the_thread(database: Database, ledger: Ledger) -> None:
    made = await ledger.threads.create("t", kind="app")
    assert (made.kind, made.archived_at) == ("app", None)
    assert await ledger.threads.get("t") == made
    assert await ledger.threads.create("t", kind="other", exist_ok=True) == made
    loaded = made.model_copy(update={"thread_id": "u", "archived_at": NOON})
    await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), loaded, [])])
    assert await ledger.threads.get("u") == loaded


# --- Archiving --------------------------------------------------------------------------------------------------------


async def test_an_archived_thread_is_as_before_but_not_listed(ledger: Ledger) -> None:
    made = await ledger.threads.create("t", title="x")
    archived = await ledger.threads.update("t", archived=True)
    assert archived.archived_at is not None
    assert archived == made.model_copy(update={"archived_at": archived.archived_at})
    assert await ledger.threads.update("t", archived=True) == archived  # the first time stays
    assert await listed(ledger) == []
    assert await listed(ledger, archived=True) == ["t"]
    await ledger.messages.append("t", turn())
    assert (await ledger.threads.get("t")).archived_at == archived.archived_at
    back = await ledger.threads.update("t", archived=False)
    assert (back.archived_at, back.message_count) == (None, 5)
    assert await ledger.threads.update("t", archived=False) == back
    assert await listed(ledger) == ["t"]


async def test_only_a_thread_that_is_there_is_archived(ledger: Ledger) -> None:
    await ledger.tenant("other").threads.create("t")
    for archived in (True, False):
        with pytest.raises(ThreadNotFound):
            await ledger.threads.update("t", archived=archived)


async def test_archiving_is_no_new_version_unless_something_else_changes(ledger: Ledger) -> None:
    made = await ledger.threads.create("t")
    assert (await ledger.threads.update("t", archived=True, expected=made.version)).version == made.version
    changed = await ledger.threads.update("t", archived=False, title="x", expected=made.version)
    assert (changed.version, changed.title, changed.archived_at) == (made.version + 1, "x", None)
    with pytest.raises(VersionConflict, check=about("thread")):
        await ledger.threads.update("t", archived=True, expected=made.version)
    assert (await ledger.threads.get("t")).archived_at is None
