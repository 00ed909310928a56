"""Answers that outlive the request. What agents do, `chatledger.answers` runs."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, NewThread, Run
from chatledger.models.weight import apart
from chatledger.repositories.answers import Answer
from chatledger.server.agents import agent_of, warn_unless_served
from chatledger.server.answers.headers import IdempotencyKey
from chatledger.server.answers.pages import require_small_answer
from chatledger.server.answers.sizes import Metadata, Name, Title, require_small
from chatledger.server.callers.approvals import require_approver
from chatledger.server.callers.ask_scope import refuse_all_but_questions, refuse_beyond_ask
from chatledger.server.callers.chosen_ids import refuse_chosen
from chatledger.server.callers.seen import as_seen
from chatledger.server.json_route import json_router
from chatledger.server.paths import RunId, ThreadId, api_path
from chatledger.server.requests.bodies import Body, Message, ThreadFields
from chatledger.server.state import Asking, Mine, Shared, Who

router = json_router(tags=["answers"])


class NewAnswer(Body):
    """A question to answer, or a stored one to answer again."""

    question: str | Message | None = Field(None, description="The question: a text of the user, or a message.")
    agent: Name | None = Field(None, description="The name of the agent; null if the server has only one.")
    reply_to: str | None = Field(
        None, description="The id of the message to ask behind; without `question`, the question to answer once more."
    )
    alternative_to: str | None = Field(
        None, description="The id of a question that this one replaces, on a new branch that becomes active."
    )
    when_live: Literal["error", "stop"] = Field(
        "error", description="What to do with an answer of the thread that has not ended: refuse this one, or end that."
    )
    create: bool | ThreadFields = Field(
        False, description="Create the thread if it does not exist: true, or its fields."
    )
    metadata: Metadata | None = Field(None, description="Data of the application about the run.")


class Decisions(Body):
    """What somebody decided about the calls for which an answer waits, by their ids."""

    results: dict[str, str | Message] = Field({}, description="Results of calls, which are then not run.")
    approve: list[str] = Field([], description="Calls to run.")
    refuse: dict[str, Title | None] = Field({}, description="Calls to refuse, with the reason that the model reads.")


class ShownAnswer(BaseModel):
    """An answer, wherever it runs."""

    run: Run = Field(description="The run. It ends with the answer.")
    question: ChatMessage = Field(description="The message that is answered.")
    mark: str = Field(description="The place right behind the question. Follow the thread from here.")
    replayed: bool = Field(description="Whether an earlier request with the same key began it.")
    waiting: dict[str, str | None] = Field(
        description="The calls for which it is paused, and why each waits. Empty if it is not paused."
    )

    @classmethod
    async def of(cls, answer: Answer, ledger: Ledger) -> ShownAnswer:
        shown = cls.model_construct(
            run=as_seen(answer.run, ledger),
            question=answer.question,
            mark=answer.mark,
            replayed=answer.replayed,
            waiting=dict(answer.waiting),
        )
        await require_small_answer(shown)
        return shown


@router.post(
    "/threads/{thread_id}/answers",
    status_code=201,
    responses={200: {"model": ShownAnswer, "description": "A repeat, which stored nothing."}},
)
async def start_answer(
    ledger: Asking,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: NewAnswer,
    response: Response,
    idempotency_key: IdempotencyKey,
) -> ShownAnswer:
    """Store a question and the run that answers it, and return at once; a repeat with the same key is the same answer.
    While another answer of the thread has not ended, it is a 409 `RunLive`, with `until` when its lease ends. A token
    of scope `ask` gives no metadata.
    """
    agent = agent_of(state, body.agent)
    warn_unless_served(ledger, state, agent)
    question = ChatMessage.user(body.question) if isinstance(body.question, str) else body.question
    refuse_beyond_ask(caller, metadata=body.metadata is not None)
    refuse_beyond_ask(caller, rules=isinstance(body.create, ThreadFields) and body.create.rules is not None)
    refuse_all_but_questions(caller, [] if question is None else [question], of="question")
    refuse_chosen(state.ids, caller, create=body.create)
    if question is not None:
        await apart(lambda: require_small([question]), question)
    terms: dict[str, Any] = body.model_dump(include={"reply_to", "alternative_to", "when_live", "metadata"})
    terms["create"] = NewThread(**body.create.model_dump()) if isinstance(body.create, ThreadFields) else body.create
    answer = await ledger.answers.start(thread_id, question, agent=agent, idempotency_key=idempotency_key, **terms)
    if answer.replayed:
        response.status_code = 200
    response.headers["Location"] = api_path("answers", answer.run.run_id)
    return await ShownAnswer.of(answer, ledger)


@router.get("/answers/{run_id}")
async def get_answer(ledger: Mine, run_id: RunId) -> ShownAnswer:
    """Read an answer: its run, its question, and the calls for which it waits."""
    return await ShownAnswer.of(await ledger.answers.get(run_id), ledger)


@router.post("/answers/{run_id}/stop")
async def stop_answer(ledger: Asking, run_id: RunId) -> Run:
    """End an answer as `cancelled`. Nothing of it is written any more. One that has ended stays as it is."""
    return as_seen(await ledger.answers.stop(run_id), ledger)


@router.post("/answers/{run_id}/resume")
async def resume_answer(ledger: Asking, caller: Who, state: Shared, run_id: RunId, body: Decisions) -> ShownAnswer:
    """Decide about calls for which an answer waits. It goes on once each of them is decided. The same decision again
    changes nothing; another one is a 409. `results` need the scope `write`.
    """
    refuse_beyond_ask(caller, results=bool(body.results))
    await apart(lambda: require_small(body.results), body.results)
    await ledger.answers.get(run_id)  # a stranger's is not found, whoever may decide
    if body.approve or body.refuse:
        require_approver(state.approvals, caller)
    answer = await ledger.answers.resume(run_id, body.results, approve=body.approve, refuse=body.refuse)
    return await ShownAnswer.of(answer, ledger)
