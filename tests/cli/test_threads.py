from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, ImagePart, Ledger, OpaquePart, TextPart, ThinkPart, ToolCall
from chatledger.cli.conversations.render import cut
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.storage.raw import query
from tests.views import of_user

CONVERSATION = [
    ChatMessage(role="user", content="Tokyo?", name="ada"),
    ChatMessage(
        role="assistant",
        content="Let me see.",
        reasoning="two calls",
        tool_calls=[ToolCall(id="c", name="weather", arguments='{"n":1}'), ToolCall(id="d", name="time", arguments={})],
    ),
    ChatMessage(role="tool", tool_call_id="d", content="noon", is_error=True),
    ChatMessage(role="tool", tool_call_id="c", content=[TextPart(text="sun"), ImagePart(url="http://x/i.png")]),
    ChatMessage(role="assistant", content=[ThinkPart(text="hm"), OpaquePart(type="map", value={"a": 1})]),
    ChatMessage(role="assistant", content=None, tool_calls=[ToolCall(id="c", name="weather", arguments="not json")]),
    ChatMessage(role="tool", tool_call_id="c", content="again"),
    ChatMessage(role="tool", tool_call_id="x", content="orphan"),
    ChatMessage(role="assistant", content="", tool_calls=[ToolCall(name="wait")]),
]
DRAWN = """\
thread t
"Weather" · user ada · 9 messages

  1  user · ada
     Tokyo?

  2  assistant
     thinks: two calls
     Let me see.
     → weather {"n":1}
       ← 4: sun
            [image] http://x/i.png
     → time {}
       ← 3 error: noon

  5  assistant
     hm
     [map] {"a":1}

  6  assistant
     ! R9: the arguments of tool call 0 (weather) are not JSON
     → weather not json
       ← 7: again

  8  tool · for call x
     orphan
     ! R6: a tool result with id 'x', but no call is open

  9  assistant
     → wait
       ← no result
"""


def without_times(drawn: str) -> str:
    """What `show` prints without when: ` · 2025-…` at the end of a heading, and that of the creation."""
    return "\n".join(line.split(" · created ")[0].split(" · 20")[0].rstrip() for line in drawn.split("\n"))


async def store(url: str, messages: list[ChatMessage], *, user_id: str | None = None, **thread: Any) -> None:
    async with Ledger.open(url) as ledger:
        await of_user(ledger, user_id).threads.create("t", **thread)
        await ledger.messages.append("t", messages, rules="lenient")


@pytest.fixture
async def conversation(database: Database) -> Database:
    await store(database.url, CONVERSATION, title="Weather", user_id="ada")
    return database


def test_calls_stand_beside_their_results(conversation: Database) -> None:
    outcome = chatledger("show", "t", url=conversation.url)
    assert (outcome.code, without_times(outcome.out)) == (0, DRAWN)


def test_end_of_a_conversation(conversation: Database) -> None:
    drawn = without_times(chatledger("show", "t", "--newest", "2", url=conversation.url).out)
    assert drawn.endswith(DRAWN[DRAWN.index("  8  tool") :])


def test_pages_of_a_conversation(conversation: Database) -> None:
    """Each page says how to read on, in either direction."""
    first, middle = DRAWN.index("  1  user"), DRAWN.index("  5  assistant")
    second = DRAWN.index("  9  assistant")

    def show(words: str) -> tuple[str, dict[str, str]]:
        """What is drawn, and the options of the neighbouring pages."""
        outcome = chatledger("show", "t", *words.split(), url=conversation.url)
        said = (line.removeprefix("chatledger: ").split(" messages: ") for line in outcome.err.splitlines())
        return without_times(outcome.out).rstrip(), dict(said)

    drawn, newest = show("--newest 1")
    assert drawn.endswith(DRAWN[second:].rstrip())
    assert [*newest] == ["earlier"]
    assert newest["earlier"].startswith("--newest 1 --before A")
    drawn, earlier = show(newest["earlier"].replace("--newest 1", "--newest 4"))
    assert drawn.endswith(DRAWN[middle:second].rstrip())
    assert [words.rpartition(" ")[0] for words in earlier.values()] == ["--newest 4 --before", "--limit 4 --after"]
    assert show(earlier["later"])[0].endswith(DRAWN[second:].rstrip())
    drawn, page = show("--limit 4")
    assert drawn.endswith(DRAWN[first:middle].rstrip())
    assert show(earlier["earlier"])[0] == drawn
    assert [*page] == ["later"]
    drawn, rest = show(page["later"].removeprefix("--limit 4 "))
    assert drawn.endswith(DRAWN[middle:].rstrip())
    assert rest["earlier"].startswith("--before A")


