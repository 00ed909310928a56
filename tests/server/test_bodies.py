"""What a body may hold besides bytes, the limits of each path, and how often a health check asks the database."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from chatledger import ChatMessage, Ledger
from chatledger.models.limits import MOST_VALUES
from chatledger.server import Caller, TokenFile, create_app, json_request, state
from chatledger.server.body_scan import _PIECE, scan
from tests.server.conftest import by_header, client_of, json_of

MANY = MOST_VALUES + 10


FULL: dict[str, Any] = {
    "calls": {"create": True, "messages": [{"role": "assistant", "tool_calls": [0] * MANY}]},
    "parts": {"create": True, "messages": [{"role": "user", "content": [{}] * MANY}]},
    "payload": {"create": True, "payload": [[]] * MANY},
    "kv": {"create": True, "messages": [], "kv": {"a": {"value": [0] * MANY}}},
    "keys": {f"k{number}": 1 for number in range(MANY)},
}


@pytest.mark.parametrize("body", FULL.values(), ids=FULL.keys())
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    ledger: Ledger, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str) -> Any:
        raise AssertionError("the body was parsed")

    monkeypatch.setattr(json_request, "_parse", parse)
    app = create_app(ledger, authenticate=by_header)
    async with client_of(app) as client:
        for path in ("/v1/threads/t/messages", "/v1/threads", "/v1/conversations"):
            refused = await client.post(path, json=body)
            assert refused.status_code == 413
            assert f"{MOST_VALUES:,} values" in refused.text
    assert await ledger.threads.count() == 0


def test_a_scan_counts_values_and_depth_outside_of_strings() -> None:
    values: list[Any] = [
        *(1, [], {}, [1, 2], {"a": [1, {"b": 2}]}, 'a, "quoted" [', "\\", '\\"', ["\\\\", ","], {"[{,": '"]'}),
        *("[,{" * _PIECE, "\\" * (2 * _PIECE + 1), ['"' * _PIECE, ","] * 3, ["é,"] * 9),
    ]
    for value in values:
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
            for blank in range(3):  # so that a piece ends at another sign
                body, deep = b" " * blank + text.encode(), depth(value)
                assert scan(body, deepest=deep).values == counted(value)
                assert scan(body, deepest=deep).deepest <= deep
                assert scan(body, deepest=deep - 1).deepest == deep


def counted(value: Any) -> int:
    """The values in a value. An empty list or object counts twice."""
    if not isinstance(value, dict | list):
        return 1
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + (sum(map(counted, inner)) or 1)


def depth(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


async def test_a_long_text_is_one_value(ledger: Ledger) -> None:
    text = 'prose, with "quotes" and [brackets], {braces} and \\ ' * 40_000
    async with client_of(create_app(ledger, authenticate=by_header)) as client:
        body = {"create": True, "messages": [{"role": "user", "content": text}]}
        stored = json_of(await client.post("/v1/threads/t/messages", json=body), 201)
        assert stored["messages"][0]["content"] == text


async def test_a_large_body_is_read_and_checked_in_a_thread(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = json_request.read_body
    threads: list[threading.Thread] = []

    def reading(body: bytes) -> Any:
        threads.append(threading.current_thread())
        return read(body)

    monkeypatch.setattr(json_request, "read_body", reading)
    json_of(await client.post("/v1/threads", json={"metadata": {"a": "x" * 20_000}}), 201)
    json_of(await client.post("/v1/threads", json={"metadata": {"a": "x"}}), 201)
    assert [one is threading.main_thread() for one in threads] == [False, True]
    wrong = json_of(await client.post("/v1/threads", json={"title": 1, "metadata": {"a": "x" * 20_000}}), 400)
    assert wrong["errors"][0]["path"] == "body.title"


@pytest.mark.parametrize("field", ["content", "reasoning", "tool_calls", "violations"])
def test_the_first_wrong_element_of_a_list_ends_its_check(field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ChatMessage.model_validate({"role": "user", field: [{}] * 1_000})
    assert len(caught.value.errors()) <= 3


async def test_each_form_of_the_page_has_its_own_limit(ledger: Ledger, tmp_path: Path) -> None:
    tokens = TokenFile.create(tmp_path / "tokens.json")
    token = tokens.add(Caller("ada"))
    await ledger.user("ada").threads.create("t")
    limits = {"/login": 8 * 1024, "/logout": 8 * 1024, "/threads/t/score": 65_536, "/threads/t/activate": 65_536}
    async with client_of(create_app(ledger, authenticate=tokens), None, Authorization=f"Bearer {token}") as client:
        for path, most in limits.items():
            for body, refused in ((b"%41" * (most // 3), False), (b"a" * (most + 1), True)):
                answer = await client.post(path, content=body)
                assert (answer.status_code == 413) == refused, (path, answer.text)


async def test_a_long_address_to_return_to_is_forgotten(ledger: Ledger, tmp_path: Path) -> None:
    tokens = TokenFile.create(tmp_path / "tokens.json")
    long, token = "/threads/" + "x" * 3_000, tokens.add(Caller("ada"))
    async with client_of(create_app(ledger, authenticate=tokens), None, at="http://localhost") as client:
        asked = await client.get(long, headers={"Accept": "text/html"})
        assert asked.headers["Location"] == "/login?next="
        assert "xxxx" not in (await client.get("/login", params={"next": long})).text
        assert "xxxx" not in (await client.post("/login", data={"token": "no", "next": long})).text
        assert (await client.post("/login", data={"token": token, "next": long})).headers["Location"] == "/"


async def test_health_checks_share_a_ping_while_it_is_fresh(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_FRESH", 3_600)
    ping, seen = Ledger.ping, []

    async def pinging(ledger: Ledger) -> float:
        seen.append(ledger)
        return await ping(ledger)

    monkeypatch.setattr(Ledger, "ping", pinging)
    answers = await asyncio.gather(*[client.get("/healthz") for _ in range(20)])
    assert len({json_of(one)["seconds"] for one in answers}) == len(seen) == 1
    monkeypatch.setattr(state, "_FRESH", 0)
    json_of(await client.get("/healthz"))
    assert len(seen) == 2
