"""A request for each route that its own user may send, and that does what the route is for. So what a token of another
scope is refused or allowed is a matter of the scope alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from chatledger import ChatMessage, Ledger, ToolCallDelta
from chatledger.answers import Call, Pending, Turn
from chatledger.ids import derived_id
from chatledger.models import ImagePart
from chatledger.storage.append.request import ANSWER
from tests.conversations import assistant, call
from tests.server.visits import (
    ANSWER_RUN,
    ASKED,
    DRAFT,
    DRAFTED,
    IDS,
    MESSAGE,
    OF_LINES,
    QUESTION,
    RUN,
    SECRET,
    THREAD,
    TOKEN,
    UI_QUESTION,
    as_sent,
    open_known,
    store_things,
)

CALLS, PICTURE = "bob's calls", "bob's picture"
PAUSED = "bob's paused"
"""A thread of his whose answer waits for a decision about the call `c`."""
PAUSED_ANSWER = {"run_id": ANSWER + derived_id("answer", "default", PAUSED, "once")}
STOPPED = "bob's stopped draft"
_DRAFT = {"thread_id": DRAFTED, "message_id": DRAFT}
CHATTED = "bob's chat"
"""A thread of his whose answer no process works on, for the route that stops a chat."""
_PIXEL = "iVBORw0KGgo="
UNMADE = frozenset(f"POST /agent-service/{path}" for path in ("invoke", "stream", "{agent}/invoke", "{agent}/stream"))
"""Routes that only say why the server does not do what they are for."""
_READ_BY_POST: frozenset[str] = UNMADE | {
    *("POST /login", "POST /logout"),
    *("POST /agent-service/history", "POST /agent-service/{agent}/history"),
}
"""Requests that store nothing in the ledger."""


@dataclass(frozen=True)
class Sent:
    """What a request sends beside its path."""

    json: Any = None
    form: Mapping[str, str] | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def changes(route: str) -> bool:
    """Whether the route is there to change what is stored."""
    return not route.startswith(("GET ", "HEAD ")) and route not in _READ_BY_POST


REQUESTS: Mapping[str, Sent] = {
    "GET /healthz": Sent(),
    "GET /v1/openapi.json": Sent(),
    "HEAD /v1/openapi.json": Sent(),
    "GET /v1/me": Sent(),
    "GET /v1/metrics": Sent(),
    "GET /v1/threads": Sent(),
    "POST /v1/threads": Sent({"title": "new"}),
    "GET /v1/threads/{thread_id}": Sent(),
    "PATCH /v1/threads/{thread_id}": Sent({"title": "other"}),
    "POST /v1/threads/{thread_id}/copy": Sent({}),
    "POST /v1/threads/{thread_id}/close-open-calls": Sent({}, path={"thread_id": CALLS}),
    "GET /v1/threads/{thread_id}/messages": Sent(),
    "GET /v1/threads/{thread_id}/prompt": Sent(query={"format": "openai-chat"}),
    "POST /v1/threads/{thread_id}/messages": Sent({"messages": [QUESTION]}),
    "POST /v1/threads/{thread_id}/drafts": Sent({"message_id": "new"}, path={"thread_id": "bob's other"}),
    "POST /v1/threads/{thread_id}/drafts/upload": Sent(
        '"x"', path={"thread_id": "bob's uploads"}, query={"create": True}, headers=OF_LINES
    ),
    "POST /v1/threads/{thread_id}/drafts/{message_id}/pieces": Sent(
        {"token": TOKEN, "offset": 0, "pieces": [SECRET, "x"]}, path=_DRAFT
    ),
    "POST /v1/threads/{thread_id}/drafts/{message_id}/complete": Sent({"token": TOKEN}, path=_DRAFT),
    "POST /v1/threads/{thread_id}/drafts/{message_id}/interrupt": Sent(
        {"token": TOKEN}, path={**_DRAFT, "thread_id": STOPPED}
    ),
    "GET /v1/threads/{thread_id}/messages/{message_id}": Sent(),
    "PUT /v1/threads/{thread_id}/messages/{message_id}": Sent(QUESTION),
    "GET /v1/threads/{thread_id}/messages/{message_id}/revisions": Sent(),
    "GET /v1/threads/{thread_id}/branches": Sent(),
    "POST /v1/threads/{thread_id}/branches": Sent({"at": MESSAGE}),
    "POST /v1/threads/{thread_id}/branches/{branch}/activate": Sent(),
    "POST /v1/threads/{thread_id}/rewind": Sent({"to": None, "branch": 1}),
    "GET /v1/threads/{thread_id}/messages/{message_id}/alternatives": Sent(),
    "GET /v1/threads/{thread_id}/events": Sent(),
    "GET /v1/search/messages": Sent(query={"q": SECRET}),
    "GET /v1/search/threads": Sent(query={"q": SECRET}),
    "POST /v1/threads/{thread_id}/runs": Sent({"agent": "a"}),
    "GET /v1/runs": Sent(),
    "GET /v1/runs/{run_id}": Sent(),
    "POST /v1/runs/{run_id}/finish": Sent({"status": "completed", "usage": {"cost": "0.1"}}),
    "POST /v1/threads/{thread_id}/answers": Sent({"question": "?"}),
    "GET /v1/answers/{run_id}": Sent(path=PAUSED_ANSWER),
    "GET /v1/answers/{run_id}/events": Sent(path=PAUSED_ANSWER),
    "POST /v1/answers/{run_id}/resume": Sent({"approve": ["c"]}, path=PAUSED_ANSWER),
    "POST /v1/answers/{run_id}/stop": Sent(path={"run_id": ANSWER_RUN}),
    "POST /v1/ai-sdk/{agent}": Sent({"id": "bob's new chat", "messages": [{"id": "new", **UI_QUESTION}]}),
    "GET /v1/ai-sdk/{agent}/{thread_id}/stream": Sent(path={"thread_id": PAUSED}),
    "POST /v1/ai-sdk/{agent}/{thread_id}/stop": Sent(path={"thread_id": CHATTED}),
    "POST /v1/feedback": Sent({"run_id": RUN, "key": "k", "score": 1}),
    "GET /v1/feedback": Sent(),
    "GET /v1/feedback/summary": Sent(),
    "GET /v1/feedback/compare": Sent(query={"key": SECRET}),
    "GET /v1/usage": Sent(query={"by": "user"}),
    "GET /v1/stats": Sent(),
    "GET /v1/conversations": Sent(),
    "POST /v1/conversations": Sent({"items": [QUESTION]}),
    "GET /v1/conversations/{conversation_id}": Sent(),
    "POST /v1/conversations/{conversation_id}": Sent({"metadata": {"a": "b"}}),
    "GET /v1/conversations/{conversation_id}/items": Sent(),
    "POST /v1/conversations/{conversation_id}/items": Sent({"items": [QUESTION]}),
    "GET /v1/conversations/{conversation_id}/items/{item_id}": Sent(),
    "GET /agent-service/info": Sent(),
    "POST /agent-service/history": Sent({"thread_id": THREAD}),
    "POST /agent-service/{agent}/history": Sent({"thread_id": ASKED}),
    "POST /agent-service/feedback": Sent({"run_id": RUN, "key": "k", "score": 1}),
    "GET /agent-service/threads": Sent(),
    "GET /agent-service/{agent}/threads": Sent(query={"user_id": "bob"}),
    **dict.fromkeys(sorted(UNMADE), Sent({"message": "?"})),
    "GET /": Sent(),
    "GET /usage": Sent(),
    "GET /threads/{thread_id}": Sent(),
    "GET /threads/{thread_id}/messages": Sent(query={"branch": "0"}),
    "GET /threads/{thread_id}/messages/{message_id}/json": Sent(),
    "GET /threads/{thread_id}/media/{message_id}/{index}": Sent(path={"thread_id": CALLS, "message_id": PICTURE}),
    "POST /threads/{thread_id}/score": Sent(form={"run_id": RUN, "key": "k", "score": "1"}),
    "POST /threads/{thread_id}/activate": Sent(form={"branch": "0"}),
    "GET /login": Sent(),
    "POST /login": Sent(form={"token": "wrong"}),
    "POST /logout": Sent(),
    "GET /static/{name}": Sent(path={"name": "page.css"}),
    "DELETE /v1/feedback/{feedback_id}": Sent(),
    "DELETE /v1/runs/{run_id}": Sent(),
    "DELETE /v1/threads/{thread_id}/messages/{message_id}": Sent(),
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": Sent(),
    "DELETE /v1/conversations/{conversation_id}": Sent(),
    "DELETE /v1/threads/{thread_id}": Sent(),
}
"""In an order in which each still finds what it is about: those that delete come last."""


async def store_owned(ledger: Ledger) -> None:
    """Bob's things of the walk, and a thread of his with a picture and an open call."""
    await store_things(ledger)
    bob = ledger.user("bob")
    await open_known(bob, STOPPED, DRAFT)
    picture = ChatMessage(role="user", content=[ImagePart(data=_PIXEL, mime_type="image/png")], message_id=PICTURE)
    await bob.messages.append(CALLS, [picture], create=True)
    await bob.messages.append(CALLS, [assistant(calls=[call("c")])])
    await bob.answers.start(CHATTED, SECRET, agent="asking", create=True)
    async with ledger.answers.serve({"asking": _asking}):
        answer = await bob.answers.start(PAUSED, "?", agent="asking", idempotency_key="once", create=True)
        await answer.wait()


async def _asking(turn: Turn) -> None:
    def wait(call: Call) -> str:
        raise Pending("it waits")

    await turn.ask(_calling)
    await turn.call_tools(wait)


async def _calling(prompt: Any) -> AsyncIterator[ToolCallDelta]:
    yield ToolCallDelta(index=0, id="c", name="lookup", arguments="{}")


async def send(client: httpx.AsyncClient, route: str, sent: Sent) -> httpx.Response:
    method, _, path = route.partition(" ")
    for name, value in {**IDS, "index": "0", **sent.path}.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    body = as_sent(sent.json)
    return await client.request(method, path, params=sent.query, data=sent.form, headers=sent.headers, **body)


def said(response: httpx.Response) -> str:
    """All that the answer says, its headers too."""
    return f"{response.status_code} {response.headers} {response.text}"