def test_a_page_begins_at_a_seq_of_a_branch(conversation: Database) -> None:
    asked = ("show", "t", "--newest", "4", "--before", "9")
    drawn = without_times(chatledger(*asked, "--branch", 0, url=conversation.url).out).rstrip()
    assert drawn.endswith(DRAWN[DRAWN.index("  5  assistant") : DRAWN.index("  9  assistant")].rstrip())
    refused = chatledger(*asked, url=conversation.url)
    assert (refused.code, "before is a seq, which names no branch" in refused.error) == (2, True)


def test_windows_that_do_not_go_together_are_a_usage_error(conversation: Database) -> None:
    for words in ("--newest 3 --after 2", "--limit 3 --before 2", "--newest 3 --limit 3", "--before 3 --after 2"):
        outcome = chatledger("show", "t", *words.split(), "--branch", 0, url=conversation.url)
        assert (outcome.code, outcome.error) == (2, "chatledger: give --newest with --before, or --limit with --after")


def test_a_page_as_json_has_its_cursors(conversation: Database) -> None:
    asked = ("show", "t", "--json", "--newest", "4")
    outcome = chatledger(*asked, "--before", "9", "--branch", 0, url=conversation.url)
    assert ([one["seq"] for one in outcome.json["messages"]], outcome.err) == ([5, 6, 7, 8], "")
    earlier = chatledger(*asked, "--before", outcome.json["previous_cursor"], url=conversation.url).json
    assert [one["seq"] for one in earlier["messages"]] == [1, 2, 3, 4]
    later = chatledger("show", "t", "--json", "--after", outcome.json["next_cursor"], url=conversation.url).json
    assert [one["seq"] for one in later["messages"]] == [9]


def test_show_as_json(conversation: Database) -> None:
    shown = chatledger("show", "t", "--json", url=conversation.url).json
    assert (shown["thread"]["title"], shown["last_seq"], shown["draft"]) == ("Weather", 9, None)
    assert [message["role"] for message in shown["messages"]] == [message.role for message in CONVERSATION]


def test_check_finds_what_is_broken_and_what_is_open(conversation: Database) -> None:
    outcome = chatledger("check", "--json", url=conversation.url)
    found = [(one["seq"], one["severity"], one["rule"], one["state"]) for one in outcome.json["items"]]
    assert (outcome.code, outcome.json["checked"]) == (1, 1)
    assert found == [(6, "advice", "R9", "broken"), (8, "error", "R6", "broken"), (9, "error", "R6", "open")]
    in_text = chatledger("check", "t", url=conversation.url)
    assert (in_text.code, len(in_text.out.splitlines())) == (1, 4)
    assert in_text.error == "chatledger: 1 thread checked, 2 errors, 1 advice"


async def test_advice_changes_no_exit_code(database: Database) -> None:
    await store(database.url, [CONVERSATION[0], CONVERSATION[0]])
    outcome = chatledger("check", "--json", url=database.url)
    assert outcome.code == 0
    assert [(one["seq"], one["rule"], one["severity"]) for one in outcome.json["items"]] == [(2, "R13", "advice")]
    assert chatledger("check", url=database.url).error == "chatledger: 1 thread checked, 1 advice"


