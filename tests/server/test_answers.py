"""No answer grows with what a hostile user stores: each ends at 8 MiB, or holds one item."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from chatledger import ChatMessage, ImagePart, Ledger
from chatledger.ids import derived_id
from chatledger.server import create_app
from chatledger.server.answers.pages import LARGEST, MOST_VALUES, fitting
from chatledger.server.answers.sizes import LARGEST_MESSAGE
from chatledger.server.page import conversation, login, media, static, threads, usage
from chatledger.server.query import parameters_of
from chatledger.server.routes import _V1, health
from chatledger.storage.append.request import ANSWER
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history import tokens
from chatledger.storage.history.path import load_path
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.lists import bounded, thread_list
from chatledger.storage.repositories import kv
from tests.server.conftest import by_header, client_of, json_of
from tests.server.steps import CALLS as MOST_CALLS
from tests.server.steps import counted

PAGE = (conversation, login, media, static, threads, usage)
MOST = LARGEST + LARGEST_MESSAGE + 100_000
LONG = "x" * (LARGEST_MESSAGE - 2_000)
METADATA = {"a": "x" * 65_000}
MESSAGES, ITEMS, RUNS, SCORES, THREADS, BRANCHES = 4, 3, 20, 125, 125, 205
PLACE = {
    "thread_id": "t",
    "message_id": "m1",
    "run_id": "r0",
    "conversation_id": "c",
    "item_id": "i0",
    "index": "0",
    "name": "page.css",
    "agent": "a",
}
PLACES = {
    "medium": {**PLACE, "thread_id": "t0", "message_id": "file"},
    "get_answer": {"run_id": ANSWER + derived_id("answer", "default", "asked", "k")},
}
OTHERS = {"/login": 404, "/v1/metrics": 403}
"""The statuses of routes that are of no use to these callers: without tokens, and without an operator."""
_STREAM = re.compile("follow_|resume_chat")
QUERY: dict[str, dict[str, Any]] = {
    "read_prompt": {"format": "openai-chat", "turns": 1},
    "search_messages": {"q": "xxx"},
    "search_threads": {"q": "xxx"},
    "compare_feedback": {"key": "k0"},
    "sum_usage": {"by": ["model", "metadata.a"]},
}


@pytest.fixture
async def eve(ledger: Ledger) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(ledger, authenticate=by_header), "eve") as client:
        yield client


async def fill(eve: httpx.AsyncClient) -> None:
    """Store the longest values of each kind."""
    thread = "/v1/threads/t/messages"
    for number in range(1, MESSAGES + 1):
        message = {"role": "user", "content": LONG, "message_id": f"m{number}"}
        json_of(await eve.post(thread, json={"messages": [message], "create": True}), 201)
    for number in range(3):
        json_of(await eve.put(f"{thread}/m1", json={"role": "user", "content": f"{number}{LONG}"}))
        other = {"role": "user", "content": f"{number}{LONG}"}
        json_of(await eve.post(thread, json={"messages": [other], "alternative_to": "m1"}), 201)
    json_of(await eve.post("/v1/threads/t/branches/0/activate"))
    for number in range(THREADS):
        body = {"thread_id": f"t{number}", "title": "x" * 4_096, "metadata": METADATA}
        json_of(await eve.post("/v1/threads", json=body), 201)
    part = {"kind": "image", "mime_type": "image/png", "data": "A" * (LARGEST_MESSAGE - 4_000)}
    medium = {"role": "user", "content": [part], "message_id": "file"}
    json_of(await eve.post("/v1/threads/t0/messages", json={"messages": [medium]}), 201)
    for number in range(RUNS):
        run = {"run_id": f"r{number}", "model": f"{number}" * 100, "input": "x" * 400_000, "metadata": METADATA}
        json_of(await eve.post("/v1/threads/t/runs", json=run), 201)
    for number in range(SCORES):
        score = {"run_id": "r0", "key": f"k{number}", "score": 1, "kwargs": METADATA, "author": "x" * 4_096}
        json_of(await eve.post("/v1/feedback", json=score), 201)
    for _ in range(BRANCHES):
        json_of(await eve.post("/v1/threads/t/branches", json={"at": None, "activate": False}), 201)
    json_of(await eve.post("/v1/conversations", json={"metadata": {"k": "x" * 512}}))
    await store_conversation(eve)


async def store_conversation(eve: httpx.AsyncClient) -> None:
    PLACE["conversation_id"] = json_of(await eve.post("/v1/conversations", json={}))["id"]
    for number in range(ITEMS):
        item = {"id": f"i{number}", "role": "user", "content": LONG}
        json_of(await eve.post(f"/v1/conversations/{PLACE['conversation_id']}/items", json={"items": [item]}))


def addresses() -> list[tuple[str, dict[str, Any]]]:
    """Each route that reads, of the API and of the page, but for the streams, whose events hold a message each."""
    modules = [("/v1", module) for module in _V1] + [("", module) for module in (health, *PAGE)]
    found = []
    for root, module in modules:
        for route in module.router.routes:
            if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not _STREAM.match(route.name):
                limited = root and "limit" in parameters_of(route.dependant, "query")
                size = {"limit": 100 if "conversations" in route.path else 200} if limited else {}
                found.append(
                    (root + route.path.format(**PLACES.get(route.name, PLACE)), {**size, **QUERY.get(route.name, {})})
                )
    return found


def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The bytes of the rows that are read for each page of a list, from now on."""
    found: list[list[int]] = []

    def noted(rows: Iterable[Any], limit: int) -> bounded.Rows:
        sizes: list[int] = []
        found.append(sizes)
        return take((sizes.append(row[bounded.SIZE]) or row for row in rows), limit)  # type: ignore[func-returns-value]

    take = bounded.take
    for module in (bounded, thread_list, kv):
        monkeypatch.setattr(module, "take", noted)
    return found


