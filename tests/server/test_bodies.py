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
from chatledger.models.json import _PIECE, scan
from chatledger.models.limits import MOST_DIGITS, MOST_VALUES
from chatledger.server import Caller, TokenFile, create_app, state
from chatledger.server.requests import json_request
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


@pytest.mark.parametrize("path", ["/v1/threads/t/messages", "/v1/threads"])
async def test_long_numbers_are_refused_with_the_place_of_the_first(
    ledger: Ledger, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str) -> Any:
        raise AssertionError("the body was parsed")

    long = "9" * 4_000
    few, many = (f'{{"a": [{",".join([long] * count)}]}}' for count in (MOST_DIGITS // 4_000, MOST_DIGITS // 4_000 + 1))
    async with client_of(create_app(ledger, authenticate=by_header)) as client:
        said = f'{{"create": true, "messages": [{{"role": "user", "custom_data": {few}}}]}}'
        json_of(await client.post("/v1/threads/t/messages", content=said, headers=JSON), 201)
        monkeypatch.setattr(json_request, "_parse", parse)
        refused = await client.post(path, content=many, headers=JSON)
        assert refused.status_code == 413
        assert f"body.7: numbers of more than 30 digits have more than {MOST_DIGITS:,} digits" in refused.text


JSON = {"Content-Type": "application/json"}
CALL = {"id": "c", "call_id": "c", "name": "f", "type": "function_call"}


def asked(count: int) -> list[dict[str, Any]]:
    """Two messages whose calls have so many values in a text together."""
    text = "[" + "{}," * (count // 4 - 3) + "1]"
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    return [{"role": "assistant", "tool_calls": [{**call, "id": id_}]} for id_ in ("c", "d")]


async def test_the_values_of_arguments_count_as_those_of_the_body(ledger: Ledger) -> None:
    few, many = asked(MOST_VALUES), asked(MOST_VALUES + 100)
    async with client_of(create_app(ledger, authenticate=by_header)) as client:
        path, thread = "/v1/threads/t/messages", {"create": True, "format": "openai-chat"}
        for body in ({**thread, "payload": many}, {"create": True, "messages": own(many)}):
            refused = json_of(await client.post(path, json=body), 413)
            assert refused["limit"] == "values in texts of JSON"
            assert "up to message 1" in refused["detail"]
        items = [{**CALL, "arguments": one["tool_calls"][0]["function"]["arguments"]} for one in many]
        refused = json_of(await client.post("/v1/conversations", json={"items": items}), 400)  # OpenAI has no 413
        assert "values in texts of JSON" in refused["error"]["message"]
        assert await ledger.threads.count() == 0
        json_of(await client.post(path, json={**thread, "payload": few}), 201)
        stored = json_of(await client.get(f"{path}/{await id_of(ledger)}"))
        whole = {**stored, "tool_calls": [{**stored["tool_calls"][0], "arguments": "[" + "1," * MOST_VALUES + "1]"}]}
        assert json_of(await client.put(f"{path}/{stored['message_id']}", json=whole), 413)["limit"]


def own(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages in the ledger's own model."""
    return [
        {"role": "assistant", "tool_calls": [{"id": call["id"], **call["function"]} for call in one["tool_calls"]]}
        for one in messages
    ]


async def id_of(ledger: Ledger) -> str:
    return (await ledger.messages.history("t")).messages[0].message_id or ""


async def test_a_content_that_another_format_reads_as_json_counts_too(ledger: Ledger) -> None:
    content = "[" + "{}," * MOST_VALUES + "1]"
    said = {"role": "tool", "tool_call_id": "c", "content": content}
    async with client_of(create_app(ledger, authenticate=by_header)) as client:
        body = {"create": True, "rules": "lenient", "messages": [{**said, "format": "pydantic-ai", "residual": {}}]}
        json_of(await client.post("/v1/threads/t/messages", json=body), 413)
        json_of(await client.post("/v1/threads/t/messages", json={**body, "messages": [said]}), 201)


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
