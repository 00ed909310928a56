from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.errors import NothingToSend
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.storage.raw import query
from tests.transfer.files import array, lines, record_scores, talk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of two records."""
    (tmp_path / "two.json").write_bytes(array({"n": 1, "messages": talk("a", "b")}, {"n": 2, "messages": talk("c")}))
    return tmp_path


def test_export_to_a_file_in_the_container_asked_for(folder: Path) -> None:
    chatledger("import", "two.json", url="l.db", cwd=folder)
    outcome = chatledger("export", "--all", "--container", "lines", "-o", "out.jsonl", url="l.db", cwd=folder)
    assert (outcome.code, outcome.out) == (0, "")
    assert len((folder / "out.jsonl").read_text().splitlines()) == 2
    assert not (folder / "out.jsonl.part").exists()


def test_export_of_one_thread(folder: Path) -> None:
    chatledger("import", "two.json", "--thread-field", "n", url="l.db", cwd=folder)
    assert chatledger("export", "2", url="l.db", cwd=folder).json == {"n": 2, "messages": talk("c")}
    assert chatledger("export", "2", "--format", "openai-chat", url="l.db", cwd=folder).json == talk("c")


@pytest.mark.parametrize("words", [(), ("1", "--all")])
def test_export_wants_a_thread_or_all(folder: Path, words: tuple[str, ...]) -> None:
    chatledger("import", "two.json", url="l.db", cwd=folder)
    assert chatledger("export", *words, url="l.db", cwd=folder).code == 2


def test_an_export_to_a_pipe_leaves_it_a_pipe(folder: Path) -> None:
    chatledger("import", folder / "two.json", url="l.db", cwd=folder)
    os.mkfifo(folder / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((folder / "pipe").read_text)
        assert chatledger("export", "--all", "-o", "pipe", url="l.db", cwd=folder).code == 0
        assert (folder / "pipe").is_fifo()
        assert json.loads(read.result(timeout=10)) == json.loads((folder / "two.json").read_bytes())


def test_an_export_to_a_link_writes_where_it_leads(folder: Path) -> None:
    chatledger("import", folder / "two.json", url="l.db", cwd=folder)
    (folder / "link.json").symlink_to(folder / "out.json")
    assert chatledger("export", "--all", "-o", "link.json", url="l.db", cwd=folder).code == 0
    assert (folder / "link.json").is_symlink()
    assert json.loads((folder / "out.json").read_bytes()) == json.loads((folder / "two.json").read_bytes())


def test_losses_of_a_format_are_counted_with_their_place(folder: Path) -> None:
    spoken = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]}]
    (folder / "spoken.json").write_text(json.dumps([{"id": "t", "messages": spoken, "reply": None}]))
    url = str(folder / "ledger.db")
    assert chatledger("import", "spoken.json", "--thread-field", "id", url=url, cwd=folder).code == 0
    for words, place in (
        (("export", "t"), ""),
        (("export", "--all"), "thread t, "),
        (("show", "t"), ""),
    ):
        assert chatledger(*words, "--format", "anthropic", url=url).err.splitlines() == [
            f"chatledger: {place}message 1: media at content[0]",
            "chatledger: lost: media × 1",
        ]


@pytest.fixture
def imported(database: Database, tmp_path: Path) -> str:
    file = tmp_path / "in.json"
    file.write_bytes(
        array(*({"id": name, "n": 1, "messages": talk(name, "ok")} for name in "abc"), {"id": "d", "messages": []})
    )
    chatledger("import", file, "--thread-field", "id", "--format", "openai-chat", url=database.url)
    return database.url


LEFT_OUT = "chatledger: left out, because an export has no place for it: "


def export(url: str, *words: str) -> Any:
    done = chatledger("export", *words, url=url)
    assert done.code == 0
    assert all(line.startswith(LEFT_OUT) for line in done.err.splitlines())
    return [json.loads(line) for line in done.out.splitlines()]


def test_jsonl_is_a_conversation_a_line_and_nothing_else(imported: str) -> None:
    assert export(imported, "--jsonl", "--format", "openai-chat") == [{"messages": talk(name, "ok")} for name in "abc"]
    assert export(imported, "--jsonl") == export(imported, "--jsonl", "--all")
    assert export(imported, "b", "--jsonl") == [{"messages": talk("b", "ok")}]


async def test_min_score_filters(database: Database, imported: str) -> None:
    async with database.open() as ledger:
        for name, stars in (("a", 4.0), ("b", 3.5)):
            await record_scores(ledger, name, stars)
    assert export(imported, "--jsonl", "--min-score", "stars=4") == [{"messages": talk("a", "ok")}]
    assert [
        record["id"] for record in export(imported, "--all", "--container", "lines", "--min-score", "stars=3.5")
    ] == ["a", "b"]


@pytest.mark.parametrize("words", [("--min-score", "stars"), ("--min-score", "=4"), ("--min-score", "stars=nan"), ()])
def test_wrong_words_are_a_usage_error(imported: str, words: tuple[str, ...]) -> None:
    assert chatledger("export", *words, *(["--all"] if words else []), url=imported).code == 2
    assert chatledger("export", "a", "--min-score", "stars=1", url=imported).code == 2


def test_model_view_is_what_the_provider_accepts(database: Database, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    wedged = [*talk("a"), {"role": "assistant", "content": None, "tool_calls": [call]}, *talk("b")]
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines({"id": "t", "messages": wedged}, {"id": "u", "messages": talk("x", "y")}))
    chatledger("import", file, "--thread-field", "id", url=database.url)
    done = chatledger("export", "--jsonl", "--view", "model", url=database.url)
    repaired, whole = [json.loads(line)["messages"] for line in done.out.splitlines()]
    assert [message["role"] for message in repaired] == ["user", "assistant", "tool", "user"]
    assert (repaired[2]["tool_call_id"], whole) == ("c", talk("x", "y"))
    assert "made in the model view, so that the provider accepts the messages" in done.err
    assert export(database.url, "--jsonl")[0]["messages"] == wedged


def test_a_thread_with_nothing_to_send_is_left_out_and_reported(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    told = [{"role": "system", "content": "Be brief."}]
    file.write_bytes(
        lines({"id": "t", "messages": told}, {"id": "u", "messages": talk("x")}, {"id": "v", "messages": []})
    )
    chatledger("import", file, "--thread-field", "id", url=database.url)
    done = chatledger("export", "--jsonl", "--view", "model", "--format", "anthropic", url=database.url)
    assert (done.code, [json.loads(line) for line in done.out.splitlines()]) == (1, [{"messages": talk("x")}])
    why = NothingToSend("anthropic", [(1, "instructions are not sent as a message")])
    assert done.err.splitlines() == [
        f"chatledger: thread t left out: {why}",
        "chatledger: 1 thread left out",
    ]
    assert chatledger("export", "--jsonl", "--view", "model", url=database.url).code == 0


def test_model_view_needs_a_provider_and_jsonl(imported: str) -> None:
    assert chatledger("export", "--jsonl", "--view", "model", "--format", "qwen-agent", url=imported).code == 2
    assert chatledger("export", "--all", "--view", "model", url=imported).code == 2


async def test_damaged_threads_do_not_stop_an_export(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        for name in ("t", "u", "v", "w"):
            await ledger.threads.create(name, metadata={"m": 1})
            await ledger.messages.append(name, [ChatMessage(role="user", content="?")], run_id=f"run {name}")
            await ledger.feedback.record(Feedback(run_id=f"run {name}", key="stars", score=4))
    await query(database, """UPDATE threads SET metadata = '{"c4n4ry' WHERE thread_id = 't'""")
    await query(database, """UPDATE messages SET custom_data = '["c4n4ry"]' WHERE thread_id = 'u'""")
    for words in (("--all", "--container", "lines"), ("--jsonl",)):
        outcome = chatledger("export", *words, url=database.url)
        assert (outcome.code, len(outcome.out.splitlines())) == (1, 2)
        *_, metadata, custom_data, count = outcome.err.splitlines()
        assert metadata.startswith("chatledger: threads.metadata of 't': ")
        assert custom_data.startswith("chatledger: messages.custom_data of 'u', 0, 1: ")
        assert count == "chatledger: 2 damaged threads not exported"
        assert "c4n4ry" not in outcome.err
    await query(database, """UPDATE feedback SET kwargs = '{"c4n4ry' WHERE run_id = 'run v'""")
    outcome = chatledger("export", "--jsonl", "--min-score", "stars=3", url=database.url)
    assert (outcome.code, len(outcome.out.splitlines())) == (1, 1)
    assert "chatledger: 3 damaged threads not exported" in outcome.err
    assert chatledger("export", "u", url=database.url).code == 3


async def fill_beside(ledger: Ledger) -> None:
    """The imported thread `a`, with two more branches, a run, a score and a value; and a value of the tenant."""
    for _ in range(2):
        await fork_at(scope_of(ledger), "a", 1)
    await ledger.runs.start("a", run_id="r")
    await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4))
    await ledger.kv.put(("thread", "a"), "step", 1)
    await ledger.kv.put(("tenant",), "plan", "free")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a"], "2 branches, 1 run, 1 score, 1 value"),
        (["--all"], "2 branches, 1 run, 1 score, 2 values"),
        (["--jsonl", "--min-score", "stars=4"], "2 branches, 1 run, 1 score, 1 value"),
        (["b"], None),
    ],
)
async def test_what_an_export_leaves_out_is_said(
    database: Database, imported: str, words: list[str], told: str | None
) -> None:
    async with database.open() as ledger:
        await fill_beside(ledger)
    done = chatledger("export", *words, url=imported)
    assert (done.code, done.err) == (0, f"{LEFT_OUT}{told}\n" if told else "")


async def test_an_export_of_a_tree_leaves_out_no_branch(database: Database, tmp_path: Path) -> None:
    reply = {"role": "assistant", "text": "1", "replies": []}
    tree = {
        "message_tree_id": "t",
        "prompt": {"role": "prompter", "text": "?", "replies": [reply, {**reply, "text": "2"}]},
    }
    (tmp_path / "tree.jsonl").write_text(json.dumps(tree))
    chatledger("import", tmp_path / "tree.jsonl", url=database.url)
    done = chatledger("export", "--all", url=database.url)
    assert (done.code, done.err) == (0, "")
    as_chat = chatledger("export", "--all", "--format", "openai-chat", url=database.url)
    assert "1 branch" in as_chat.err


@pytest.mark.parametrize(
    ("words", "none"),
    [
        (("--model", "X"), "has a run of the model 'X'"),
        (("--model", "X", "--agent", "A"), "has a run of the model 'X' and the agent 'A'"),
        (("--jsonl", "--min-score", "stars=4.5"), "has a mean score of at least 4.5 for 'stars'"),
        (
            ("--user", "ada", "--since", "2020-01-01"),
            "belongs to the user 'ada' and was active since 2020-01-01 00:00:00",
        ),
    ],
)
def test_an_export_that_chooses_nothing_says_so(imported: str, words: tuple[str, ...], none: str) -> None:
    outcome = chatledger("export", *words, url=imported)
    assert (outcome.code, outcome.error) == (0, f"chatledger: 0 of 4 threads: none {none}")


def test_a_format_that_is_only_read_is_not_called_unknown(imported: str) -> None:
    outcome = chatledger("export", "--all", "--format", "oasst", url=imported)
    assert outcome.code == 2
    assert outcome.error.startswith("chatledger: cannot write oasst, except from a file of that format; ")


@pytest.mark.parametrize("name", ["openai", "openai_chat"])
@pytest.mark.parametrize("command", ["export", "show"])
def test_a_format_of_a_like_name_is_suggested(imported: str, command: str, name: str) -> None:
    error = chatledger(command, "a", "--format", name, url=imported).error
    assert error.startswith(f"chatledger: unknown format {name!r}; did you mean 'openai-chat'? Known formats: agent-")
