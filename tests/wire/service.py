"""The service of the tests: `python -m tests.wire.service URL PORT FOLDER`, with the page of the folder at `/chat`.

The agent says other words at each attempt. Whoever asks is Ada.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from chatledger import Ledger
from chatledger.answers import Turn
from chatledger.server import Caller, create_app
from chatledger.server.protocol import Protocol
from tests.wire.words import words

_PAGE = '<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="/chat/page.js"></script>'


async def ada(request: Request) -> Caller | None:
    return Caller("ada")


async def speak(prompt: Any) -> AsyncIterator[str]:
    for word in words(random.SystemRandom(), prompt.payload[-1]["content"]):
        yield word
        await asyncio.sleep(0.02)


async def support(turn: Turn) -> None:
    await turn.ask(speak)


def service(url: str, folder: Path) -> FastAPI:
    app = create_app(Ledger.open(url), authenticate=ada, answers={"support": support}, page=False)

    async def page() -> Response:
        return HTMLResponse(_PAGE)

    async def script() -> Response:
        return FileResponse(folder / "page.js", media_type="text/javascript")

    app.add_api_route("/chat", page)
    app.add_api_route("/chat/page.js", script)
    return app


if __name__ == "__main__":
    database, port, folder = sys.argv[1:]
    uvicorn.run(service(database, Path(folder)), host="127.0.0.1", port=int(port), http=Protocol, log_level="warning")
