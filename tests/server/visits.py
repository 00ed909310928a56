"""How another caller asks each route for Bob's things: with the ids of his thread, message, run, score and branch, with
his cursors and with his mark.

Each operation of the OpenAPI description has its visits here, and each route of an agent service, so a new one needs
some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.answers import Agent
from chatledger.ids import derived_id
from chatledger.repositories import scope_of
from chatledger.rules import Writer
from chatledger.server import AgentInfo, ServiceMetadata
from chatledger.storage.append.request import ANSWER, make_request
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, turn, user

SECRET = "s3cr3t"
"""It stands in all that Bob stores, and a thread id of his begins with `bob`."""
THREAD, MESSAGE, RUN, SCORE = "bob's", "bob's message", "bob's run", "bob's score"
OWN = "ada's"
CONVERSATION, ITEM = "bob's conversation", "bob's item"
OWN_CONVERSATION = "ada's conversation"
"""The thread of the caller who asks for Bob's things."""
QUESTION = {"role": "user", "content": "?"}
ANSWERED = {"role": "assistant", "content": "!"}
UI_QUESTION = {"role": "user", "parts": [{"type": "text", "text": "?"}]}
ASKED, AGENT = "bob's asked", "support"
"""A thread of his with an answer that no process works on, and the agent of that answer."""
DRAFTED, DRAFT, TOKEN = "bob's drafted", "bob's draft", "0000000000000001"
"""A thread of his with an open draft, and the draft's message and token, which the others know."""
AGENTS: Mapping[str, Agent] = {AGENT: lambda turn: asyncio.sleep(0)}
"""They never run: nothing enters the life of the application of a walk."""
SERVICE = ServiceMetadata(
    agents=[AgentInfo(key=AGENT, description="Helps.")], models=["m"], default_agent=AGENT, default_model="m"
)
"""What the routes of an agent service tell. The thread with the answer is that agent's."""
ANSWER_RUN = ANSWER + derived_id("answer", "default", ASKED, "once")

