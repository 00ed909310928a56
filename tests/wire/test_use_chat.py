"""The real useChat in a real Chromium, in front of a server that is killed.

`CHATLEDGER_WIRE` is the folder of the built page. With `CHATLEDGER_WIRE_FEW` there are three kills, reloads and answers
and not twenty.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from chatledger.admin import migrate
from tests.browser.conftest import browser, pg_server, pg_url  # noqa: F401 - fixtures
from tests.wire.words import words

FOLDER = Path(os.environ.get("CHATLEDGER_WIRE", ".venv-wire"))
KILLS = ANSWERS = 3 if os.environ.get("CHATLEDGER_WIRE_FEW") else 20
LONGEST = 120.0


class Service:
    """The process of the server. It is killed, and begins again at the same port."""

    def __init__(self, database: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as bound:
            self._port = bound.getsockname()[1]
        self._database = database
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.wire.service", self._database, str(self._port), str(FOLDER)]
        self._process = subprocess.Popen(command)
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            try:
                httpx.get(f"{self.url}/healthz")
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the service does not answer")

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(20)

    def messages(self, thread_id: str) -> list[dict[str, Any]]:
        read = httpx.get(f"{self.url}/v1/threads/{thread_id}/messages")
        return read.json()["items"] if read.status_code == 200 else []


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    database = str(tmp_path / "chat.db") if request.param == "sqlite" else request.getfixturevalue("pg_url")
    with ThreadPoolExecutor(1) as thread:  # the driver of the browser has an event loop in this one
        thread.submit(migrate, database).result()
    running = Service(database)
    try:
        running.start()
        yield running
    finally:
        running.kill()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:  # noqa: F811
    context = browser.new_context()
    yield context.new_page()
    context.close()


def wait(page: Page, reached: str, *arguments: Any) -> None:
    page.wait_for_function(reached, arg=list(arguments), timeout=LONGEST * 1_000)


_TEXT = "(chat.messages.at(-1)?.role === 'assistant' ? chat.messages.at(-1).parts.map(p => p.text ?? '').join('') : '')"
_WATCH = f"""([source]) => {{
  window.wrong = 0;
  const look = () => {{ if (!source.startsWith({_TEXT})) window.wrong += 1; requestAnimationFrame(look); }};
  look();
}}"""


def text_of(page: Page) -> str:
    return str(page.evaluate(_TEXT))


def watch(page: Page, text: str) -> None:
    """Note at each frame whether the page shows something else than a beginning of the text."""
    wait(page, "() => window.chat")
    page.evaluate(_WATCH, [text])


def count(page: Page) -> dict[str, Any]:
    return dict(page.evaluate("window.count"))


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize("kind", ["ascii", "mixed"])
@pytest.mark.parametrize("mode", ["replay", "exact"])
def test_a_node_process_writes_while_the_server_dies_and_the_page_reloads(
    service: Service, page: Page, mode: str, kind: str
) -> None:
    rng = random.Random(f"{mode} {kind}")
    pieces = words(rng, kind)
    text = "".join(pieces)
    asked = {"messages": [{"role": "user", "content": "?"}], "create": True}
    httpx.post(f"{service.url}/v1/threads/t/messages", json=asked).raise_for_status()
    share = len(pieces) // (KILLS + 1)
    with writing(service) as (writer, write):
        write(pieces[:share])
        while not any(one["state"] == "partial" for one in drafts(service)):
            time.sleep(0.05)
        page.goto(f"{service.url}/chat?chat=t&mode={mode}")
        watch(page, text)
        for number in range(1, KILLS + 1):
            write(pieces[share * number : share * (number + 1)] if number < KILLS else pieces[share * number :])
            length = rng.randint(1, max(2, units(text) // (2 * KILLS)))
            wait(page, "([more]) => window.count.received >= more || window.count.ended", length)
            service.kill()
            service.start()
            wait(page, "() => window.count.streams > 1 || window.count.ended || chat.status === 'ready'")
            check(page, mode, text)
            page.reload()
            watch(page, text)
        assert writer.stdin is not None
        writer.stdin.close()
        assert writer.wait(LONGEST) == 0
        assert service.messages("t")[-1]["content"] == text
    wait(page, f"([length]) => {_TEXT}.length >= length", units(text))
    assert text_of(page) == text
    check(page, mode, text)


@contextmanager
def writing(service: Service) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[Sequence[str]], None]]]:
    """A Node process, and what gives it pieces to write: so it is not done before the last kill."""
    node = shutil.which("node")
    assert node is not None
    command = [node, str(Path(__file__).with_name("writer.mjs")), service.url, "t"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as writer:
        try:
            yield writer, lambda pieces: _send(writer, pieces)
        finally:
            writer.kill()


def _send(writer: subprocess.Popen[bytes], pieces: Sequence[str]) -> None:
    assert writer.stdin is not None
    writer.stdin.write(json.dumps(pieces).encode() + b"\n")
    writer.stdin.flush()


def drafts(service: Service) -> list[dict[str, Any]]:
    read = httpx.get(f"{service.url}/v1/threads/t/messages").json()
    return [read["draft"]] if read.get("draft") else []


def check(page: Page, mode: str, text: str) -> None:
    """In the exact mode nothing came twice within the life of the page; and never is anything shown twice."""
    assert page.evaluate("window.wrong") == 0
    counted = count(page)
    if mode == "exact":
        assert counted["received"] <= units(text)
        assert counted["received"] == counted["since"]


def test_an_agent_dies_with_its_server_and_the_page_equals_what_is_stored(service: Service, page: Page) -> None:
    rng = random.Random(ANSWERS)
    page.goto(f"{service.url}/chat?chat=b&mode=exact")
    wait(page, "() => window.chat")
    for number in range(ANSWERS):
        page.evaluate("window.count = {received: 0, since: 0, resets: 0, starts: 0, streams: 0, ended: ''}")
        page.evaluate("([kind]) => { chat.sendMessage({ text: kind }) }", [("ascii", "mixed")[number % 2]])
        wait(page, "([more]) => window.count.received > more", rng.randint(1, 8_000))
        service.kill()
        service.start()
        wait(page, "() => window.count.ended && chat.status === 'ready'")
        stored = service.messages("b")[-1]
        assert (stored["role"], stored["state"]) == ("assistant", "complete")
        counted = count(page)
        assert text_of(page) == stored["content"]
        assert counted["since"] == units(stored["content"])
        assert counted["resets"] + counted["starts"] <= 2
        assert (counted["resets"] == 0) == (counted["received"] == counted["since"])
