"""Other callers do not wait for a large request: the event loop does little of it at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatledger import Ledger
from chatledger.models import weight
from chatledger.models.limits import MOST_VALUES
from chatledger.server import create_app
from chatledger.server.requests import json_request
from tests.conftest import Database
from tests.server.conftest import by_header, client_of, json_of
from tests.server.steps import CALLS, Steps, counted

MESSAGES = "/v1/threads/t/messages"
MOST = MOST_VALUES - 20
LONG = "x" * 1_000_000
PARTS = [{"kind": "text", "text": "a"}] * (MOST // 3)
TEXTS = [{"type": "text", "text": "a"}] * (MOST // 3)


def said(role: str, **fields: Any) -> dict[str, Any]:
    return {"create": True, "messages": [{"role": role, **fields}]}


BODIES: dict[str, tuple[str, Any, int]] = {
    "wrong parts": (MESSAGES, said("user", content=[*PARTS, {}]), 400),
    "too many messages": (
        MESSAGES,
        {"create": True, "messages": [{"role": "user", "content": "a"}] * (MOST // 8)},
        413,
    ),
    "lists": (MESSAGES, {"create": True, "payload": [[]] * (MOST // 2)}, 400),
    "an unknown object": (MESSAGES, {"create": True, "payload": {f"k{at}": [] for at in range(MOST // 2)}}, 400),
    "a payload of parts": (MESSAGES, {"create": True, "payload": [{"role": "user", "content": TEXTS}, 0]}, 400),
    "keys": ("/v1/threads", {"metadata": {f"k{at}": 1 for at in range(MOST)}}, 400),
    "items": ("/v1/conversations", {"items": [{"role": "user", "content": TEXTS[:1_400]}] * 6 + [0]}, 400),
    "long texts": (MESSAGES, {"messages": [{"role": "user", "content": LONG}] * 4}, 404),
    "a long payload": (MESSAGES, {"payload": [{"role": "user", "content": LONG}] * 4}, 404),
}


READS = {
    "threads": "/v1/threads?limit=200",
    "runs": "/v1/runs?limit=200",
    "scores": "/v1/feedback?limit=200",
    "revisions": "/v1/threads/long/messages/m1/revisions",
    "parts": "/v1/threads/parts/messages",
    "a prompt of parts": "/v1/threads/parts/prompt?format=openai-chat",
    "unknown parts in a format": "/v1/threads/unknown/messages?format=openai-chat",
    "a prompt of calls": "/v1/threads/calls/prompt?format=openai-chat",
    "long messages": "/v1/threads/long/messages",
    "the page of parts": "/threads/parts",
    "a message of parts as JSON": "/threads/parts/messages/m1/json",
    "a long message as JSON": "/threads/long/messages/m1/json",
}

LONG_ROWS = {"runs": 450_000, "revisions": len(LONG) + 1_000}
"""The characters of a row. The loop decodes one of PostgreSQL, and learns that it is long."""


@pytest.fixture
async def client(ledger: Ledger) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(ledger, authenticate=by_header), "eve") as client:
        for path in {path for path, _, _ in BODIES.values()}:  # the first request of a route prepares it
            await client.post(path, content=b"0")
        for path in READS.values():
            await client.get(path)
        yield client


@pytest.mark.parametrize("name", BODIES)
async def test_a_large_body_is_read_beside_the_loop(client: httpx.AsyncClient, name: str) -> None:
    steps = await steps_of_body(client, name)
    assert steps.is_short, steps


async def steps_of_body(client: httpx.AsyncClient, name: str) -> Steps:
    path, body, status = BODIES[name]
    content = json.dumps(body).encode()
    async with counted() as steps:
        answer = await client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text[:500]
    return steps


@pytest.fixture
async def filled(ledger: Ledger, client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A tenant with what no step of the loop should handle at once."""
    words: dict[str, Any] = {
        "parts": [{"kind": "text", "text": "a"}] * 3_000,
        "unknown": [{"kind": "z", "a": 1}] * 3_000,
        "long": LONG,
    }
    for thread, content in words.items():
        said = [{"role": "user", "content": content, "message_id": f"m{number}"} for number in range(3)]
        json_of(await client.post(f"/v1/threads/{thread}/messages", json={"create": True, "messages": said}), 201)
        other = {"role": "user", "content": content[1:]}
        json_of(await client.put(f"/v1/threads/{thread}/messages/m1", json=other))
    asked = [{"role": "assistant", "tool_calls": [{"id": f"c{number}", "name": "a"} for number in range(2_000)]}]
    json_of(await client.post("/v1/threads/calls/messages", json={"create": True, "messages": asked}), 201)
    data = {"a": [1] * 15_000}
    for number in range(10):
        json_of(await client.post("/v1/threads", json={"metadata": data}), 201)
        run = {"run_id": f"r{number}", "metadata": data, "input": LONG[:400_000]}
        json_of(await client.post("/v1/threads/long/runs", json=run), 201)
        score = {"run_id": "r0", "key": f"k{number}", "score": 1, "kwargs": data}
        json_of(await client.post("/v1/feedback", json=score), 201)
    return client


