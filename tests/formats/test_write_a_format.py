"""The format of docs/contribute/write-a-format.md, as its author's package would have it, works wherever ours do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatLedgerError, Ledger, Oldest, Payload
from chatledger.errors import DecodeError, UnknownFormat
from chatledger.formats import format_names, get_codec, recognise, register, registry
from tests.cli.commands import SOURCE, chatledger
from tests.formats.packages import make_package

PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "write-a-format.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
EXAMPLE = next(block for block in BLOCKS if "class Acme(Codec)" in block)
CHECK = next(block for block in BLOCKS if "check_format" in block)
POINT = re.findall(r"^acme = \"acme_chat:CODEC\"", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]

TALK: list[dict[str, Any]] = [
    {"who": "human", "says": "Oslo?", "at": 17.5},
    {"says": None, "asks": [{"tool": "weather", "id": "1", "with": {"city": "Oslo"}, "cost": 2}], "who": "bot"},
    {"who": "tool", "for": "1", "says": "4 °C"},
    {"who": "bot", "says": "Cold."},
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, installed; no format of it is loaded yet."""
    home = make_package(tmp_path, "acme", POINT.replace('"', ""), acme_chat=f"{EXAMPLE}\n\nCODEC = Acme()\n")
    monkeypatch.setattr(registry, "_FORMATS", registry.Registry(registry._CODECS))
    monkeypatch.syspath_prepend(home)
    yield home
    sys.modules.pop("acme_chat", None)


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.splitlines()) < 80


def test_the_check_of_the_page_passes() -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLE, names)
    exec(CHECK, names)
    names["test_the_format"]()


def test_the_program_of_the_page_registers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FORMATS", registry.Registry(registry._CODECS))
    names: dict[str, Any] = {"register": register}
    exec(EXAMPLE, names)
    exec(next(block for block in BLOCKS if "register(Acme())" in block), names)
    assert recognise(TALK).name == "acme"


@pytest.mark.usefixtures("home")
async def test_a_thread_of_the_format_reads_as_any_other(ledger: Ledger) -> None:
    thread_id = (await ledger.threads.create(rules="strict")).thread_id
    await ledger.messages.append(thread_id, Payload(TALK))
    assert json.dumps((await ledger.messages.history(thread_id)).encode("acme").payload) == json.dumps(TALK)
    for start in range(len(TALK)):
        page = (await ledger.messages.history(thread_id, Oldest(2, after=start), branch=0)).encode("acme")
        assert json.dumps(page.payload) == json.dumps(TALK[start : start + 2])
    chat = await ledger.messages.prompt(thread_id, "openai-chat")
    assert [message["role"] for message in chat.payload] == ["user", "assistant", "tool", "assistant"]
    assert [checked.findings async for checked in ledger.check(thread_id)] == [[]]


@pytest.mark.usefixtures("home")
async def test_a_thread_of_another_format_reads_as_this_one(ledger: Ledger) -> None:
    thread_id = (await ledger.threads.create()).thread_id
    await ledger.messages.append(
        thread_id, Payload(get_codec("openai-chat").encode(get_codec("acme").decode(TALK).messages).payload)
    )
    await ledger.messages.append(
        thread_id, Payload([{"role": "user", "name": "ada", "content": "Thanks"}], "openai-chat")
    )
    history = (await ledger.messages.history(thread_id)).encode("acme")
    assert history.payload[-1] == {"who": "human", "says": "Thanks"}
    assert [(loss.code, loss.seq) for loss in history.losses if loss.seq == 5] == [("name", 5)]


@pytest.mark.usefixtures("home")
async def test_an_invalid_payload_is_refused_with_its_path(ledger: Ledger) -> None:
    thread_id = (await ledger.threads.create()).thread_id
    with pytest.raises(DecodeError, match=r"^\[1\]: expected an object whose `who` is one of boss, human"):
        await ledger.messages.append(thread_id, Payload([TALK[0], {"who": "cat"}], "acme"))
    with pytest.raises(ChatLedgerError, match="acme has no classes of its own"):
        (await ledger.messages.history(thread_id)).encode("acme", as_="models")
    with pytest.raises(UnknownFormat, match="no provider accepts the format 'acme'"):
        await ledger.messages.prompt(thread_id, "acme")  # type: ignore[arg-type]
    assert (await ledger.messages.history(thread_id)).messages == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("named", ["acme", "auto"])
def test_files_are_imported_and_exported(tmp_path: Path, named: str) -> None:
    file, url = tmp_path / "talks.jsonl", str(tmp_path / "ledger.db")
    file.write_text("".join(json.dumps(record) + "\n" for record in ({"messages": TALK, "day": 3}, {"messages": TALK})))
    done = chatledger("import", file, "--format", named, url=url)
    assert done.code == 0, done.err
    assert chatledger("import", file, "--format", named, url=url).code == 0  # stores nothing
    back = chatledger("export", "--all", "--container", "lines", url=url)
    assert [json.loads(line) for line in back.out.splitlines()] == [{"messages": TALK, "day": 3}, {"messages": TALK}]
    assert chatledger("check", url=url).code == 0
    other = chatledger("export", "--all", "--format", "anthropic", url=url)
    assert other.code == 0
    assert "Oslo?" in other.out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("other", [name for name in format_names() if name != "acme"])
def test_files_are_converted(other: str) -> None:
    there = chatledger("convert", "-", "--to", other, given=json.dumps([{"messages": TALK}]).encode())
    assert there.code == 0, there.err
    back = chatledger("convert", "-", "--from", other, "--to", "acme", given=there.out.encode())
    assert back.code == 0, back.err
    assert "Oslo?" in back.out


def test_the_command_line_of_an_environment_with_the_package_knows_it(home: Path) -> None:
    broken = make_package(home.parent, "bolt", "bolt = bolt_chat:CODEC")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, home, broken))), "COLUMNS": "400"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "chatledger.cli", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    listed = run("formats")
    assert listed.returncode == 0
    assert "ACME" in listed.stdout.splitlines()[0].split()
    assert (
        "the format 'bolt' cannot be loaded from bolt_chat:CODEC of the package bolt: ModuleNotFound" in listed.stderr
    )
    table = json.loads(run("formats", "--json").stdout)
    assert table["formats"]["acme"]["tool calls and results"] == "yes"
    assert table["unusable"].keys() == {"bolt"}
    refused = run("convert", "-", "--from", "bolt", "--to", "acme")
    assert refused.returncode != 0
    assert "the format 'bolt' cannot be loaded from bolt_chat:CODEC" in refused.stderr
