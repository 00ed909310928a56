"""The routes of an agent service, live: each request goes over a socket, as the client of such a service sends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatledger import ChatMessage, Ledger, Payload
from chatledger.formats.agent_service import ChatHistory
from chatledger.formats.agent_service import ChatMessage as ServiceMessage
from chatledger.server import AgentInfo, Caller, ServerLimits, ServiceMetadata, TokenFile, create_app
from tests.conversations import assistant, call, result, turn, user
from tests.server.conftest import json_of, listening, serving

SERVICE = ServiceMetadata(
    agents=[AgentInfo(key="chatbot", description="Talks."), AgentInfo(key="research/1", description="Searches.")],
    models=["gpt-5-nano", "claude-haiku-4-5"],
    default_agent="chatbot",
    default_model="gpt-5-nano",
)
HISTORY = [
    ServiceMessage(type="human", content="What's the weather in Tokyo?"),
    ServiceMessage(
        type="ai",
        content="",
        tool_calls=[{"name": "weather", "args": {"place": "Tokyo", "days": 2}, "id": "c1", "type": "tool_call"}],
        run_id="r1",
        response_metadata={"model_name": "gpt-5-nano", "usage": {"output_tokens": 12}},
    ),
    ServiceMessage(type="tool", content="22 °C", tool_call_id="c1", run_id="r1"),
    ServiceMessage(type="custom", content="", run_id="r1", custom_data={"state": "running", "steps": [1, None, "ü"]}),
    ServiceMessage(type="ai", content="It is 22 °C.", run_id="r1"),
]
As = Callable[..., httpx.AsyncClient]


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile.create(tmp_path / "tokens.json")


@pytest.fixture
async def clients(ledger: Ledger, tokens: TokenFile) -> AsyncIterator[As]:
    """Makes a client with a token of a caller, or with none, of a server that listens."""
    app = create_app(ledger, authenticate=tokens, service=SERVICE, limits=ServerLimits(page=6))
    async with AsyncExitStack() as open_until, listening(app) as port:
        made: list[httpx.AsyncClient] = []

        def client(caller: Caller | None) -> httpx.AsyncClient:
            given = {} if caller is None else {"Authorization": f"Bearer {tokens.add(caller)}"}
            url = f"http://127.0.0.1:{port}/agent-service"
            made.append(httpx.AsyncClient(base_url=url, headers=given, timeout=60))
            open_until.push_async_callback(made[-1].aclose)
            return made[-1]

        yield client


@pytest.fixture
def ada(clients: As) -> httpx.AsyncClient:
    return clients(Caller("ada"))


@pytest.fixture
def admin(clients: As) -> httpx.AsyncClient:
    return clients(Caller(admin=True))


# --- The agents -------------------------------------------------------------------------------------------------------


async def test_info_is_what_the_server_was_given(ada: httpx.AsyncClient) -> None:
    assert ServiceMetadata.model_validate(json_of(await ada.get("/info"))) == SERVICE


async def test_the_routes_are_there_only_if_a_service_is_given(ledger: Ledger, tokens: TokenFile) -> None:
    app = create_app(ledger, authenticate=tokens)
    headers = {"Authorization": f"Bearer {tokens.add(Caller('ada'))}"}
    async with listening(app) as port, httpx.AsyncClient(headers=headers, timeout=60) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/agent-service/info")).status_code == 404


async def test_the_description_of_the_api_leaves_them_out(ledger: Ledger, tokens: TokenFile) -> None:
    described = create_app(ledger, authenticate=tokens, service=SERVICE).openapi()
    assert "agent-service/" not in str(described["paths"])
    assert described["paths"].keys() == create_app(ledger, authenticate=tokens).openapi()["paths"].keys()


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "nobody/history"), ("GET", "nobody/threads"), ("POST", "nobody/invoke"), ("POST", "nobody/stream")],
)
async def test_an_unknown_agent_is_not_found(ada: httpx.AsyncClient, method: str, path: str) -> None:
    refused = json_of(await ada.request(method, f"/{path}", json={"thread_id": "t", "message": "?"}), 404)
    assert refused["type"] == "urn:chatledger:AgentNotFound"
    assert refused["detail"] == "there is no agent 'nobody', only 'chatbot' and 'research/1'"


@pytest.mark.parametrize("path", ["invoke", "stream", "chatbot/invoke", "research%2F1/stream"])
async def test_nothing_is_run_here_and_the_answer_says_why(
    clients: As, ada: httpx.AsyncClient, ledger: Ledger, path: str
) -> None:
    body: dict[str, Any] = {"message": "?", "thread_id": "t", "user_id": None, "model": None, "agent_config": {}}
    for client in (ada, clients(Caller("ada", scope="read"))):
        refused = json_of(await client.post(f"/{path}", json=body), 501)
        assert "stores conversations and runs no agent" in refused["detail"]
    assert await ledger.threads.count() == 0


# --- The history ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["history", "chatbot/history"])
async def test_a_history_is_what_was_stored(ada: httpx.AsyncClient, ledger: Ledger, path: str) -> None:
    await ledger.user("ada").messages.append("t", Payload(ChatHistory(messages=HISTORY)), create=True)
    answer = json_of(await ada.post(f"/{path}", json={"thread_id": "t"}))
    assert ChatHistory.model_validate(answer).messages == HISTORY
    assert [list(message) for message in answer["messages"]] == [list(ServiceMessage.model_fields)] * len(HISTORY)


async def test_messages_of_other_formats_are_read_by_the_same_client(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    sent = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Tokyo?"}]},
        {"role": "assistant", "content": None, "tool_calls": [_function_call("c1", "weather", '{"place": "Tokyo"}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "22 °C"},
        {"role": "assistant", "content": "22 °C, \ud800."},
    ]
    await ledger.user("ada").messages.append("t", Payload(sent, "openai-chat"), create=True, run_id="r1")
    answer = json_of(await ada.post("/history", json={"thread_id": "t"}))
    read = ChatHistory.model_validate(answer).messages
    assert [message.type for message in read] == ["custom", "human", "ai", "tool", "ai"]
    assert read[2].tool_calls == [{"name": "weather", "args": {"place": "Tokyo"}, "id": "c1", "type": "tool_call"}]
    assert (read[4].content, read[4].run_id) == ("22 °C, \ud800.", "r1")


def _function_call(id_: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


async def test_what_is_no_message_of_a_service_is_read_as_custom(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    odd: list[object] = [{"type": "task", "content": 5, "custom_data": {"a": 1}}, {"type": "ai", "content": "22"}]
    await ledger.user("ada").messages.append("t", Payload(odd, "agent-service"), create=True, rules="lenient")
    answer = json_of(await ada.post("/history", json={"thread_id": "t"}))
    assert [message.type for message in ChatHistory.model_validate(answer).messages] == ["custom", "ai"]


async def test_an_unknown_thread_and_anothers_are_not_found(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.user("bob").messages.append("bob's", turn(), create=True)
    for path in ("history", "chatbot/history"):
        for thread in ("nobody's", "bob's"):
            refused = json_of(await ada.post(f"/{path}", json={"thread_id": thread}), 404)
            assert refused["type"] == "urn:chatledger:ThreadNotFound"
            assert refused["detail"] == f"there is no thread {thread!r}"


async def test_a_history_of_an_agent_is_of_its_threads_only(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t", kind="chatbot")
    json_of(await ada.post("/research%2F1/history", json={"thread_id": "t"}), 404)
    assert json_of(await ada.post("/chatbot/history", json={"thread_id": "t"})) == {"messages": []}
    assert json_of(await ada.post("/history", json={"thread_id": "t"})) == {"messages": []}


async def test_a_long_history_is_its_newest_turns(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    """The server reads as many messages as a page may have, here six, and leaves out the rest of the first turn."""
    own = ledger.user("ada")
    for number in range(4):
        await own.messages.append("t", [user(f"{number}?"), assistant(f"{number}!")], create=True)
    assert len(await _contents(ada, "t")) == 6
    await own.messages.append("t", [user("last")])
    assert await _contents(ada, "t") == ["2?", "2!", "3?", "3!", "last"]
    assert len(await _contents(ada, "t", path="chatbot/history")) == 5


async def test_of_a_turn_that_is_longer_than_a_page_a_result_stands_with_its_call(
    ada: httpx.AsyncClient, ledger: Ledger
) -> None:
    steps = [
        message
        for number in range(4)
        for message in (
            assistant(calls=[call(f"c{number}")]),
            result(f"c{number}"),
        )
    ]
    await ledger.user("ada").messages.append("t", [user("?"), *steps, assistant("done")], create=True)
    answer = json_of(await ada.post("/history", json={"thread_id": "t"}))["messages"]
    assert [message["type"] for message in answer] == ["ai", "tool", "ai", "tool", "ai", "tool", "ai"]


async def _contents(client: httpx.AsyncClient, thread_id: str, path: str = "history") -> list[str]:
    answer = json_of(await client.post(f"/{path}", json={"thread_id": thread_id}))
    return [message["content"] for message in answer["messages"]]


@pytest.mark.parametrize("body", [{}, {"thread_id": None}, {"thread_id": 5}, {"thread_id": ""}, [], 1])
async def test_a_wrong_request_is_a_422_of_the_service(ada: httpx.AsyncClient, body: Any) -> None:
    refused = json_of(await ada.post("/history", json=body), 422)
    assert refused["status"] == 422
    assert isinstance(refused["detail"], str)


async def test_elsewhere_a_wrong_request_is_a_400(ada: httpx.AsyncClient) -> None:
    url = str(ada.base_url).replace("/agent-service/", "/v1/threads")
    assert (await ada.get(url, params={"limit": 0})).status_code == 400


# --- Feedback ---------------------------------------------------------------------------------------------------------


async def test_feedback_on_a_message_that_was_reloaded(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.user("ada").messages.append("t", Payload(ChatHistory(messages=HISTORY)), create=True)
    reloaded = json_of(await ada.post("/history", json={"thread_id": "t"}))["messages"][-1]
    sent = {"run_id": reloaded["run_id"], "key": "human-feedback-stars", "score": 0.8, "kwargs": {"comment": "good"}}
    assert json_of(await ada.post("/feedback", json=sent)) == {"status": "success"}
    assert json_of(await ada.post("/feedback", json={**sent, "score": "0.2"})) == {"status": "success"}
    (score,) = (await ledger.feedback.list()).items
    assert (score.run_id, score.key, score.score, score.user_id) == ("r1", "human-feedback-stars", 0.2, "ada")
    assert score.kwargs == {"comment": "good"}
    assert len((await ledger.feedback.list(events=True)).items) == 2


async def test_feedback_on_a_fresh_message_of_a_run(clients: As, ledger: Ledger) -> None:
    own = ledger.user("ada")
    run = await own.runs.start((await own.threads.create()).thread_id, agent="chatbot")
    asking = clients(Caller("ada", scope="ask"))
    json_of(await asking.post("/feedback", json={"run_id": run.run_id, "key": "thumb", "score": True}))
    (score,) = (await ledger.feedback.list()).items
    assert (score.score, score.kwargs) == (1.0, {})


async def test_feedback_on_an_unknown_run_and_on_anothers(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.user("bob").messages.append("bob's", turn(), create=True, run_id="bob's run")
    for run in ("nobody's run", "bob's run"):
        refused = json_of(await ada.post("/feedback", json={"run_id": run, "key": "k", "score": 1, "kwargs": {}}), 404)
        assert refused["type"] == "urn:chatledger:RunNotFound"
    assert (await ledger.feedback.list(events=True)).items == []


@pytest.mark.parametrize(
    "wrong", [{"score": "many"}, {"score": 1e101}, {"score": None}, {"key": ""}, {"run_id": 1}, {"kwargs": []}], ids=str
)
async def test_feedback_that_is_none_is_a_422(ada: httpx.AsyncClient, ledger: Ledger, wrong: dict[str, Any]) -> None:
    await ledger.user("ada").messages.append("t", turn(), create=True, run_id="r")
    refused = json_of(await ada.post("/feedback", json={"run_id": "r", "key": "k", "score": 1, **wrong}), 422)
    assert next(iter(wrong)) in refused["detail"]


async def test_a_reader_gives_no_feedback(clients: As, ledger: Ledger) -> None:
    await ledger.user("ada").messages.append("t", turn(), create=True, run_id="r")
    reader = clients(Caller("ada", scope="read"))
    refused = json_of(await reader.post("/feedback", json={"run_id": "r", "key": "k", "score": 1}), 403)
    assert refused["type"] == "urn:chatledger:OutOfScope"
    assert len(await _contents(reader, "t")) == len(turn())


# --- Threads ----------------------------------------------------------------------------------------------------------


async def store_threads(ledger: Ledger) -> None:
    """Two agents and two users, in the order of their last activity: the agent of a thread is its kind, or that of its
    newest run, or nobody's, which is the default one.
    """
    ada, bob = ledger.user("ada"), ledger.user("bob")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    await ada.threads.create("by kind", kind="chatbot", title="A title", created_at=hour_ago)
    await ada.threads.create("by run")
    await ada.runs.start("by run", run_id="z", agent="research/1")
    await ada.messages.append("by run", [user("first turn"), assistant("!")])
    await ada.runs.start("by run", run_id="a", agent="chatbot")
    await bob.messages.append("bob's", [user("bob's turn")], create=True)
    await ada.threads.create("of research", kind="research/1")
    await ada.messages.append("of research", [user("long " * 20)])
    await ada.threads.create("of another", kind="another")
    await ada.messages.append("by nobody", [ChatMessage(role="system", content="Be short."), user("?")], create=True)
    await ada.threads.create("archived", kind="chatbot")
    await ada.threads.update("archived", archived=True)


async def titles(client: httpx.AsyncClient, path: str = "threads", **query: Any) -> dict[str, str | None]:
    threads = json_of(await client.get(f"/{path}", params=query))["threads"]
    assert all(list(thread) == ["thread_id", "agent_id", "updated_at", "title"] for thread in threads)
    return {thread["thread_id"]: thread["title"] for thread in threads}


async def test_threads_have_titles_and_come_by_their_last_activity(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await store_threads(ledger)
    assert list((await titles(ada)).items()) == [("by nobody", "?"), ("by run", "first turn"), ("by kind", "A title")]
    await ledger.messages.append("by kind", [user("later")])
    assert next(iter(await titles(ada))) == "by kind"
    (newest,) = json_of(await ada.get("/threads", params={"limit": 1}))["threads"]
    stored = await ledger.threads.get("by kind")
    assert newest["agent_id"] == "chatbot"
    assert newest["updated_at"] == stored.active_at.isoformat().replace("+00:00", "Z")


async def test_threads_are_of_one_agent(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await store_threads(ledger)
    assert await titles(ada, "research%2F1/threads") == {"of research": ("long " * 20)[:60]}
    assert await titles(ada, "chatbot/threads") == await titles(ada)
    await ledger.runs.start("by run", run_id="m", agent="research/1")
    assert list(await titles(ada, "research%2F1/threads")) == ["of research", "by run"]


async def test_threads_are_those_of_the_user(clients: As, admin: httpx.AsyncClient, ledger: Ledger) -> None:
    await store_threads(ledger)
    await ledger.tenant("acme").user("ada").threads.create("elsewhere")
    assert await titles(clients(Caller("bob"))) == {"bob's": "bob's turn"}
    assert await titles(clients(Caller("carol"))) == {}
    assert await titles(clients(Caller("ada", tenant="acme"))) == {"elsewhere": None}
    assert set(await titles(admin)) == {"by nobody", "bob's", "by run", "by kind"}
    assert await titles(admin, user_id="bob") == {"bob's": "bob's turn"}
    assert await titles(admin, "chatbot/threads", user_id="nobody") == {}


async def test_a_user_names_no_other_user(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    await store_threads(ledger)
    assert set(await titles(ada, user_id="ada")) == {"by nobody", "by run", "by kind"}
    for path in ("/threads", "/chatbot/threads", "/research%2F1/threads"):
        refused = json_of(await ada.get(path, params={"user_id": "bob"}), 403)
        assert refused["type"] == "urn:chatledger:AdministratorOnly"


async def test_a_page_of_threads_has_a_limit(ada: httpx.AsyncClient, ledger: Ledger) -> None:
    own = ledger.user("ada")
    for number in range(103):
        await own.threads.create(f"t{number}", title="T")
    assert len(await titles(ada)) == 20
    assert list(await titles(ada, limit=1)) == ["t102"]
    assert len(await titles(ada, limit=100)) == 100
    for limit in (0, -1, 101, 999_999, "many", ""):
        for path in ("/threads", "/research%2F1/threads"):
            refused = json_of(await ada.get(path, params={"limit": limit}), 422)
            assert refused["errors"][0]["path"] == "query.limit"


async def test_a_parameter_that_a_route_lacks_is_a_422(ada: httpx.AsyncClient) -> None:
    assert json_of(await ada.get("/threads", params={"page": 2}), 422)["errors"][0]["path"] == "query.page"


# --- Callers ----------------------------------------------------------------------------------------------------------

REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/info", None),
    ("POST", "/history", {"thread_id": "t"}),
    ("POST", "/chatbot/history", {"thread_id": "t"}),
    ("POST", "/feedback", {"run_id": "r", "key": "k", "score": 1}),
    ("GET", "/threads", None),
    ("GET", "/chatbot/threads", None),
    ("POST", "/invoke", {"message": "?"}),
    ("POST", "/chatbot/stream", {"message": "?"}),
]


async def test_without_a_token_there_is_nothing(clients: As) -> None:
    nobody = clients(None)
    for method, path, body in REQUESTS:
        assert json_of(await nobody.request(method, path, json=body), 401)["status"] == 401


async def test_an_operator_reads_nothing_here(clients: As) -> None:
    operator = clients(Caller(scope="operator"))
    for method, path, body in REQUESTS:
        assert json_of(await operator.request(method, path, json=body), 403)["type"] == "urn:chatledger:OutOfScope"


async def test_serve_without_tokens_is_the_administrators(tmp_path: Path) -> None:
    path, file = str(tmp_path / "chat.db"), tmp_path / "service.json"
    file.write_text(SERVICE.model_dump_json())
    async with Ledger.open(path) as ledger:
        await ledger.user("ada").messages.append("t", turn(), create=True, run_id="r")
        await ledger.user("bob").threads.create("bob's", kind="research/1", title="B")
    with serving(path, "--service", str(file)) as server:
        async with httpx.AsyncClient(base_url=f"{server.url}/agent-service", timeout=60) as client:
            assert json_of(await client.get("/info")) == SERVICE.model_dump()
            assert set(await titles(client)) == {"t"}
            assert await titles(client, "research%2F1/threads") == {"bob's": "B"}
            assert await titles(client, user_id="bob") == {}
            assert len(await _contents(client, "t")) == len(turn())
            json_of(await client.post("/feedback", json={"run_id": "r", "key": "k", "score": 1, "kwargs": {}}))
            assert (await client.post("/invoke", json={"message": "?"})).status_code == 501
