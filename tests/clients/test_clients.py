"""The programs of the guide in other languages, as they stand there, against a real server that is killed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from release.extras import ROOT
from starlette.responses import StreamingResponse

from chatledger import Ledger
from chatledger.server import Caller, TokenFile
from tests import programs
from tests.conftest import Database
from tests.conversations import user
from tests.formats.streams import split_chat
from tests.server.conftest import Serving, listening, serving

FOLDER = ROOT / "examples" / "clients"
MESSAGE = {"role": "assistant", "content": "It stays dry 🌦 until noon. " * 40, "refusal": None}
KILLS = 3


@dataclass
class Kept:
    """A server on one port that is started again after each kill, and a token of Ada's."""

    url: str
    token: str
    port: int
    process: contextlib.ExitStack
    running: Serving | None = None
    tokens: Path = Path()

    def start(self) -> None:
        options = ("--tokens", str(self.tokens), "--port", str(self.port))
        self.running = self.process.enter_context(serving(self.url, *options))
        self.port = int(self.running.url.rpartition(":")[2])

    def kill(self) -> None:
        assert self.running is not None
        self.running.stop(signal.SIGKILL)


@pytest.fixture
async def kept(database: Database, tmp_path: Path) -> AsyncIterator[Kept]:
    async with Ledger.open(database.url) as ledger:
        await ledger.user("ada").messages.append("t", [user("?")], create=True)
    tokens = TokenFile.create(tmp_path / "tokens.json")
    with contextlib.ExitStack() as process:
        server = Kept(database.url, tokens.add(Caller("ada")), 0, process, tokens=tmp_path / "tokens.json")
        await asyncio.to_thread(server.start)
        yield server


def provider() -> FastAPI:
    """It sends the same answer to whoever asks, an event each 5 ms."""
    app = FastAPI()

    async def events() -> AsyncIterator[bytes]:
        for event in split_chat.split(MESSAGE, lambda text: [text[at : at + 5] for at in range(0, len(text), 5)]):
            yield b"data: " + json.dumps(event).encode() + b"\n\n"
            await asyncio.sleep(0.005)
        yield b"data: [DONE]\n\n"

    @app.get("/")
    async def stream() -> StreamingResponse:
        return StreamingResponse(events(), media_type="text/event-stream")

    return app


async def run(kept: Kept, *command: str, kills: int = 0) -> str:
    """What the program prints. The server is killed so often while it runs."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LEDGER_TOKEN": kept.token},
    )
    waiting = asyncio.create_task(process.communicate())
    for _ in range(kills):
        await until_grown(kept)
        kept.kill()
        await asyncio.to_thread(kept.start)
    output, errors = await waiting
    assert process.returncode == 0, errors.decode() + output.decode()
    return output.decode()


async def until_grown(kept: Kept) -> None:
    """Until the answer is longer than it was."""
    before = await length(kept)
    async with asyncio.timeout(60):
        while await length(kept) <= before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def length(kept: Kept) -> int:
    """The characters of the thread so far."""
    async with Ledger.open(kept.url) as ledger:
        history = await ledger.messages.history("t")
        return sum(len(message.text) for message in history) + len(history.draft.text if history.draft else "")


async def finished(kept: Kept) -> Sequence[tuple[str, str]]:
    async with Ledger.open(kept.url) as ledger:
        return [(message.state, message.text) for message in await ledger.messages.history("t")][1:]


async def test_node_adds_pieces(kept: Kept) -> None:
    command = ("node", str(FOLDER / "answer.mjs"), f"http://127.0.0.1:{kept.port}", "t", "request", "Rain? ä")
    message_id = (await run(kept, *command, kills=KILLS)).strip()
    assert await finished(kept) == [("complete", "You asked: Rain? ä 🌧 It rains. " * 20)]
    assert (await run(kept, *command)).strip() == message_id
    assert len(await finished(kept)) == 1


async def test_go_pipes_the_stream_of_a_provider(kept: Kept) -> None:
    async with listening(provider()) as port:
        program = ("go", "run", str(FOLDER / "answer.go"), f"http://127.0.0.1:{kept.port}", "t")
        read_along = await run(kept, *program, "request", f"http://127.0.0.1:{port}/", kills=KILLS)
        assert read_along.count("[DONE]") >= 1
        assert await finished(kept) == [("complete", MESSAGE["content"])]
        await run(kept, *program, "request", f"http://127.0.0.1:{port}/")
    assert len(await finished(kept)) == 1


async def test_curl_pipes_the_stream_of_a_provider(kept: Kept) -> None:
    async with listening(provider()) as port:
        program = (
            str(FOLDER / "answer.sh"),
            f"http://127.0.0.1:{kept.port}",
            "t",
            "request",
            f"http://127.0.0.1:{port}/",
        )
        assert json.loads(await run(kept, *program))["state"] == "complete"
        assert await finished(kept) == [("complete", MESSAGE["content"])]
        assert json.loads(await run(kept, *program))["state"] == "complete"
    assert len(await finished(kept)) == 1


def test_the_programs_are_there() -> None:
    for name in ("curl", "node", "go"):
        assert programs.find([name]), name
