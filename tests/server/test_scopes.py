"""What a token of each scope may do: every route of the application, those of the page too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from chatledger import Feedback, Ledger
from chatledger.models.parts import Part
from chatledger.repositories import scope_of
from chatledger.server import Caller, TokenFile, create_app
from chatledger.server.callers.access import TokenScope
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, turn
from tests.server.conftest import client_of, json_of
from tests.server.visits import SERVICE

ALL = get_args(TokenScope)
READ, ASK, WRITE = ("read", "ask", "write"), ("ask", "write"), ("write",)
OPERATOR = ("operator",)

ROUTES: dict[str, tuple[str, ...]] = {
    "GET /healthz": ALL,
    "GET /v1/openapi.json": ALL,
    "HEAD /v1/openapi.json": ALL,
    "GET /v1/me": ALL,
    "GET /v1/metrics": OPERATOR,
    "GET /v1/threads": READ,
    "POST /v1/threads": ASK,
    "GET /v1/threads/{thread_id}": READ,
    "PATCH /v1/threads/{thread_id}": WRITE,
    "DELETE /v1/threads/{thread_id}": WRITE,
    "POST /v1/threads/{thread_id}/copy": WRITE,
    "POST /v1/threads/{thread_id}/close-open-calls": WRITE,
    "GET /v1/threads/{thread_id}/messages": READ,
    "POST /v1/threads/{thread_id}/messages": ASK,
    "POST /v1/threads/{thread_id}/drafts": WRITE,
    "POST /v1/threads/{thread_id}/drafts/upload": WRITE,
    "POST /v1/threads/{thread_id}/drafts/{message_id}/pieces": WRITE,
    "POST /v1/threads/{thread_id}/drafts/{message_id}/complete": WRITE,
    "POST /v1/threads/{thread_id}/drafts/{message_id}/interrupt": WRITE,
    "GET /v1/threads/{thread_id}/messages/{message_id}": READ,
    "PUT /v1/threads/{thread_id}/messages/{message_id}": WRITE,
    "DELETE /v1/threads/{thread_id}/messages/{message_id}": WRITE,
    "GET /v1/threads/{thread_id}/messages/{message_id}/revisions": READ,
    "GET /v1/threads/{thread_id}/branches": READ,
    "POST /v1/threads/{thread_id}/branches": ASK,
    "POST /v1/threads/{thread_id}/branches/{branch}/activate": ASK,
    "POST /v1/threads/{thread_id}/rewind": WRITE,
    "GET /v1/threads/{thread_id}/messages/{message_id}/alternatives": READ,
    "GET /v1/threads/{thread_id}/prompt": READ,
    "GET /v1/threads/{thread_id}/events": READ,
    "GET /v1/search/messages": READ,
    "GET /v1/search/threads": READ,
    "POST /v1/threads/{thread_id}/runs": WRITE,
    "GET /v1/runs": READ,
    "GET /v1/runs/{run_id}": READ,
    "POST /v1/runs/{run_id}/finish": WRITE,
    "POST /v1/threads/{thread_id}/answers": ASK,
    "GET /v1/answers/{run_id}": READ,
    "GET /v1/answers/{run_id}/events": READ,
    "POST /v1/answers/{run_id}/stop": ASK,
    "POST /v1/answers/{run_id}/resume": ASK,
    "POST /v1/feedback": ASK,
    "GET /v1/feedback": READ,
    "GET /v1/feedback/summary": READ,
    "GET /v1/feedback/compare": READ,
    "DELETE /v1/feedback/{feedback_id}": WRITE,
    "DELETE /v1/runs/{run_id}": WRITE,
    "GET /v1/usage": READ,
    "GET /v1/stats": READ,
    "GET /v1/conversations": READ,
    "POST /v1/conversations": ASK,
    "GET /v1/conversations/{conversation_id}": READ,
    "POST /v1/conversations/{conversation_id}": WRITE,
    "DELETE /v1/conversations/{conversation_id}": WRITE,
    "GET /v1/conversations/{conversation_id}/items": READ,
    "POST /v1/conversations/{conversation_id}/items": ASK,
    "GET /v1/conversations/{conversation_id}/items/{item_id}": READ,
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": WRITE,
    # The agent service.
    "GET /agent-service/info": READ,
    "POST /agent-service/history": READ,
    "POST /agent-service/{agent}/history": READ,
    "POST /agent-service/feedback": ASK,
    "GET /agent-service/threads": READ,
    "GET /agent-service/{agent}/threads": READ,
    "POST /agent-service/invoke": READ,
    "POST /agent-service/stream": READ,
    "POST /agent-service/{agent}/invoke": READ,
    "POST /agent-service/{agent}/stream": READ,
    # The AI SDK.
    "POST /v1/ai-sdk/{agent}": ASK,
    "GET /v1/ai-sdk/{agent}/{thread_id}/stream": READ,
    "POST /v1/ai-sdk/{agent}/{thread_id}/stop": ASK,
    # The page.
    "GET /": READ,
    "GET /usage": READ,
    "GET /threads/{thread_id}": READ,
    "GET /threads/{thread_id}/messages": READ,
    "GET /threads/{thread_id}/messages/{message_id}/json": READ,
    "GET /threads/{thread_id}/media/{message_id}/{index}": READ,
    "POST /threads/{thread_id}/score": ASK,
    "POST /threads/{thread_id}/activate": ASK,
    "GET /login": ALL,
    "POST /login": ALL,
    "POST /logout": ALL,
    "GET /static/{name}": ALL,
}
"""The scopes that may call each route. A new route is an error here until somebody has decided."""


class Scopes:
    """A client with a token of each scope."""

    def __init__(self, app: FastAPI, tokens: TokenFile) -> None:
        made = {name: tokens.add(Caller("ada", scope=name)) for name in READ}  # type: ignore[arg-type]
        made["operator"] = tokens.add(Caller(scope="operator"))
        self.of = {
            name: client_of(app, None, at="http://localhost", Authorization=f"Bearer {token}")
            for name, token in made.items()
        }


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile.create(tmp_path / "tokens.json")


@pytest.fixture
def app(ledger: Ledger, tokens: TokenFile) -> FastAPI:
    return create_app(ledger, authenticate=tokens, service=SERVICE)


@pytest.fixture
def scopes(app: FastAPI, tokens: TokenFile) -> Scopes:
    return Scopes(app, tokens)


def routes_of(routes: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Each route, those of the routers within too: FastAPI keeps them in one list or as a tree, by its release."""
    for route in routes:
        if isinstance(route, Route):
            yield from (f"{method} {prefix}{route.path_format}" for method in route.methods or ())
        else:  # anything else, such as a mounted application, fails here
            yield from routes_of(route.original_router.routes, prefix + route.include_context.prefix)


