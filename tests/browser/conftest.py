"""A real Chromium in front of a real `chatledger serve`. Whatever a test does, the page asks no other host for
anything, and the console has no error: a violation of the Content-Security-Policy would be one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright

from chatledger import blocking
from chatledger.admin import migrate
from tests.browser.chromium import FLAGS, find
from tests.browser.conversations import store
from tests.postgres import Server
from tests.postgres import server as postgres
from tests.server.conftest import Serving, serving

T = TypeVar("T")
expect.set_options(timeout=10_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find(), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with conversations, to copy."""
    path = tmp_path_factory.mktemp("stored") / "chat.db"
    migrate(path)
    with blocking.open(path) as ledger:
        store(ledger)
    return path


@pytest.fixture
def path(stored: Path, tmp_path: Path) -> Path:
    """A database of the test's own."""
    copied = tmp_path / "chat.db"
    shutil.copyfile(stored, copied)
    return copied


@pytest.fixture
def ledger(path: Path) -> Iterator[blocking.Ledger]:
    """Another process than the server's, on the same file."""
    with blocking.open(path) as opened:
        yield opened


@pytest.fixture
def server(path: Path) -> Iterator[Serving]:
    with serving(str(path)) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Serving) -> Iterator[Page]:
    with opened(browser, server) as page:
        yield page


class opened:  # noqa: N801 - used like a function
    """A page of the browser, whose requests and errors are watched until it is closed. `allowed` are parts of the
    errors that the test brings about.
    """

    def __init__(self, browser: Browser, server: Serving, *, allowed: Sequence[str] = (), **options: object) -> None:
        self._allowed = tuple(allowed)
        self._context = browser.new_context(base_url=server.url, **options)
        self._host = server.url
        self._problems: list[str] = []

    def __enter__(self) -> Page:
        page = self._context.new_page()
        page.on("request", lambda sent: self._check(sent.url))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._problems.append(str(error)))
        page.on("dialog", self._dismiss)
        return page

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self._problems.append(said.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self._problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _check(self, url: str) -> None:
        if not url.startswith((f"{self._host}/", "data:")):
            self._problems.append(f"a request to {url}")

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._context.close()
        if kind is None:
            assert [one for one in self._problems if not any(end in one for end in self._allowed)] == []


@contextmanager
def elsewhere(manager: AbstractContextManager[T]) -> Iterator[T]:
    """Enter and leave it in another thread: Playwright has an event loop in this one, beside which none can run."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(manager.__enter__).result()
        thread.submit(manager.__exit__, None, None, None).result()


@pytest.fixture(scope="session")
def pg_server() -> Iterator[Server]:
    with elsewhere(postgres()) as running:
        yield running


@pytest.fixture
def pg_url(pg_server: Server) -> Iterator[str]:
    with elsewhere(pg_server.database()) as url:
        yield url