async def test_no_answer_is_larger_than_eight_mebibytes_and_a_message(
    ledger: Ledger, eve: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(eve)
    asked = ledger.user("eve").answers.start("asked", LONG, agent="a", idempotency_key="k", create=True)
    assert (await asked).run.run_id == PLACES["get_answer"]["run_id"]
    read = reads(monkeypatch)
    app = create_app(ledger, authenticate=by_header)
    assert len(addresses()) > 30
    largest = 0
    for caller in ("eve", "*"):
        async with client_of(app, caller) as client:
            for path, query in addresses():
                answer = await client.get(path, params=query)
                largest = max(largest, len(answer.content))
                assert len(answer.content) <= MOST, (path, len(answer.content))
                assert answer.status_code == OTHERS.get(path, 200), (path, answer.text[:300])
    assert largest > LARGEST / 2  # the tenant is full
    await ledger.threads.delete("asked")
    await walk(eve)
    assert max(map(sum, read)) > LARGEST / 2
    assert max(sum(sizes[:-1]) for sizes in read) <= LARGEST  # SQLite ends behind the first row that does not fit


def said(role: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, **fields}


NUMBER = int("9" * 4_299)
CALLS = [{"id": f"c{number}", "name": "f", "arguments": "{}"} for number in range(4_000)]
HOSTILE: dict[str, list[dict[str, Any]]] = {
    "images": [said("user", content=[{"kind": "image", "data": "QUJD", "mime_type": "image/png"}] * 7_000)],
    "unknown parts": [said("user", content=[{"kind": "z", "a": 1}] * 7_000)],
    "texts": [said("user", content=[{"kind": "text", "text": "x"}] * 9_900)],
    "halves of pairs": [said("user", content="\ud800" * 690_000)],
    "long numbers": [said("user", custom_data={"a": [NUMBER] * 15})],
    "values in arguments": [
        said("assistant", tool_calls=[{"id": "c", "name": "f", "arguments": '{"a":[' + "{}," * 14_900 + "1]}"}])
    ],
    "open calls": [said("assistant", tool_calls=CALLS)],
    "calls of one id": [
        said("assistant", tool_calls=[{**call, "id": "c"} for call in CALLS]),
        *[said("tool", tool_call_id="c", content="r")] * 900,
    ],
}
"""Messages that are much work for their size, each as large as a body may be."""
SHOWN = (
    "/v1/threads/h/messages?limit=200",
    "/v1/threads/h/messages?limit=200&format=anthropic",
    "/v1/threads/h/prompt?turns=200&format=openai-responses",
    "/threads/h",
)


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_is_much_work_for_its_size_holds_nobody_up(
    ledger: Ledger, eve: httpx.AsyncClient, kind: str
) -> None:
    hello = {"create": True, "messages": [said("user", content="hello")]}
    json_of(await eve.post("/v1/threads/h/messages", json=hello), 201)
    for path in SHOWN:
        await eve.get(path)  # the first request of a route prepares it
    content = json.dumps({"rules": "lenient", "messages": HOSTILE[kind]}).encode()
    async with counted() as steps:
        answer = await eve.post("/v1/threads/h/messages", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text[:300]
    assert steps.calls < 7 * MOST_CALLS, steps  # the driver of PostgreSQL takes each of 9,900 rows in the loop
    for path in SHOWN:
        async with counted() as steps:
            answer = await eve.get(path)
        assert answer.status_code in (200, 413, 422), (path, answer.text[:300])
        assert (len(answer.content) <= MOST, steps.is_short) == (True, True), (path, steps)


async def walk(eve: httpx.AsyncClient) -> None:
    """Each item stands on one page, although the pages are short."""
    counts = {
        "/v1/threads": THREADS + 3,
        "/v1/runs": RUNS,
        "/v1/feedback": SCORES,
        "/v1/threads/t/branches": BRANCHES + 4,
        "/v1/threads/t/messages/m1/revisions": 3,
        "/v1/threads/t/messages/m1/alternatives": 4,
    }
    for path, count in counts.items():
        seen: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            query = {**httpx.URL(path).params, "limit": "200", **({"cursor": cursor} if cursor else {})}
            page = json_of(await eve.get(path.partition("?")[0], params=query))
            seen += [str(one)[:120] + str(one)[-120:] for one in page["items"]]
            pages, cursor = pages + 1, page["next_cursor"]
        assert (len(seen), pages > 1) == (count, True), path
    for size in ({}, {"after": 0, "branch": 0}):
        assert await read_through(eve, size) == list(range(1, MESSAGES + 1))
    for order in ("asc", "desc"):
        ids: list[str] = []
        more = True
        while more:
            after = {"after": ids[-1]} if ids else {}
            path = f"/v1/conversations/{PLACE['conversation_id']}/items"
            page = json_of(await eve.get(path, params={"order": order, **after}))
            assert len(page["data"]) < ITEMS
            ids += [one["id"] for one in page["data"]]
            more = page["has_more"]
        assert sorted(ids) == [f"i{number}" for number in range(ITEMS)]
    for path in ("messages", "prompt"):
        for window in ("", f"&turns={MESSAGES}", "&tokens=999999"):
            refused = await eve.get(f"/v1/threads/t/{path}?format=openai-chat{window}")
            assert json_of(refused, 413)["limit"] in ("bytes of an answer", "tokens")


async def read_through(eve: httpx.AsyncClient, first: dict[str, Any]) -> list[int]:
    seqs: list[int] = []
    query: dict[str, Any] | None = first
    while query is not None:
        page = json_of(await eve.get("/v1/threads/t/messages", params=query))
        assert 1 <= len(page["items"]) < MESSAGES
        seqs += [one["seq"] for one in page["items"]]
        name, cursor = ("after", page["next_cursor"]) if "after" in first else ("before", page["previous_cursor"])
        query = None if cursor is None else {name: cursor}
    return sorted(seqs)


MANY: dict[str, list[Any]] = {"a": [{}] * 14_900}
"""As many values as a body may have. The text has 45 kB, and parsed it takes 1 MB."""
MANY_OF = 5
LISTS_OF_MANY = (
    "/v1/threads",
    "/v1/runs",
    "/v1/feedback",
    "/v1/threads/t/branches",
    "/v1/threads/t/messages",
    "/v1/threads/t/messages/m0/revisions",
    "/v1/threads/t/messages/m0/alternatives",
)


async def fill_with_values(eve: httpx.AsyncClient) -> None:
    messages = "/v1/threads/t/messages"
    for number in range(MANY_OF):
        json_of(await eve.post("/v1/threads", json={"title": "many", "metadata": MANY}), 201)
        message = said("user", content="many", custom_data=MANY)
        own = {**message, "message_id": f"m{number}"}
        json_of(await eve.post(messages, json={"messages": [own], "create": True}), 201)
        json_of(await eve.post("/v1/threads/t/runs", json={"run_id": f"r{number}", "metadata": MANY}), 201)
        score = {"run_id": "r0", "key": f"k{number}", "score": 1, "kwargs": MANY}
        json_of(await eve.post("/v1/feedback", json=score), 201)
    for number in range(MANY_OF):
        json_of(await eve.put(f"{messages}/m0", json={**message, "content": str(number)}))
        other = {"messages": [message], "alternative_to": "m0"}
        json_of(await eve.post(messages, json=other), 201)
    json_of(await eve.post("/v1/threads/t/branches/0/activate"))


async def test_a_page_ends_before_it_has_many_values(ledger: Ledger, eve: httpx.AsyncClient) -> None:
    await fill_with_values(eve)
    for path in LISTS_OF_MANY:
        pages, found, query = 0, 0, {"limit": "200"}
        while query:
            page = await eve.get(httpx.URL(path).copy_merge_params(query))
            assert page.content.count(b"{}") <= MOST_VALUES, path
            pages, found = pages + 1, found + len(json_of(page)["items"])
            way, after = ("before", "previous_cursor") if path.endswith("/messages") else ("cursor", "next_cursor")
            cursor = json_of(page)[after]
            query = {} if cursor is None else {way: cursor}
        assert found >= MANY_OF, path
        assert pages > 1 or path.endswith("/branches"), path
    for window in ("messages?turns=20", "prompt?format=openai-chat", "messages?format=anthropic"):
        refused = json_of(await eve.get(f"/v1/threads/t/{window}"), 413)
        assert refused["limit"] == "JSON values of an answer"
    await store_many_items(eve)


async def store_many_items(eve: httpx.AsyncClient) -> None:
    """The pages of a conversation's items end too."""
    conversation = json_of(await eve.post("/v1/conversations", json={}))["id"]
    path = f"/v1/conversations/{conversation}/items"
    for _ in range(MANY_OF):
        item = {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "f", "input_schema": MANY}]}
        json_of(await eve.post(path, json={"items": [item]}))
    page = await eve.get(path, params={"limit": "100"})
    assert page.content.count(b"{}") <= MOST_VALUES
    assert json_of(page)["has_more"]