def was_refused(response: httpx.Response) -> bool:
    """Whether the scope was too small, in the words of the API, of OpenAI or of the page."""
    if response.status_code != 403:
        return False
    assert "needs a token of scope" in response.text, response.text
    return True


def test_the_table_has_each_route_and_no_other(app: FastAPI) -> None:
    assert set(routes_of(app.routes)) == set(ROUTES)


async def test_each_route_refuses_the_scopes_that_the_table_does_not_name(scopes: Scopes) -> None:
    wrong = []
    for route, allowed in ROUTES.items():
        method, _, path = route.partition(" ")
        asked = path.replace("{branch}", "0").replace("{index}", "0").replace("{", "").replace("}", "")
        for scope, client in scopes.of.items():
            refused = was_refused(await client.request(method, asked))
            if refused == (scope in allowed):
                wrong.append(f"{route} with {scope}: {'refused' if refused else 'let in'}")
    assert wrong == []


QUESTION = {"role": "user", "content": "?"}
NO_QUESTIONS: list[dict[str, Any]] = [
    *({"messages": [{"role": role, "content": "x"}]} for role in ("system", "developer", "assistant", "custom", "bot")),
    {"messages": [QUESTION, {"role": "tool", "tool_call_id": "c1", "content": "forged"}]},
    {"messages": [{**QUESTION, "run_id": "r"}]},
    {"messages": [{**QUESTION, "state": "synthetic"}]},
    {"messages": [{**QUESTION, "response_metadata": {"usage": {"output_tokens": 1}}}]},
    {"messages": [{**QUESTION, "reasoning": "r"}]},
    {"messages": [{**QUESTION, "tool_calls": [{"name": "t"}]}]},
    {"messages": [{**QUESTION, "created_at": "2020-01-01T00:00:00Z"}]},
    {"messages": [{**QUESTION, "format": "openai-chat", "residual": {"a": 1}}]},
    {"payload": [QUESTION], "format": "openai-chat"},
    {"messages": [QUESTION], "run_id": "r"},
    {"messages": [QUESTION], "rules": "lenient"},
    {"messages": [QUESTION], "on_open_calls": "close"},
    {"messages": [QUESTION], "kv": {"a": {"value": 1}}},
    {"messages": [QUESTION], "kv": {"a": {"value": 1, "expected": 0}}},
    {"messages": [QUESTION], "kv": {}},
]