async def three_with_a_damaged_one(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        for name in ("t", "u", "v"):
            await ledger.threads.create(name, metadata={"m": 1})
            await ledger.messages.append(name, CONVERSATION[:1])
    await query(database, """UPDATE threads SET metadata = '{"c4n4ry' WHERE thread_id = 'u'""")


async def test_a_damaged_thread_does_not_hide_the_others(database: Database) -> None:
    await three_with_a_damaged_one(database)
    place = "threads.metadata of 'u': "
    listed = chatledger("threads", url=database.url)
    assert (listed.code, len(listed.out.splitlines())) == (1, 3)
    assert listed.error.startswith(f"chatledger: {place}")
    assert len(chatledger("threads", "--json", url=database.url).json["items"]) == 2
    checked = chatledger("check", "--json", url=database.url)
    (finding,) = checked.json["items"]
    assert (checked.code, checked.json["checked"], finding["thread_id"], finding["severity"]) == (1, 3, "u", "error")
    assert finding["detail"].startswith(place)
    shown = chatledger("show", "u", "--debug", url=database.url)
    assert (shown.code, shown.out) == (3, "")
    assert f"chatledger: {place}" in shown.err
    await query(database, """UPDATE threads SET metadata = '{"c4n4ry' WHERE thread_id = 'v'""")
    latest = chatledger("show", "--latest", url=database.url)
    assert (latest.code, latest.error.startswith("chatledger: threads.metadata of 'v': ")) == (3, True)
    assert not any("c4n4ry" in outcome.err + outcome.out for outcome in (listed, checked, shown))


async def test_a_damaged_message_does_not_hide_the_other_threads(database: Database) -> None:
    await three_with_a_damaged_one(database)
    await query(database, """UPDATE messages SET custom_data = '{"c4n4ry' WHERE thread_id = 'v'""")
    told = "messages.custom_data of 'v', 0, 1: "
    refused = chatledger("check", "--provider", "openai-chat", "--json", url=database.url)
    (finding,) = refused.json["items"]
    assert (refused.code, refused.json["checked"], finding["thread_id"], finding["reason"]) == (1, 3, "v", "damaged")
    assert finding["detail"].startswith(told)
    repaired = chatledger("check", "--fix", "--yes", url=database.url)
    assert (repaired.code, repaired.error) == (0, "chatledger: 3 threads checked, nothing done")
    await query(database, "UPDATE branches SET lineage = '{' WHERE thread_id = 't'")
    repaired = chatledger("check", "--fix", "--yes", url=database.url)
    assert (repaired.code, len(repaired.err.splitlines())) == (1, 2)
    assert "chatledger: branches.lineage of 't', 0: " in repaired.err


async def test_check_finds_nothing(sqlite_database: Database) -> None:
    await store(sqlite_database.url, CONVERSATION[:1])
    outcome = chatledger("check", url=sqlite_database.url)
    assert (outcome.code, outcome.out, outcome.error) == (0, "", "chatledger: 1 thread checked, all well")


async def test_abandoned_partial_message_is_found(sqlite_database: Database) -> None:
    await store(sqlite_database.url, [CONVERSATION[0], ChatMessage(role="assistant", content="Hm", state="partial")])
    outcome = chatledger("check", "--json", url=sqlite_database.url)
    assert [(one["seq"], one["rule"], one["state"]) for one in outcome.json["items"]] == [(2, "R10", "open")]
    assert "assistant · partial" in chatledger("show", "t", url=sqlite_database.url).out


async def test_stored_text_cannot_speak_to_the_terminal(sqlite_database: Database) -> None:
    evil = "\x1b]0;pwned\x07\x1b[31m\x9b2J\u202e[bold]x[/bold]"
    call = ToolCall(id=evil, name=evil, arguments=evil)
    messages = [
        ChatMessage(role="user", content=evil, name=evil),
        ChatMessage(role="assistant", content=evil, reasoning=evil, tool_calls=[call]),
        ChatMessage(role="tool", content=[OpaquePart(type=evil, value=evil), ImagePart(url=evil)], tool_call_id=evil),
        ChatMessage(role="tool", content=evil, tool_call_id=evil + "2", name=evil),
    ]
    await store(sqlite_database.url, messages, title=evil, user_id=evil)
    for words in (["show", "t"], ["threads"], ["check"]):
        out = chatledger(*words, url=sqlite_database.url).out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    assert r"\x1b]0;pwned\x07\x1b[31m\x9b2J\u202e[bold]x[/bold]" in chatledger("show", "t", url=sqlite_database.url).out


async def test_long_text_is_cut_with_a_note(sqlite_database: Database) -> None:
    await store(sqlite_database.url, [ChatMessage(role="user", content="x" * 5_000)])
    assert "… 3,500 more characters (--full)" in chatledger("show", "t", url=sqlite_database.url).out
    assert "x" * 5_000 in chatledger("show", "t", "--full", url=sqlite_database.url).out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", ("short", "")),
        ("\n" * 19, ("\n" * 19, "")),
        ("\n" * 20, ("\n" * 19, "… 1 more characters (--full)")),
        ("x" * 1_501, ("x" * 1_500, "… 1 more characters (--full)")),
    ],
)
def test_cut(text: str, shown: tuple[str, str]) -> None:
    assert cut(text) == shown


async def test_threads_are_listed_newest_first_by_page(sqlite_database: Database, tmp_path: Path) -> None:
    async with Ledger.open(sqlite_database.url) as ledger:
        for user in ("ada", "bob", "ada"):
            await ledger.user(user).threads.create(title=f"of {user}")
    assert len(chatledger("threads", "--user", "ada", "--json", url=sqlite_database.url).json["items"]) == 2
    first = chatledger("threads", "--limit", "2", "--json", url=sqlite_database.url).json
    rest = chatledger("threads", "--cursor", first["next_cursor"], "--json", url=sqlite_database.url).json
    users = [thread["user_id"] for thread in first["items"] + rest["items"]]
    assert (users, rest["next_cursor"]) == (["ada", "bob", "ada"], None)
    table = chatledger("threads", url=sqlite_database.url).out.splitlines()
    assert [line.split()[-1] for line in table] == ["MESSAGE", "ada", "bob", "ada"]


