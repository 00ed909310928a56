"""A process of `chatledger serve`. The options come by the environment, since each worker is a process of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request

from chatledger.formats.registry import load_only
from chatledger.ledger import Ledger
from chatledger.server.agent_service.metadata import read_service
from chatledger.server.app import create_app
from chatledger.server.callers.access import LOOPBACK, Authenticate, Caller
from chatledger.server.callers.chosen_ids import IdsBy
from chatledger.server.callers.local_only import LocalOnly
from chatledger.server.callers.tokens import TokenFile
from chatledger.server.client_limits import ServerLimits
from chatledger.storage.rows.keys import Encryption, read_keys

_OPTIONS = "CHATLEDGER_SERVE"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `chatledger serve` was told."""

    url: str | None
    tenant: str
    keys: str | None
    tokens: str | None
    hosts: list[str] | None
    cors: list[str]
    page: bool
    uds: bool = False
    """Whether the server listens on a socket in the file system."""
    formats: list[str] = field(default_factory=list)
    """The formats of other packages that may be loaded."""
    ids: IdsBy = "client"
    service: str | None = None
    """The file with the metadata of an agent service."""
    limits: dict[str, Any] = field(default_factory=dict)

    def to_environment(self) -> None:
        os.environ[_OPTIONS] = json.dumps(asdict(self))


def app() -> FastAPI:
    """The application of a worker. It ends its event streams when the process is told to stop."""
    options = ServeOptions(**json.loads(os.environ[_OPTIONS]))
    load_only(options.formats)
    encryption = None if options.keys is None else Encryption(read_keys(options.keys))
    authenticate: Authenticate = _administrator(options.tenant) if options.tokens is None else TokenFile(options.tokens)
    application = create_app(
        Ledger.open(options.url, encryption=encryption, notify=True, migrate=False),
        authenticate=authenticate,
        limits=ServerLimits(**options.limits),
        hosts=LOOPBACK if options.tokens is None else options.hosts,
        cors=options.cors,
        page=options.page,
        ids=options.ids,
        service=None if options.service is None else read_service(options.service),
    )
    if options.tokens is None:
        application.add_middleware(LocalOnly, socket=options.uds)
    application.openapi()  # else the first request for it keeps the others waiting
    _drain_at_signals(application)
    _end_with_parent()
    _leave_to_no_collection()
    return application


def _leave_to_no_collection() -> None:
    """Take what was imported out of the garbage collections. Each full one looked at it for 0.1 s, in which no thread
    runs, and a large answer causes several of them.
    """
    gc.collect()
    gc.freeze()


def _administrator(tenant: str) -> Authenticate:
    """Without tokens, whoever reaches the loopback is the owner of the machine."""
    caller = Caller(admin=True, tenant=tenant)

    async def authenticate(request: Request) -> Caller:
        return caller

    return authenticate


def _end_with_parent() -> None:
    """Stop this worker when the process that started it is gone. Killed, it cannot tell its workers to stop, and they
    would keep the port.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="chatledger-parent", daemon=True).start()


def _drain_at_signals(app: FastAPI) -> None:
    """Uvicorn waits for open responses before it ends the lifespan, and an event stream does not end by itself."""
    opened = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop, state = asyncio.get_running_loop(), app.state.server
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def handle(number: int, frame: Any, before: Any = before) -> None:
                loop.call_soon_threadsafe(state.drain)
                if callable(before):
                    before(number, frame)

            signal.signal(number, handle)
        async with opened(app):
            yield

    app.router.lifespan_context = lifespan