_RESPONDED = {"state": "approval-responded", "approval": {"id": f"{ANSWER_RUN}/c", "approved": True}}
APPROVAL = {"id": "a", "role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "c", **_RESPONDED}]}
"""A UI message that approves a call of his answer."""
HAVE = '{"id": "bob\'s message", "parts": [["text", 1, "streaming"]]}'


@dataclass(frozen=True)
class Visit:
    """A request, and the status that it gets: 404, or 200 for a list without anything of Bob's."""

    status: int = 404
    elsewhere: int | None = None
    """The status in another tenant, if it differs: Bob's ids are free there, and the caller has no thread."""
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """JSON, or a text to send as it is."""
    headers: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    """The ids in the path that are not Bob's."""


IDS = {
    "thread_id": THREAD,
    "message_id": MESSAGE,
    "run_id": RUN,
    "feedback_id": SCORE,
    "branch": "1",
    "agent": AGENT,
    "conversation_id": CONVERSATION,
    "item_id": ITEM,
}
_MINE = {"thread_id": OWN}
_MY_CONVERSATION = {"conversation_id": OWN_CONVERSATION}
_THREAD_OF_BOB = {"conversation_id": THREAD, "item_id": MESSAGE}
_OF_BOB = {"user_id": "bob"}
_ANSWER = {"run_id": ANSWER_RUN}
_DRAFT = {"thread_id": DRAFTED, "message_id": DRAFT}
_MY_DRAFT = {"thread_id": OWN, "message_id": DRAFT}
_WITH_TOKEN = {"token": TOKEN}
OF_LINES = {"Content-Type": "application/x-ndjson"}


def a_list(*filters: str, cursor: bool = False, user: bool = True, **query: Any) -> list[Visit]:
    """A list that is empty but for the caller's own rows, with each filter by an id of Bob's and with his cursor."""
    visits = [Visit(200, query=query), *(Visit(200, query={**query, name: IDS[name]}) for name in filters)]
    visits += [Visit(200, query={**query, "cursor": "CURSOR"})] if cursor else []
    return visits + ([Visit(400, 200, query={**query, **_OF_BOB})] if user else [])


VISITS: Mapping[str, list[Visit]] = {
    "healthz": [Visit(200)],
    "get_me": [Visit(200)],
    "list_threads": a_list(cursor=True),
    "create_thread": [
        Visit(409, 201, body={"thread_id": THREAD}),
        Visit(404, 201, body={"thread_id": THREAD, "exist_ok": True}),
        Visit(400, 201, body={"thread_id": "new", "user_id": "bob"}),
    ],
    "get_thread": [Visit()],
    "update_thread": [Visit(body={"title": "x"}), Visit(body={"rules": "lenient"}, headers={"If-Match": '"1"'})],
    "copy_thread": [
        Visit(body={}),
        Visit(body={"thread_id": "new", "branch": 1, "until": MESSAGE}),
        Visit(409, 404, path=_MINE, body={"thread_id": THREAD}),
        Visit(path=_MINE, body={"branch": 1}),
    ],
    "close_open_calls": [Visit(body={}), Visit(body={"branch": 1}), Visit(path=_MINE, body={"branch": 1})],
    "delete_thread": [Visit()],
    "read_messages": [
        Visit(),
        Visit(query={"branch": 1}),
        Visit(query={"run_id": RUN}),
        Visit(query={"format": "openai-chat"}),
        Visit(path=_MINE, query={"branch": 1}),
        Visit(200, 404, path=_MINE, query={"run_id": RUN}),
    ],
    "append_messages": [
        Visit(body={"messages": [QUESTION]}),
        Visit(body={"messages": [QUESTION], "branch": 1}),
        Visit(404, 201, body={"messages": [QUESTION], "create": True}),
        Visit(body={"messages": [QUESTION], "reply_to": MESSAGE}),
        Visit(body={"messages": [QUESTION], "alternative_to": MESSAGE}),
        Visit(body={"payload": [QUESTION], "format": "openai-chat", "run_id": RUN}),
        Visit(body={"messages": [QUESTION]}, headers={"If-Match": "MARK"}),
        Visit(400, 201, body={"messages": [QUESTION], "create": True}, query=_OF_BOB),
        Visit(path=_MINE, body={"messages": [QUESTION], "reply_to": MESSAGE}),
        Visit(path=_MINE, body={"messages": [QUESTION], "branch": 1}),
        Visit(409, 404, path=_MINE, body={"messages": [QUESTION], "run_id": RUN}),
        Visit(400, path=_MINE, body={"messages": [QUESTION]}, headers={"If-Match": "MARK"}),
    ],
    "open_draft": [
        Visit(body={}),
        Visit(body={"branch": 1}),
        Visit(404, 201, body={"create": True}),
        Visit(path=_DRAFT, body={"message_id": DRAFT, "resume": True}),
        Visit(path=_DRAFT, body={"on_open_calls": "interrupt"}),
        Visit(body={}, headers={"If-Match": "MARK"}),
        Visit(400, 201, body={"create": True}, query=_OF_BOB),
        Visit(path=_MINE, body={"reply_to": MESSAGE}),
        Visit(409, 404, path=_MINE, body={"run_id": RUN}),
    ],
    "add_pieces": [
        Visit(path=_DRAFT, body={**_WITH_TOKEN, "offset": 0, "pieces": ["x"]}),
        Visit(path=_DRAFT, body={**_WITH_TOKEN, "offset": 9, "pieces": []}),
        Visit(path=_MY_DRAFT, body={**_WITH_TOKEN, "offset": 0, "pieces": ["x"]}),
        Visit(body={**_WITH_TOKEN, "offset": 0, "pieces": []}),
    ],
    "complete_draft": [
        Visit(path=_DRAFT, body=_WITH_TOKEN),
        Visit(path=_DRAFT, body={**_WITH_TOKEN, "payload": [ANSWERED], "format": "openai-chat"}),
        Visit(path=_MY_DRAFT, body=_WITH_TOKEN),
        Visit(body=_WITH_TOKEN),
    ],
    "interrupt_draft": [Visit(path=_DRAFT, body=_WITH_TOKEN), Visit(path=_MY_DRAFT, body=_WITH_TOKEN)],
    "upload_draft": [
        Visit(body='"x"', headers=OF_LINES),
        Visit(body='"x"', headers=OF_LINES, query={"branch": 1}),
        Visit(404, 201, body='"x"', headers=OF_LINES, query={"create": True}),
        Visit(path=_DRAFT, body='"x"', headers=OF_LINES, query={"message_id": DRAFT, "resume": True}),
        Visit(path=_DRAFT, body='"x"', headers=OF_LINES, query={"on_open_calls": "interrupt"}),
        Visit(body='"x"', headers={**OF_LINES, "If-Match": "MARK"}),
        Visit(400, 201, body='"x"', headers=OF_LINES, query={"create": True, **_OF_BOB}),
        Visit(path=_MINE, body='"x"', headers=OF_LINES, query={"reply_to": MESSAGE}),
        Visit(409, 404, path=_MINE, body='"x"', headers=OF_LINES, query={"run_id": RUN}),
    ],
    "get_message": [Visit(), Visit(path=_MINE)],
    "revise_message": [Visit(body=QUESTION), Visit(path=_MINE, body=QUESTION)],
    "list_revisions": [Visit(), Visit(path=_MINE)],
    "remove_message": [Visit(), Visit(path=_MINE)],
    "list_branches": [Visit()],
    "fork_branch": [
        Visit(body={"at": MESSAGE}),
        Visit(body={"at": None, "branch": 1}),
        Visit(body={"at": MESSAGE}, headers={"If-Match": "MARK"}),
        Visit(path=_MINE, body={"at": MESSAGE}),
        Visit(path=_MINE, body={"at": None, "branch": 1}),
    ],
    "activate_branch": [Visit(), Visit(path=_MINE)],
    "rewind_branch": [
        Visit(body={"to": None}),
        Visit(body={"to": MESSAGE, "branch": 1}),
        Visit(path=_MINE, body={"to": MESSAGE}),
        Visit(path=_MINE, body={"to": None, "branch": 1}),
    ],
    "list_alternatives": [Visit(), Visit(path=_MINE)],
    "read_prompt": [
        Visit(query={"format": "openai-chat"}),
        Visit(query={"format": "anthropic", "branch": 1, "turns": 1}),
        Visit(path=_MINE, query={"format": "openai-chat", "branch": 1}),
    ],
    "follow_thread": [
        Visit(),
        Visit(headers={"Last-Event-ID": "CHANGE"}),
        Visit(query={"cursor": "MARK"}),
        Visit(400, 404, path=_MINE, headers={"Last-Event-ID": "CHANGE"}),
    ],
    "search_messages": [*a_list(cursor=False, q=SECRET), Visit(query={"q": SECRET, "thread_id": THREAD})],
    "search_threads": a_list(q=SECRET),
    "start_run": [
        Visit(body={}),
        Visit(body={"run_id": RUN}),
        Visit(409, 404, path=_MINE, body={"run_id": RUN, "agent": "x"}),
    ],
    "list_runs": a_list("thread_id", cursor=True, user=False),
    "get_run": [Visit()],
    "delete_run": [Visit()],
    "finish_run": [Visit(body={"status": "failed"})],
    "start_answer": [
        Visit(body={"question": "?"}),
        Visit(404, 201, body={"question": "?", "create": True}),
        Visit(path={"thread_id": ASKED}, body={"question": SECRET}, headers={"Idempotency-Key": "once"}),
        Visit(path={"thread_id": ASKED}, body={"question": "?", "when_live": "stop"}),
        Visit(path=_MINE, body={"reply_to": MESSAGE}),
        Visit(path=_MINE, body={"question": "?", "alternative_to": MESSAGE}),
        Visit(400, 201, body={"question": "?", "create": True}, query=_OF_BOB),
    ],
    "get_answer": [Visit(path=_ANSWER), Visit()],
    "follow_answer": [Visit(path=_ANSWER), Visit(path=_ANSWER, headers={"Last-Event-ID": "CHANGE"})],
    "stop_answer": [Visit(path=_ANSWER), Visit()],
    "resume_answer": [
        Visit(path=_ANSWER, body={"approve": ["c"]}),
        Visit(path=_ANSWER, body={"results": {"c": SECRET}}),
    ],
    "POST /v1/ai-sdk/{agent}": [
        Visit(404, 200, body={"id": THREAD, "messages": [{"id": "new", **UI_QUESTION}]}),
        Visit(404, 200, body={"id": ASKED, "messages": [{"id": MESSAGE, **UI_QUESTION}]}),
        Visit(body={"id": THREAD, "messages": [{"id": MESSAGE, **UI_QUESTION}], "messageId": MESSAGE}),
        Visit(body={"id": THREAD, "messages": [{"id": MESSAGE, **UI_QUESTION}], "trigger": "regenerate-message"}),
        Visit(body={"id": OWN, "messages": [{"id": MESSAGE, **UI_QUESTION}], "messageId": MESSAGE}),
        Visit(body={"id": OWN, "messages": [{"id": MESSAGE, **UI_QUESTION}], "trigger": "regenerate-message"}),
        Visit(body={"id": ASKED, "messages": [APPROVAL]}),
        Visit(body={"id": OWN, "messages": [APPROVAL]}),
    ],
    "GET /v1/ai-sdk/{agent}/{thread_id}/stream": [
        Visit(204),
        Visit(204, path={"thread_id": ASKED}),
        Visit(204, query={"have": HAVE}),
    ],
    "POST /v1/ai-sdk/{agent}/{thread_id}/stop": [Visit(204), Visit(204, path={"thread_id": ASKED})],
    "record_feedback": [
        Visit(body={"run_id": RUN, "key": "k", "score": 1}),
        Visit(
            body={"run_id": RUN, "key": SECRET, "score": 1, "message_id": MESSAGE}, headers={"Idempotency-Key": "once"}
        ),
        Visit(409, 404, body={"run_id": "ada's run", "key": "k", "score": 1, "feedback_id": SCORE}),
        Visit(body={"run_id": "ada's run", "key": "k", "score": 1, "message_id": MESSAGE}),
        Visit(400, 404, body={"run_id": "ada's run", "key": "k", "score": 1, **_OF_BOB}),
    ],
    "list_feedback": [*a_list("run_id", "thread_id", cursor=True, user=False), Visit(200, query=_OF_BOB)],
    "summarize_feedback": [*a_list("run_id", "thread_id", user=False), Visit(200, query={**_OF_BOB, "events": True})],
    "compare_feedback": [*a_list(user=False, key=SECRET), Visit(200, query={"key": SECRET, **_OF_BOB})],
    "remove_feedback": [Visit()],
    "sum_usage": a_list("thread_id", by=["user", "agent", "thread"]),
    "count_stats": a_list(by="model"),
    "get_metrics": [Visit(403)],
    "list_conversations": [Visit(200), Visit(query={"after": CONVERSATION}), Visit(query={"after": THREAD})],
    "create_conversation": [Visit(400, body={"items": [{"type": "item_reference", "id": ITEM}]})],
    "retrieve_conversation": [Visit(), Visit(path=_THREAD_OF_BOB)],
    "update_conversation": [Visit(body={"metadata": {"a": "x"}}), Visit(path=_THREAD_OF_BOB, body={"metadata": {}})],
    "delete_conversation": [Visit(), Visit(path=_THREAD_OF_BOB)],
    "list_items": [
        Visit(),
        Visit(query={"after": ITEM}),
        Visit(path=_THREAD_OF_BOB),
        Visit(path=_MY_CONVERSATION, query={"after": ITEM}),
    ],
    "create_items": [
        Visit(body={"items": [QUESTION]}),
        Visit(body={"items": [{**QUESTION, "id": ITEM}]}, headers={"Idempotency-Key": "once"}),
        Visit(path=_THREAD_OF_BOB, body={"items": [QUESTION]}),
        Visit(400, 404, path=_MY_CONVERSATION, body={"items": [{"type": "item_reference", "id": ITEM}]}),
    ],
    "retrieve_item": [Visit(), Visit(path=_THREAD_OF_BOB), Visit(path=_MY_CONVERSATION)],
    "delete_item": [Visit(), Visit(path=_THREAD_OF_BOB), Visit(path=_MY_CONVERSATION)],
    "GET /agent-service/info": [Visit(200)],
    "POST /agent-service/history": [Visit(body={"thread_id": name}) for name in (THREAD, ASKED, CONVERSATION)],
    "POST /agent-service/{agent}/history": [
        Visit(body={"thread_id": ASKED}),
        Visit(body={"thread_id": THREAD}),
        Visit(path={"agent": "unknown"}, body={"thread_id": ASKED}),
    ],
    "POST /agent-service/feedback": [
        Visit(body={"run_id": RUN, "key": "k", "score": 1}),
        Visit(body={"run_id": ANSWER_RUN, "key": SECRET, "score": 1, "kwargs": {"comment": SECRET}}),
    ],
    "GET /agent-service/threads": [Visit(200), Visit(403, 200, query=_OF_BOB)],
    "GET /agent-service/{agent}/threads": [
        Visit(200),
        Visit(403, 200, query=_OF_BOB),
        Visit(path={"agent": "unknown"}),
    ],
    "POST /agent-service/invoke": [Visit(501, body={"message": SECRET, "thread_id": THREAD})],
    "POST /agent-service/stream": [Visit(501, body={"message": SECRET, "thread_id": THREAD})],
    "POST /agent-service/{agent}/invoke": [Visit(501, body={"message": SECRET, "thread_id": ASKED})],
    "POST /agent-service/{agent}/stream": [Visit(501, body={"message": SECRET, "thread_id": ASKED})],
}


async def open_known(ledger: Ledger, thread_id: str, message_id: str) -> None:
    """Open a draft with the token that the others know."""
    opened = ChatMessage(role="assistant", content=SECRET, message_id=message_id, state="partial")
    request = make_request(scope_of(ledger).terms, thread_id, [opened], create=True)
    await scope_of(ledger).append(replace(request, draft=Writer(int(TOKEN, 16)), lease=300.0))


async def store_things(ledger: Ledger, owner: str = "bob") -> dict[str, str]:
    """Store a thread of Bob's with all that a thread can have, and one of Ada's. Returns his cursors and his mark. With
    another owner, all of Bob's has that name.
    """

    def of(name: str) -> str:
        return name.replace("bob", owner)

    bob, ada = ledger.user(owner), ledger.user("ada")
    await ada.messages.append(OWN, turn(), create=True, run_id="ada's run")
    await ada.threads.create(OWN_CONVERSATION, kind="conversation", rules="lenient")
    for name in (of(THREAD), of("bob's other")):
        await bob.threads.create(name, title=SECRET, metadata={"a": SECRET})
    for name in (of(RUN), of("bob's other run")):
        await bob.runs.start(of(THREAD), run_id=name, agent=SECRET, model=SECRET, input=SECRET)
    first = await bob.messages.append(of(THREAD), [user(SECRET, message_id=of(MESSAGE))], run_id=of(RUN))
    await bob.messages.append(of(THREAD), [assistant(SECRET)], run_id=of(RUN))
    await fork_at(scope_of(bob), of(THREAD), 1, activate=False)
    await bob.messages.revise(of(THREAD), of(MESSAGE), user(SECRET + "!"))
    await bob.threads.create(of(CONVERSATION), kind="conversation", rules="lenient")
    await bob.messages.append(of(CONVERSATION), [user(SECRET, message_id=of(ITEM))])
    for name, key in ((of(SCORE), SECRET), (of("bob's other score"), SECRET + "2")):
        score = Feedback(run_id=of(RUN), key=key, score=1, feedback_id=name, kwargs={"comment": SECRET})
        await bob.feedback.record(score)
    await bob.answers.start(of(ASKED), SECRET, agent=AGENT, idempotency_key="once", create=True)
    await open_known(bob, of(DRAFTED), of(DRAFT))
    await bob.kv.put(("thread", of(THREAD)), SECRET, SECRET)
    mark = (await bob.messages.history(of(THREAD))).mark
    async with aclosing(bob.messages.follow(of(THREAD), cursor=first.mark)) as changes:
        change = await anext(changes)
    return {
        "MARK": mark,
        "CHANGE": change.cursor,
        "list_threads": (await bob.threads.list(limit=1)).next_cursor or "",
        "list_runs": (await bob.runs.list(limit=1)).next_cursor or "",
        "list_feedback": (await bob.feedback.list(events=True, limit=1)).next_cursor or "",
    }


def as_sent(body: Any) -> dict[str, Any]:
    """The argument of the client for it."""
    return {"content": body} if isinstance(body, str) else {"json": body}