async def test_threads_are_chosen_and_archived(sqlite_database: Database) -> None:
    url = sqlite_database.url
    async with Ledger.open(url) as ledger:
        for number, kind in enumerate(("app", None, "app")):
            created_at = datetime(2024, 5, 1 + number, tzinfo=UTC)
            await ledger.threads.create(f"t{number}", kind=kind, created_at=created_at)
        await ledger.messages.append("t0", [ChatMessage(role="user", content="Hello?")])

    def ids(*words: str) -> list[str]:
        return [thread["thread_id"] for thread in chatledger("threads", *words, "--json", url=url).json["items"]]

    assert ids() == ["t0", "t2", "t1"]
    assert ids("--kind", "app", "--order", "created") == ["t2", "t0"]
    assert chatledger("archive", "t2", url=url).error == "chatledger: thread 't2' is archived"
    assert (ids(), ids("--archived")) == (["t0", "t1"], ["t2"])
    assert chatledger("archive", "t2", "--undo", "--json", url=url).json["archived_at"] is None
    assert ids("--archived") == []
    assert chatledger("threads", url=url).out.splitlines()[1].endswith("Hello?")
    assert chatledger("archive", "nowhere", url=url).code == 3
    assert chatledger("threads", "--order", "title", url=url).code == 2


@pytest.fixture
async def several(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        for name in ("ab", "abc", "abd", "b%", "b_1", "é-1"):
            await ledger.threads.create(name)
            await ledger.messages.append(name, [ChatMessage(role="user", content=f"of {name}")])
        await ledger.tenant("other").threads.create("xyz")
    return database


@pytest.mark.parametrize(
    ("given", "meant"), [("ab", "ab"), ("abc", "abc"), ("abd", "abd"), ("b_", "b_1"), ("b%", "b%"), ("é", "é-1")]
)
async def test_the_beginning_of_an_id_is_enough(several: Database, given: str, meant: str) -> None:
    shown = chatledger("show", given, "--json", url=several.url).json
    assert (shown["thread"]["thread_id"], shown["messages"][0]["content"]) == (meant, f"of {meant}")
    for words in (["show", "--format", "openai-chat"], ["prompt"], ["export"]):
        assert chatledger(*words, given, url=several.url).json == [{"role": "user", "content": f"of {meant}"}]
    assert chatledger("check", given, "--json", url=several.url).json["checked"] == 1


async def test_the_beginning_of_several_ids_lists_them(several: Database) -> None:
    outcome = chatledger("show", "a", url=several.url)
    assert (outcome.code, outcome.error) == (2, "chatledger: several thread ids begin with 'a': ab, abc, abd")
    for unknown in ("abcd", "x", "B", ""):
        outcome = chatledger("show", unknown, url=several.url)
        assert outcome.code == 3
        assert outcome.error.startswith(f"chatledger: there is no thread {unknown!r}; the database is ")


async def test_many_ids_are_not_all_listed(sqlite_database: Database) -> None:
    async with Ledger.open(sqlite_database.url) as ledger:
        for number in range(9):
            await ledger.threads.create(f"t{number}")
    assert chatledger("show", "t", url=sqlite_database.url).error.endswith("'t': t0, t1, t2, t3, t4, …")


async def test_latest_is_the_thread_with_the_newest_activity(sqlite_database: Database) -> None:
    none = chatledger("show", "--latest", url=sqlite_database.url)
    assert none.error == "chatledger: --latest found no thread that is not archived"
    async with Ledger.open(sqlite_database.url) as ledger:
        now = datetime.now(UTC)
        for name, days in (("old", 2), ("new", 0), ("older", 3)):
            await ledger.threads.create(name, created_at=now - timedelta(days=days))
    assert chatledger("show", "--latest", "--json", url=sqlite_database.url).json["thread"]["thread_id"] == "new"
    async with Ledger.open(sqlite_database.url) as ledger:
        await ledger.messages.append("old", [ChatMessage(role="user", content="of old")])
    for command in (["prompt"], ["show", "--format", "openai-chat"], ["export"]):
        said = chatledger(*command, "--latest", url=sqlite_database.url).json
        assert said == [{"role": "user", "content": "of old"}]
    assert chatledger("check", "--latest", "--json", url=sqlite_database.url).json["checked"] == 1
    for words in (["show"], ["show", "old", "--latest"], ["export", "--all", "--latest"]):
        assert chatledger(*words, url=sqlite_database.url).code == 2


async def test_a_removal_needs_the_full_id(sqlite_database: Database) -> None:
    """The id of an erased thread may begin the id of another."""
    await store(sqlite_database.url, CONVERSATION)
    async with Ledger.open(sqlite_database.url) as ledger:
        await ledger.threads.create("thread")
    for words in (
        ["erase", "--thread", "th", "--yes"],
        ["erase-message", "th", "m", "--yes"],
        ["check", "--fix", "th", "--yes"],
    ):
        assert chatledger(*words, url=sqlite_database.url).code == 3