async def test_a_page_holds_at_least_one_message(ledger: Ledger, eve: httpx.AsyncClient) -> None:
    imported = [ChatMessage(role="user", content="x" * (LARGEST + 1_000)) for _ in range(2)]
    await ledger.user("eve").messages.append("t", imported, create=True)
    [message] = json_of(await eve.get("/v1/threads/t/messages"))["items"]
    assert message["seq"] == 2
    assert [fitting([9, 1], 8), fitting([4, 4, 1], 8), fitting([], 8)] == [1, 2, 1]


async def test_messages_that_do_not_fit_are_not_read(
    ledger: Ledger, eve: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [ChatMessage(role="user", content="x" * 3_000_000) for _ in range(5)]
    await ledger.user("eve").messages.append("t", long, create=True)
    history, read = Scope.history, []

    async def reading(own: Scope, window: Window) -> Section:
        found = await history(own, window)
        read.append(len(found.messages))
        return found

    monkeypatch.setattr(Scope, "history", reading)
    json_of(await eve.get("/v1/threads/t/messages"))
    json_of(await eve.get("/v1/threads/t/messages?turns=5"), 413)
    assert read == [2, 1]  # with its text beside the content, the second one does not fit


async def test_a_window_by_tokens_is_refused_before_much_of_it_is_read(
    ledger: Ledger, eve: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = ImagePart(mime_type="image/png", data="A" * 3_000_000)
    messages = [ChatMessage(role="user", content=[image]) for _ in range(12)]
    await ledger.user("eve").messages.append("t", messages, create=True)
    load, read = load_path, list[int]()

    def reading(*given: Any) -> list[ChatMessage]:
        found = load(*given)
        read.append(len(found))
        return found

    monkeypatch.setattr(tokens, "load_path", reading)
    for path in ("messages?tokens=1000", "messages?tokens=1000&format=openai-chat", "prompt?format=anthropic&tokens=9"):
        read.clear()
        json_of(await eve.get(f"/v1/threads/t/{path}"), 413)
        assert sum(read) <= 10


async def test_letters_that_take_more_bytes_in_an_answer_count_as_these(ledger: Ledger, eve: httpx.AsyncClient) -> None:
    long = [ChatMessage(role="user", content="é" * 400_000) for _ in range(4)]
    await ledger.user("eve").messages.append("t", long, create=True)
    answer = await eve.get("/v1/threads/t/messages")
    assert len(answer.content) <= LARGEST + 10_000
    assert [one["seq"] for one in json_of(answer)["items"]] == [4]


TOO_LONG = [
    ("/v1/threads", {"title": "é" * 2_049}, "body.title"),
    ("/v1/threads", {"metadata": {"a": "x" * 65_537}}, "body.metadata"),
    ("/v1/threads/t/runs", {"agent": "x" * 513}, "body.agent"),
    ("/v1/threads/t/runs", {"model": "x" * 513}, "body.model"),
    ("/v1/threads/t/runs", {"metadata": {"a": "x" * 65_537}}, "body.metadata"),
    ("/v1/feedback", {"run_id": "r", "score": 1, "key": "x" * 513}, "body.key"),
    ("/v1/feedback", {"run_id": "r", "score": 1, "key": "k", "source": "x" * 513}, "body.source"),
    ("/v1/feedback", {"run_id": "r", "score": 1, "key": "k", "author": "x" * 4_097}, "body.author"),
    ("/v1/threads/t/messages", {"messages": [{"role": "user", "name": "x" * 513}]}, "body.messages.0"),
    ("/v1/threads/t/messages", {"messages": [{"role": "tool", "tool_call_id": "x" * 4_097}]}, "body.messages.0"),
    (
        "/v1/threads/t/messages",
        {"messages": [{"role": "user", "tool_calls": [{"name": "x" * 513}]}]},
        "body.messages.0",
    ),
]


@pytest.mark.parametrize(("path", "body", "place"), TOO_LONG)
async def test_a_long_field_is_refused_with_its_place(
    ledger: Ledger, eve: httpx.AsyncClient, path: str, body: dict[str, Any], place: str
) -> None:
    await ledger.user("eve").threads.create("t")
    assert json_of(await eve.post(path, json=body), 400)["errors"][0]["path"] == place


async def test_a_message_beyond_the_limit_is_refused_and_stores_nothing(ledger: Ledger, eve: httpx.AsyncClient) -> None:
    message = {"role": "user", "content": "x" * (LARGEST_MESSAGE + 1)}
    for body in ({"messages": [message]}, {"payload": [message]}, {"payload": [message], "format": "openai-chat"}):
        refused = await eve.post("/v1/threads/t/messages", json={"create": True, **body})
        assert json_of(refused, 413)["limit"] == "bytes of a message"
    refused = await eve.post("/v1/conversations", json={"items": [message]})
    assert "bytes of message 0" in json_of(refused, 400)["error"]["message"]  # OpenAI has no 413
    assert await ledger.threads.count() == 0


async def test_merged_metadata_does_not_grow_beyond_the_limit(ledger: Ledger, eve: httpx.AsyncClient) -> None:
    await ledger.user("eve").threads.create("t", metadata={"a": "x" * 40_000})
    refused = await eve.patch("/v1/threads/t", json={"metadata": {"b": "x" * 40_000}, "merge": True})
    assert json_of(refused, 413)["limit"] == "bytes of metadata"
    json_of(await eve.patch("/v1/threads/t", json={"metadata": {"a": "x" * 50_000}, "merge": True}))
