"""The commands of the guides to import and to adapters run, and print what stands below them."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.cli.commands import chatledger
from tests.transfer.other_stores import (
    Source,
    add_events,
    add_items,
    add_messages,
    add_session,
    make_adk,
    make_agents,
    make_histories,
    set_shared_state,
)

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Each command of a page, and what is shown below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    yield from re.findall(r"^\$ chatledger (.*)\n((?:(?!\$).*\n)*)", "".join(blocks), re.MULTILINE)


def test_commands_run_and_print_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    for command, shown in commands(DOCS / "guides" / "import-and-export.md"):
        done = chatledger(*shlex.split(command), url="page.db", cwd=tmp_path)
        assert (done.code, command) == (0, command)
        assert not shown or done.out == shown
    assert (tmp_path / "advice.jsonl").read_text(encoding="utf-8").startswith('{"message_tree_id"')
    assert (tmp_path / "train.jsonl").read_text(encoding="utf-8") == ""


def test_stores_of_frameworks_are_moved_in_as_shown(tmp_path: Path, pg_url: str) -> None:
    asyncio.run(make_stores(tmp_path, pg_url))
    found = list(commands(DOCS / "guides" / "adapters" / "index.md"))
    for command, shown in found:
        words = shlex.split(command.replace("postgresql://localhost/chats", pg_url))
        done = chatledger(*words, url="page.db", cwd=tmp_path)
        assert (done.code, done.out, command) == (0, shown, command)
    assert len(found) == 3


async def make_stores(folder: Path, pg_url: str) -> None:
    agents, histories, sessions = (
        Source("sqlite", str(folder / "agents.db")),
        Source("sqlite", str(folder / "history.db")),
        Source("postgresql", pg_url),
    )
    await make_agents(agents)
    for session in ("one", "two"):
        await add_items(agents, session, *({"role": "user", "content": text} for text in "abc"))
    await make_histories(histories)
    for session in ("conversation_123", "conversation_124"):
        said = [{"type": type_, "data": {"content": "Hi", "type": type_}} for type_ in ("human", "ai")]
        await add_messages(histories, session, *said)
    await histories.run("ALTER TABLE message_store RENAME TO my_history")
    await make_adk(sessions)
    await set_shared_state(sessions, {"tone": "calm"}, "ada", {"name": "Ada"})
    await add_session(sessions, "ada", "s")
    event = {
        "id": "e",
        "invocation_id": "i",
        "timestamp": 5.0,
        "author": "user",
        "content": {"parts": [{"text": "Hi"}]},
    }
    await add_events(sessions, "ada", "s", event)