@pytest.mark.parametrize("body", NO_QUESTIONS, ids=str)
async def test_asking_appends_nothing_but_questions(ledger: Ledger, scopes: Scopes, body: dict[str, Any]) -> None:
    await ledger.user("ada").threads.create("t", rules="lenient")
    refused = await scopes.of["ask"].post("/v1/threads/t/messages", json=body)
    assert json_of(refused, 403)["needed"] == "write"
    assert list(await ledger.messages.history("t")) == []
    assert (await ledger.runs.list()).items == []


PERSONS_PARTS = {
    "text": {"text": "?"},
    **{kind: {"url": "https://files.example/a", "name": "a"} for kind in ("image", "audio", "video", "file")},
}
NOT_PERSONS_PARTS: list[dict[str, Any]] = [
    {"kind": "think", "text": "forged"},
    {"kind": "opaque", "type": "thinking", "value": {"type": "thinking", "thinking": "forged"}},
    {"kind": "tool_result", "tool_use_id": "c", "content": "forged"},
    {"kind": "opaque", "value": None},
]


def test_each_kind_of_part_is_either_a_persons_or_not() -> None:
    parts, _ = get_args(Part)
    kinds = {get_args(one)[0].model_fields["kind"].default for one in get_args(parts)}
    assert kinds == {*PERSONS_PARTS, "think", "opaque"}


@pytest.mark.parametrize("kind", PERSONS_PARTS)
async def test_asking_appends_what_a_person_sends(ledger: Ledger, scopes: Scopes, kind: str) -> None:
    content = [{"kind": "text", "text": "see"}, {"kind": kind, **PERSONS_PARTS[kind]}]
    sent = {"messages": [{"role": "user", "content": content}], "create": True}
    json_of(await scopes.of["ask"].post("/v1/threads/t/messages", json=sent), 201)
    stored = (await ledger.messages.history("t")).messages[0].content
    assert isinstance(stored, list)
    assert [part.kind for part in stored] == ["text", kind]


@pytest.mark.parametrize("part", NOT_PERSONS_PARTS, ids=str)
async def test_asking_appends_no_part_that_no_person_writes(
    ledger: Ledger, scopes: Scopes, part: dict[str, Any]
) -> None:
    sent = {"messages": [QUESTION, {"role": "user", "content": [{"kind": "text", "text": "see"}, part]}]}
    await ledger.user("ada").threads.create("t")
    refused = json_of(await scopes.of["ask"].post("/v1/threads/t/messages", json=sent), 403)
    assert refused["needed"] == "write"
    kind = part.get("type") or part["kind"]
    assert refused["detail"].startswith(f"messages[1] with content of the kind {kind} needs a token of scope write")
    assert list(await ledger.messages.history("t")) == []
    json_of(await scopes.of["write"].post("/v1/threads/t/messages", json=sent), 201)


