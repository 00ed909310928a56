"""Every file that a command writes is private, and is written through nothing that somebody planted in the folder."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatledger.storage.drivers import new_file as module
from chatledger.storage.drivers.new_file import new_file
from chatledger.storage.upgrade.versions import HEAD
from tests.cli.commands import Outcome, chatledger
from tests.conftest import Database

COMMANDS: dict[str, tuple[str, ...]] = {
    "a.json": ("export", "t", "-o", "a.json"),
    "b.jsonl": ("export", "--jsonl", "-o", "b.jsonl"),
    "c.html": ("show", "t", "--html", "c.html"),
    "d.json": ("convert", "talk.json", "--to", "anthropic", "-o", "d.json"),
    "e.db": ("backup", "e.db"),
    "f.db": ("restore", "copy.db", "--url", "f.db"),
    "frames": ("export", "--parquet", "frames"),
    "g.db": ("migrate", "--url", "g.db"),
    "l.db": ("migrate", "--to", "0004"),
    "h.json": ("token", "--tokens", "h.json", "--user", "ada"),
    "i.db": ("demo", "--url", "i.db"),
}
"""The commands that write a file, by the name that they are given."""
REPLACE = ("a.json", "b.jsonl", "c.html", "d.json")
REFUSE = ("e.db", "f.db")

_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is None:
        return
    if event == "sqlite3.connect":
        _opened.append(str(arguments[0]).removeprefix("file:").partition("?")[0])
    elif event == "open" and isinstance(arguments[0], (str, Path)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        _opened.append(str(arguments[0]))
    elif event in ("os.rename", "os.link"):
        _opened.append(str(arguments[1]))


sys.addaudithook(_note)  # it stays for the process, and does nothing while nobody listens


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of everybody's, with a ledger, its backup and a file to convert."""
    talk = [{"role": "user", "content": "Tokyo?"}, {"role": "assistant", "content": "Sunny."}]
    (tmp_path / "talk.json").write_text(json.dumps([{"id": "t", "messages": talk}]))
    before = os.umask(0)
    assert chatledger("import", "talk.json", "--thread-field", "id", url="l.db", cwd=tmp_path).code == 0
    assert chatledger("backup", "copy.db", url="l.db", cwd=tmp_path).code == 0
    (tmp_path / "victim").write_text("precious")
    yield tmp_path
    os.umask(before)


def run(folder: Path, name: str) -> Outcome:
    return chatledger(*COMMANDS[name], url="l.db", cwd=folder)


def files(folder: Path) -> dict[str, Path]:
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_file_is_private_and_no_other_stays(folder: Path, name: str) -> None:
    before = files(folder)
    outcome = run(folder, name)
    assert outcome.code == 0, outcome.err
    new = files(folder).items() - before.items()
    assert new
    assert {file: f"{path.stat().st_mode & 0o777:o}" for file, path in new} == {file: "600" for file, _ in new}
    derived = {f"l.db.{HEAD}.bak"} | {f"frames/{frame}.parquet" for frame in ("messages", "calls", "runs", "scores")}
    assert {file for file, _ in new} <= {name, *derived}


@pytest.mark.parametrize("name", ["a.json", "b.jsonl", "c.html", "frames"])
def test_an_export_of_either_database_is_private(database: Database, folder: Path, name: str) -> None:
    assert chatledger("import", "talk.json", "--thread-field", "id", url=database.url, cwd=folder).code == 0
    before = files(folder)
    outcome = chatledger(*COMMANDS[name], url=database.url, cwd=folder)
    assert outcome.code == 0, outcome.err
    new = [path for file, path in files(folder).items() if file.startswith(name) and file not in before]
    assert new
    assert {f"{path.stat().st_mode & 0o777:o}" for path in new} == {"600"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_link_at_a_name_that_a_command_makes_up_is_not_followed(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the command once to learn the names that it opens and makes, then again with a link at each of them."""
    global _opened
    before = set(files(folder))
    content = (folder / "l.db").read_bytes()
    _opened = []
    assert run(folder, name).code == 0
    names, _opened = {os.path.join(folder, one) for one in _opened}, None
    for file in set(files(folder)) - before:
        (folder / file).unlink()
    (folder / "l.db").write_bytes(content)
    kept = {str(folder / one) for one in (*before, name)}
    derived = {one for one in names if one.startswith(f"{folder}/") and one not in kept}
    for one in derived:
        Path(one).symlink_to(folder / "victim")
    run(folder, name)
    assert (folder / "victim").read_text() == "precious"
    if name in ("frames", "l.db"):
        assert derived  # or nothing was tried


@pytest.mark.parametrize("name", REFUSE)
@pytest.mark.parametrize("ending", ["", "-journal", "-wal"])
def test_a_copy_takes_no_name_that_is_taken(folder: Path, name: str, ending: str) -> None:
    (folder / f"{name}{ending}").symlink_to(folder / "nowhere")
    outcome = run(folder, name)
    assert (outcome.code, "exists already" in outcome.error) == (3, True)
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("name", REPLACE)
def test_an_export_replaces_a_file_that_others_could_read(folder: Path, name: str) -> None:
    (folder / name).write_text("older")
    (folder / name).chmod(0o666)
    assert run(folder, name).code == 0
    assert (folder / name).read_text() != "older"
    assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_a_migration_leaves_the_copy_of_an_earlier_one_alone(folder: Path) -> None:
    (folder / f"l.db.{HEAD}.bak").symlink_to(folder / "victim")
    assert run(folder, "l.db").code == 0
    assert (folder / "victim").read_text() == "precious"
    assert (folder / f"l.db.{HEAD}.2.bak").read_bytes()[:6] == b"SQLite"


def test_a_file_that_is_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(FileExistsError), new_file(target) as made:
        made.write_text("ours")
        target.write_text("theirs")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"copy.db": "theirs"}


def test_without_hard_links_nothing_is_overwritten_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with new_file(tmp_path / "a") as made:
        made.write_text("ours")
    assert (tmp_path / "a").read_text() == "ours"
    with pytest.raises(FileExistsError), new_file(tmp_path / "a") as made:
        made.write_text("other")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_name_that_was_guessed_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _size: "guessed")
    (tmp_path / ".chatledger-guessed.unfinished").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError), module.new_file(tmp_path / "a"):
        pass
    assert not (tmp_path / "victim").exists()
