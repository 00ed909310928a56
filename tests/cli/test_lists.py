"""Every list has one JSON shape, and the commands that list and show runs, branches and scores."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chatledger import Feedback, Ledger, Usage
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.docs.command_line import commands
from tests.storage.raw import count_rows


@pytest.fixture
async def filled(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        for number in range(3):
            await ledger.user("ada").threads.create(f"t{number}")
            await ledger.runs.start(f"t{number}", run_id=f"r{number}", agent="a", model="m", input={"q": "?"})
            await ledger.messages.append(f"t{number}", turn(), run_id=f"r{number}")
            await ledger.feedback.record(Feedback(run_id=f"r{number}", key="stars", score=number, user_id="eve"))
        await ledger.runs.finish("r0", status="completed", usage=Usage(input_tokens=3, output_tokens=4, cost="0.25"))
        await ledger.runs.finish("r1", status="failed", error="no answer")
        await fork_at(scope_of(ledger), "t0", 1)
        await ledger.messages.append("t0", [assistant("again")])
        await ledger.messages.append("t2", [user("?"), assistant("Su", state="partial")])
    return database


LISTS = [
    ("threads", {"thread_id", "user_id"}),
    ("runs list", {"run_id", "usage"}),
    ("feedback list", {"feedback_id", "score"}),
    ("feedback summary", {"key", "mean"}),
    ("branches list t0", {"branch", "active"}),
    ("drafts", {"thread_id", "seq"}),
    ("search Lima", {"thread_id", "match"}),
    ("check", {"thread_id", "detail"}),
    ("check --fix --dry-run", {"thread_id", "detail"}),
    ("sql SELECT(1)AS(a)", {"a"}),
    ("schema --views", {"view", "columns"}),
]


@pytest.mark.parametrize(("words", "names"), LISTS)
def test_a_list_is_an_object_with_items_and_next_cursor(filled: Database, words: str, names: set[str]) -> None:
    words = words.replace("SELECT(1)AS(a)", "SELECT\t1\tAS\ta")
    told = chatledger(*words.split(" "), "--json", url=filled.url).json
    assert list(told)[:2] == ["items", "next_cursor"]
    assert all(names <= set(item) for item in told["items"])
    assert told["next_cursor"] is None
    assert told["items"] or words in ("check", "check --fix --dry-run")


@pytest.mark.parametrize("words", ["threads", "runs list", "feedback list"])
def test_a_list_goes_on_with_its_cursor(filled: Database, words: str) -> None:
    whole = chatledger(*words.split(), "--json", url=filled.url).json["items"]
    first = chatledger(*words.split(), "--json", "--limit", 2, url=filled.url).json
    rest = chatledger(*words.split(), "--json", "--cursor", first["next_cursor"], url=filled.url).json
    assert ([*first["items"], *rest["items"]], rest["next_cursor"]) == (whole, None)
    shown = chatledger(*words.split(), "--limit", 2, url=filled.url)
    assert (len(shown.out.splitlines()), shown.error) == (3, f"chatledger: next page: --cursor {first['next_cursor']}")


def test_a_run_is_deleted_after_a_yes(filled: Database) -> None:
    refused = chatledger("runs", "delete", "r0", url=filled.url)
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    deleted = chatledger("runs", "delete", "r0", "--yes", "--json", url=filled.url)
    assert deleted.json["rows"]["runs"] == 1
    assert chatledger("runs", "show", "r0", url=filled.url).code != 0
    assert chatledger("runs", "delete", "r1", "--yes", url=filled.url).out.startswith("deleted r1 and ")


def test_runs_are_chosen_and_shown(filled: Database) -> None:
    def ids(*words: str) -> list[str]:
        return [run["run_id"] for run in chatledger("runs", "list", *words, "--json", url=filled.url).json["items"]]

    assert ids("--status", "failed") == ["r1"]
    assert ids("--thread", "t2") == ["r2"]
    table = chatledger("runs", "list", "--thread", "t0", url=filled.url).out.splitlines()
    assert table[0].split() == ["RUN", "THREAD", "AGENT", "MODEL", "STATUS", "TOKENS", "STARTED"]
    assert table[1].split()[:6] == ["r0", "t0", "a", "m", "completed", "7"]
    shown = dict(line.split(maxsplit=1) for line in chatledger("runs", "show", "r0", url=filled.url).out.splitlines())
    assert (shown["input"], shown["cost"], shown["status"]) == ('{"q":"?"}', "0.25", "completed")
    assert chatledger("runs", "show", "r1", "--json", url=filled.url).json["error"] == "no answer"
    missing = chatledger("runs", "show", "r9", url=filled.url)
    assert (missing.code, missing.out) == (3, "")
    assert chatledger("runs", "list", "--status", "done", url=filled.url).code == 2


def test_scores_are_listed_as_they_count_or_as_they_came(filled: Database) -> None:
    chatledger("feedback", "record", "r0", "stars", 5, "--user", "eve", url=filled.url)

    def scores(*words: str) -> list[float]:
        return [one["score"] for one in chatledger("feedback", "list", *words, "--json", url=filled.url).json["items"]]

    assert scores() == [5, 2, 1]
    assert scores("--events") == [5, 2, 1, 0]
    assert scores("--run", "r0", "--key", "stars") == scores("--thread", "t0") == [5]
    assert scores("--user", "nobody") == []
    assert chatledger("feedback", "list", "--key", "none", url=filled.url).error == "chatledger: no scores found"
    assert chatledger("feedback", "list", "--run", "r0", url=filled.url).out.splitlines()[1].split()[1:5] == [
        "r0", "stars", "5", "eve",
    ]  # fmt: skip


def test_branches_are_listed_and_activated(filled: Database) -> None:
    table = chatledger("branches", "list", "t0", url=filled.url).out.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [["0", "5"], ["1", "active"]]
    assert "branch 0, seq 1" in table[2]
    assert chatledger("branches", "activate", "t0", 0, url=filled.url).error == (
        "chatledger: branch 0 of thread 't0' is active"
    )
    told = chatledger("branches", "list", "t0", "--json", url=filled.url).json["items"]
    assert [(one["branch"], one["active"]) for one in told] == [(0, True), (1, False)]
    assert chatledger("branches", "activate", "t0", 7, url=filled.url).code == 3
    assert chatledger("branches", "list", url=filled.url).code == 2


async def test_a_thread_is_deleted_for_good_once_confirmed(filled: Database) -> None:
    refused = chatledger("delete", "t0", url=filled.url)
    assert (refused.code, (await count_rows(filled, "WHERE thread_id = 't0'"))["threads"]) == (2, 1)
    told = chatledger("delete", "t0", "--yes", "--json", url=filled.url).json
    assert told["rows"]["messages"] == 6
    assert set((await count_rows(filled, "WHERE thread_id = 't0'")).values()) == {0}
    assert chatledger("delete", "t0", "--yes", url=filled.url).code == 3
    assert len(chatledger("threads", "--json", url=filled.url).json["items"]) == 2


READ_A_THREAD = [
    "show {}",
    "show {} --format openai-chat",
    "prompt {}",
    "check {}",
    "export {}",
    "branches list {}",
    "runs list --thread {}",
    "runs usage --thread {}",
    "feedback list --thread {}",
    "feedback list --events --thread {}",
    "feedback summary --thread {}",
    "search Lima --thread {}",
]
WRITE_A_THREAD = [
    "archive {}",
    "branches activate {} 0",
    "delete {} --yes",
    "delete {} --dry-run",
    "erase --thread {} --yes",
    "erase --thread {} --dry-run",
    "erase-message {} m --yes",
    "erase-message {} m --dry-run",
    "check {} --fix --yes",
    "check {} --fix --dry-run",
]


async def test_a_search_of_several_words_needs_no_quotes(filled: Database) -> None:
    bare, quoted = chatledger("search", "in", "Lima", url=filled.url), chatledger("search", "in Lima", url=filled.url)
    assert (bare.code, bare.out) == (quoted.code, quoted.out)
    assert "t0" in quoted.out


@pytest.fixture
async def named(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        for name in ("lima-1", "oslo-1", "oslo-2"):
            await ledger.threads.create(name)
            await ledger.runs.start(name, run_id=f"r-{name}", agent="a", model="m")
            first, *rest = turn()
            named = first.model_copy(update={"message_id": "m"})
            await ledger.messages.append(name, [named, *rest], run_id=f"r-{name}")
            await ledger.feedback.record(Feedback(run_id=f"r-{name}", key="stars", score=4))
    return database


def test_every_command_with_a_thread_is_tried_here() -> None:
    tried = {" ".join(words.partition(" {")[0].split(" --")[0].split()[:2]) for words in READ_A_THREAD + WRITE_A_THREAD}
    with_thread = {words for words, command, _ in commands() if any(one.name == "thread" for one in command.params)}
    assert {words if words in with_thread else words.split()[0] for words in tried} == with_thread


@pytest.mark.parametrize("words", READ_A_THREAD)
def test_a_command_that_reads_takes_a_prefix(named: Database, words: str) -> None:
    whole = chatledger(*words.format("lima-1").split(), url=named.url)
    assert whole.code == 0
    assert whole.out or whole.error == "chatledger: 1 thread checked, all well"
    assert chatledger(*words.format("lim").split(), url=named.url) == whole
    several = chatledger(*words.format("oslo").split(), url=named.url)
    assert (several.code, several.out) == (2, "")
    assert several.error == "chatledger: several thread ids begin with 'oslo': oslo-1, oslo-2"
    unknown = chatledger(*words.format("rome").split(), url=named.url)
    assert (unknown.code, unknown.out) == (3, "")
    assert unknown.error.startswith("chatledger: there is no thread 'rome'; the database is ")


@pytest.mark.parametrize("words", WRITE_A_THREAD)
def test_a_command_that_writes_takes_the_whole_id(named: Database, words: str) -> None:
    refused = chatledger(*words.format("lim").split(), url=named.url)
    assert (refused.code, refused.out) == (3, "")
    assert refused.error.startswith("chatledger: there is no thread 'lim'; the database is ")
    assert chatledger(*words.format("lima-1").split(), url=named.url).code == 0


WITH_TIMES = ["search Lima", "export --all", "feedback summary", "feedback compare stars", "runs usage", "stats"]


def test_since_and_until_are_read_in_one_way(named: Database) -> None:
    taking = {words for words, command, _ in commands() if any(one.name == "since" for one in command.params)}
    assert {
        " ".join(words.split()[: 2 if words.split()[0] in ("feedback", "runs") else 1]) for words in WITH_TIMES
    } == taking
    for words in WITH_TIMES:
        everything = chatledger(*words.split(), url=named.url)
        for past in (
            "2001-01-01",
            "2001-01-01T00:00",
            "2001-01-01 00:00:00",
            "2001-01-01T00:00:00Z",
            "2001-01-01T00:00+02:00",
        ):
            assert chatledger(*words.split(), "--since", past, url=named.url) == everything, (words, past)
            assert chatledger(*words.split(), "--until", past, url=named.url).out != everything.out, (words, past)
        for wrong in ("yesterday", "2026-02-30", "0001-01-01T00:00+14:00", ""):
            refused = chatledger(*words.split(), "--since", wrong, url=named.url)
            assert (refused.code, "2026-01-31T09:00:00Z" in refused.err) == (2, True), (words, wrong, refused)


async def test_a_day_is_its_first_moment_in_utc(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        for name, day, hour in (("a", 30, 23), ("b", 31, 0)):
            await ledger.threads.create(name, created_at=datetime(2025, 1, day, hour, tzinfo=UTC))
    for times, threads in (
        ("--since 2025-01-31", ["b"]),
        ("--until 2025-01-31", ["a"]),
        ("--since 2025-01-31T01:00+01:00", ["b"]),
        ("--since 2025-01-30T23:00Z", ["a", "b"]),
    ):
        found = chatledger("export", *times.split(), "--container", "array", url=database.url).json
        assert [record["thread_id"] for record in found] == threads, times
