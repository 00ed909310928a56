"""Runs the code blocks of a page, in the order in which a reader meets them.

All blocks of a page share one folder, one environment and one PostgreSQL database. What becomes of a block:

    python       runs. A block with `asyncio.run(` is a program of its own. All others share their names and an event
                 loop, and may use `await` at the top level, as in `python -m asyncio`.
    console      runs each line that begins with "$ ", and compares what it prints with the lines below it, if there
                 are any. `make` and `pip install` are looked up instead: the target, the extra. `uvicorn` and
                 `chatledger serve` are started on a free port, which takes the place of 8000 and 8484 from then on,
                 and stopped with the page. `curl` makes its request without curl.
    text         behind a python block and with the title "Output": what that block prints.
    sql          runs on the SQLite file of the page
    postgresql   runs on the PostgreSQL database of the page
    json, toml   is parsed

A block of Python or JSON whose title is a file's name is written to that file as well.
In expected output, "…" stands for any text within a line. Every `postgresql://` URL means the database of the page,
with the user that it names. A block in another language fails, unless it is one of READ_ONLY.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import asyncpg
import httpx

from chatledger import Ledger, blocking
from tests.cli.commands import chatledger
from tests.docs.parts import ROOT, filled

READ_ONLY = frozenset({"text", "ini", "nginx", "dockerfile", "yaml", "http", "html", "js"})
"""Languages that nothing here runs."""

_COMMAND = re.compile(r"^\$ (.*(?<!\\)(?:\\\n.*(?<!\\))*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_FENCE = re.compile(r"^( *)```(\w+)(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
_SHOWN = re.compile(r'--8<-- "(examples/clients/[^"]+)"\n')
"""A file that `make test-clients` runs."""
_SHELL = re.compile(r"[|<>&;$`]|^(?!chatledger )")
_URL = re.compile(r"postgresql://[^\s\"'`)]*")
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Block(NamedTuple):
    language: str
    title: str
    source: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = filled(page)
    for found in _FENCE.finditer(text):
        indent, language, rest, source = found.groups()
        title = re.search(r'title="(.*?)"', rest)
        lines = "".join(line.removeprefix(indent) for line in source.splitlines(keepends=True))
        yield Block(language, title[1] if title else "", lines, text.count("\n", 0, found.start()) + 2)


def code(page: Path, language: str = "python") -> list[str]:
    return [block.source for block in blocks(page) if block.language == language]


@dataclass
class Reader:
    """Someone who types in every block of a page, in a folder of their own."""

    page: Path
    folder: Path
    pg_url: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    environment: dict[str, str] = field(default_factory=dict)
    printed: str = ""
    port: int | None = None

    def run(self) -> None:
        with asyncio.Runner() as self.runner, contextlib.chdir(self.folder), contextlib.ExitStack() as self.servers:
            try:
                for block in blocks(self.page):
                    self._run(block)
            finally:
                for ledger in [value for value in self.names.values() if isinstance(value, Ledger | blocking.Ledger)]:
                    closing = ledger.close()
                    if inspect.isawaitable(closing):
                        self.runner.run(_wait(closing))

    def _run(self, block: Block) -> None:
        source = _URL.sub(self._here, block.source)
        place = f"{self.page.name}, line {block.line}"
        if block.title.endswith((".py", ".json")):
            (self.folder / block.title).write_text(source, encoding="utf-8")
        match block.language:
            case "python":
                self._run_python(source, block.line)
            case "console":
                for command, shown in re.findall(
                    r"^\$ (.*(?<!\\)(?:\\\n.*(?<!\\))*)\n((?:(?!\$ ).*\n)*)", source, re.M
                ):
                    printed = self._run_command(command.replace("\\\n", ""))
                    if shown:
                        assert_shown(printed, shown, f"{place}: {command}")
            case "text" if block.title == "Output":
                assert_shown(self.printed, source, place)
            case "sql":
                (file,) = self.folder.glob("*.db")
                with contextlib.closing(sqlite3.connect(file)) as connection:
                    connection.executescript(source)
            case "postgresql":
                self.runner.run(self._run_on_server(source))
            case "json":
                json.loads(source)
            case "toml":
                tomllib.loads(source)
            case _ if shown := _SHOWN.fullmatch(source):
                assert (ROOT / shown[1]).is_file(), f"{place}: there is no {shown[1]}"
            case language:
                assert language in READ_ONLY, f"{place}: nothing runs a block in {language!r}"

    def _here(self, found: re.Match[str]) -> str:
        server, named = urlsplit(self.pg_url), urlsplit(found[0])
        user = f"{named.username}@" if named.username else f"{server.username}@" if server.username else ""
        host = (server.netloc).rpartition("@")[2]
        query = "&".join(part for part in (server.query, named.query) if part)
        return f"postgresql://{user}{host}{server.path}" + (query and f"?{query}")

    def _run_python(self, source: str, line: int) -> None:
        out = io.StringIO()
        program = "asyncio.run(" in source
        names = {"__name__": "__main__"} if program else self.names
        shifted = "\n" * (line - 1) + source  # so that a traceback names the line of the page
        code = compile(shifted, str(self.page), "exec", flags=0 if program else _TOP_LEVEL_AWAIT, dont_inherit=True)
        with contextlib.redirect_stdout(out):
            if inspect.CO_COROUTINE & code.co_flags:
                self.runner.run(_wait(eval(code, names)))
            else:
                exec(code, names)
        self.printed = out.getvalue()

    def _run_command(self, command: str) -> str:
        word, *rest = shlex.split(command)
        if word == "export":
            self.environment |= dict(one.split("=", 1) for one in rest)
        elif word == "make":
            assert f"\n{rest[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), command
        elif word in ("pip", "git", "cd"):
            assert_extras(command)
        elif word == "uvicorn":
            self._start_server("uvicorn", rest[0], "--timeout-graceful-shutdown", "1")
        elif command.startswith("chatledger serve"):
            self._start_server("chatledger.cli", *rest)
        elif word == "curl":
            return self._request(rest)
        elif _SHELL.search(command):
            return self._run_in_shell(command)
        else:
            done = chatledger(*rest, url=self.environment.get("CHATLEDGER_URL"), cwd=self.folder)
            assert done.code == 0, f"{command}: exit code {done.code}\n{done.err}"
            return done.out
        return ""

    def _start_server(self, module: str, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            self.port = unused.getsockname()[1]
        command = [sys.executable, "-m", module, *options, "--port", str(self.port)]
        environment = {**os.environ, **self.environment}
        server = self.servers.enter_context(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
        self.servers.callback(server.terminate)
        for _ in range(1000):  # a busy machine takes long to start one
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert server.poll() is None, f"{command} did not start"
            time.sleep(0.1)
        raise AssertionError(f"{command} does not listen")

    def _request(self, words: list[str]) -> str:
        parser = argparse.ArgumentParser("curl", exit_on_error=False, allow_abbrev=False)
        parser.add_argument("-s", "--silent", action="store_true")
        parser.add_argument("-N", "--no-buffer", action="store_true")
        parser.add_argument("-X", "--request")
        parser.add_argument("-H", "--header", action="append", default=[])
        parser.add_argument("--json")
        parser.add_argument("-m", "--max-time", type=float, default=30)
        parser.add_argument("url")
        given = parser.parse_args(words)
        lines = [Path(one[1:]).read_text().rstrip() if one.startswith("@") else one for one in given.header]
        headers = dict(line.split(": ", 1) for line in lines)
        if given.json is not None:
            headers["Content-Type"] = "application/json"
        method = given.request or ("GET" if given.json is None else "POST")
        url = re.sub(r":(8000|8484)/", f":{self.port}/", given.url)
        text = ""
        with (
            contextlib.suppress(httpx.ReadTimeout),  # a stream goes on until curl ends it
            httpx.stream(method, url, headers=headers, content=given.json, timeout=given.max_time) as response,
        ):
            for piece in response.iter_text():
                text += piece
        return text

    def _run_in_shell(self, command: str) -> str:
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=self.folder,
            env={**os.environ, **self.environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stderr}"
        return done.stdout

    async def _run_on_server(self, statements: str) -> None:
        connection = await asyncpg.connect(self.pg_url)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()


async def _wait(coroutine: Any) -> Any:
    return await coroutine


def assert_shown(printed: str, shown: str, place: str) -> None:
    """What was printed is what the page shows; "…" in it stands for any text within a line."""
    pattern = re.escape(shown.rstrip()).replace("…", ".*")
    assert re.fullmatch(pattern, printed.rstrip()), f"{place}: printed\n{printed}"


def assert_extras(command: str) -> None:
    """Every extra of chatledger that the command installs is there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [
        extra.strip() for group in re.findall(r"(?:chatledger|\.)\[(.*?)\]", command) for extra in group.split(",")
    ]
    assert [extra for extra in named if extra not in extras] == [], command