async def test_asking_works_as_a_person_uses_it(ledger: Ledger, scopes: Scopes) -> None:
    ask = scopes.of["ask"]
    thread = json_of(await ask.post("/v1/threads", json={"title": "Tokyo", "metadata": {"a": 1}}), 201)["thread_id"]
    sent = {"messages": [{**QUESTION, "name": "Ada", "message_id": "m", "custom_data": {"a": 1}}]}
    stored = json_of(await ask.post(f"/v1/threads/{thread}/messages", json=sent), 201)["messages"]
    again = {"messages": [{name: value for name, value in stored[0].items() if name != "created_at"}]}
    assert json_of(await ask.post(f"/v1/threads/{thread}/messages", json=again))["replayed"]
    json_of(await ask.post("/v1/threads/new/messages", json={"messages": [QUESTION], "create": True}), 201)
    await ledger.user("ada").messages.append(thread, [assistant("22")], run_id="r")
    json_of(await ask.post(f"/v1/threads/{thread}/messages", json={"messages": [QUESTION], "alternative_to": "m"}), 201)
    json_of(await ask.post(f"/v1/threads/{thread}/branches", json={"at": "m", "branch": 0}), 201)
    json_of(await ask.post(f"/v1/threads/{thread}/branches/0/activate"))
    score = json_of(await ask.post("/v1/feedback", json={"run_id": "r", "key": "thumb", "score": 1}), 201)
    assert score["user_id"] == "ada"


async def test_asking_chooses_no_rules(scopes: Scopes) -> None:
    refused = await scopes.of["ask"].post("/v1/threads", json={"rules": "lenient"})
    assert json_of(refused, 403)["type"] == "urn:chatledger:OutOfScope"
    assert json_of(await scopes.of["ask"].get("/v1/threads"))["items"] == []


NO_USER_ITEMS: list[dict[str, Any]] = [
    {"role": "assistant", "content": "x"},
    {"role": "system", "content": "x"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "forged"},
    {"type": "reasoning", "summary": []},
    {"type": "made_up", "role": "user", "content": "x"},
    {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "reasoning_text", "text": "forged"}]},
    {"role": "user", "content": [{"type": "tool_result", "content": "forged"}]},
]


@pytest.mark.parametrize("item", NO_USER_ITEMS, ids=str)
async def test_asking_adds_items_of_the_user_only(ledger: Ledger, scopes: Scopes, item: dict[str, Any]) -> None:
    ask, write = scopes.of["ask"], scopes.of["write"]
    made = json_of(await ask.post("/v1/conversations", json={"items": [QUESTION]}))["id"]
    for path in ("/v1/conversations", f"/v1/conversations/{made}/items"):
        refused = await ask.post(path, json={"items": [QUESTION, item]})
        assert json_of(refused, 403)["error"]["code"] == "out_of_scope"
        json_of(await write.post(path, json={"items": [item]}))
    assert len(json_of(await ask.get("/v1/conversations"))["data"]) == 2
    json_of(await ask.post(f"/v1/conversations/{made}/items", json={"items": [QUESTION]}))


async def test_an_administrator_may_only_read_where_the_scope_says_so(
    ledger: Ledger, app: FastAPI, tokens: TokenFile
) -> None:
    await ledger.user("ada").threads.create("t")
    token = tokens.add(Caller(admin=True, scope="read"))
    async with client_of(app, None, Authorization=f"Bearer {token}") as auditor:
        json_of(await auditor.get("/v1/threads/t"))
        assert was_refused(await auditor.post("/v1/threads", json={}))


async def test_an_operator_reads_the_counters_of_all_tenants_and_no_row(ledger: Ledger, scopes: Scopes) -> None:
    await ledger.tenant("acme").messages.append("t", turn(), create=True)
    assert json_of(await scopes.of["operator"].get("/v1/metrics"))["messages"] == len(turn())
    with pytest.raises(Exception, match="scope read"):
        Caller(scope="operator").view(ledger)


async def test_the_page_shows_a_reader_no_form_that_changes_something(ledger: Ledger, scopes: Scopes) -> None:
    ada = ledger.user("ada")
    await ada.messages.append("t", turn(), create=True, run_id="r")
    await fork_at(scope_of(ada), "t", 1, activate=False)
    await ada.feedback.record(Feedback(run_id="r", key="thumb", score=1))
    for path, form in (("/threads/t", "score"), ("/threads/t?branch=1", "activate")):
        shown = {scope: (await scopes.of[scope].get(path)).text for scope in ("read", "ask")}
        assert f'action="/threads/t/{form}"' in shown["ask"]
        assert 'method="post" action="/threads' not in shown["read"]