async def test_a_large_answer_is_written_beside_the_loop(filled: httpx.AsyncClient, database: Database) -> None:
    steps = {name: await steps_of_read(filled, path) for name, path in READS.items()}
    long = {name: one for name, one in steps.items() if not one.is_short}
    assert long.keys() <= (LONG_ROWS.keys() if database.kind == "postgresql" else set())
    assert all(one.calls < CALLS and one.characters <= LONG_ROWS[name] for name, one in long.items()), long


async def steps_of_read(client: httpx.AsyncClient, path: str) -> Steps:
    async with counted() as steps:
        answer = await client.get(path)
    assert answer.status_code == 200, answer.text[:500]
    return steps


@pytest.mark.parametrize("query", ["", "?format=anthropic", "?format=openai-chat", "?format=message-file"])
async def test_no_call_of_c_writes_more_than_a_message(
    filled: httpx.AsyncClient, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, sizes = json.JSONEncoder.encode, list[int]()

    def noting(own: json.JSONEncoder, value: Any) -> str:
        text = encode(own, value)
        sizes.append(len(text))
        return text

    monkeypatch.setattr(json.JSONEncoder, "encode", noting)
    answer = await filled.get(f"/v1/threads/long/messages{query}")
    assert len(answer.content) > 3 * len(LONG)
    assert len(LONG) < max(sizes) < 3 * len(LONG)  # a message has its words twice: as content and as text


async def test_the_count_notices_what_the_loop_does(filled: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight, "LIGHT", 10**9)
    monkeypatch.setattr(json_request, "_LARGE", 10**9)
    steps = {name: await steps_of_body(filled, name) for name in BODIES}
    steps |= {name: await steps_of_read(filled, path) for name, path in READS.items()}
    assert {name: one for name, one in steps.items() if one.is_short} == {}


IMPORTS = """
import sys
from contextlib import suppress
from chatledger import ChatLedgerError, ChatMessage, Ledger
from chatledger.server import Caller, create_app
create_app(Ledger.open(sys.argv[1]), authenticate=Caller)
before = set(sys.modules)
from chatledger.formats import format_names, recognise
from chatledger.formats.history import encode, prompt
with suppress(ChatLedgerError):
    recognise([[]])
messages = [ChatMessage(role="user", content="a")]
for name in format_names():
    with suppress(ChatLedgerError):
        encode(name, messages, kind="dicts")
        prompt(name, messages, "dicts")
print(sorted(name for name in sys.modules.keys() - before if name.startswith("chatledger")))
"""


def test_the_server_has_imported_what_requests_need(tmp_path: Path) -> None:
    words = [sys.executable, "-c", IMPORTS, str(tmp_path / "chat.db")]
    assert subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout == "[]\n"


FROZEN = """
import gc, sys
from chatledger.server.process import ServeOptions, app
ServeOptions(sys.argv[1], "default", None, None, None, [], True).to_environment()
app()
print(gc.get_freeze_count() > 9 * len(gc.get_objects()))
"""


def test_a_collection_does_not_look_at_what_the_server_imported(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FROZEN, str(tmp_path / "chat.db")]
    assert subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout == "True\n"


DESCRIBED = """
import sys
from chatledger.server.process import ServeOptions, app
ServeOptions(sys.argv[1], "default", None, None, None, [], True).to_environment()
print(app().openapi_schema is not None)
"""


def test_the_server_is_described_before_the_first_request(tmp_path: Path) -> None:
    words = [sys.executable, "-c", DESCRIBED, str(tmp_path / "chat.db")]
    assert subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout == "True\n"
