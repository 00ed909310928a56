"""The routes. Each is there for the default agent, or for any, and again for the agent that its path names."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from chatledger.errors import ThreadNotFound
from chatledger.formats.agent_service import CODEC, ChatHistory, ChatHistoryInput, FeedbackResponse, ServiceMetadata
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Newest, Oldest, Thread
from chatledger.models.feedback import Score
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.server.agent_service.agents import is_of_agent, require_agent, threads_of
from chatledger.server.answers.pages import fitting_section
from chatledger.server.answers.sizes import Metadata, Name
from chatledger.server.json_route import json_router
from chatledger.server.paths import PathId
from chatledger.server.problems import AdministratorOnly
from chatledger.server.problems.agent_service import PATH
from chatledger.server.query import refuse_unfit
from chatledger.server.state import MayAsk, MayRead, Shared, Who, state_of
from chatledger.storage.history.window_request import Window

router = json_router()
_TITLE = 60
"""Characters of a title that is made of the first question."""
_FIRST = 3
"""Messages in which that question is looked for: behind a system and a developer message."""
_NO_AGENT = (
    "this server stores conversations and runs no agent: send the message to the service that runs it, and let that "
    "service store the conversation here with POST /v1/threads/{thread_id}/messages"
)


def add_service_to(app: FastAPI) -> None:
    app.include_router(router, prefix=PATH, include_in_schema=False, dependencies=[Depends(refuse_unfit)])


class ThreadSummary(BaseModel):
    """A thread in a list."""

    thread_id: str
    agent_id: str
    updated_at: datetime
    title: str | None


class ThreadSummaries(BaseModel):
    """The answer to a request for threads."""

    threads: list[ThreadSummary]


class ServiceFeedback(BaseModel):  # type: ignore[no-redef]  # the plugin's __init__ has a **kwargs of its own
    """A score on a run, as the clients send it."""

    run_id: str
    key: Name
    score: Score
    kwargs: Metadata = {}


async def _service(request: Request, caller: Who) -> ServiceMetadata:
    caller.require("read")
    service = state_of(request).service
    assert service is not None
    return service


Service = Annotated[ServiceMetadata, Depends(_service)]


async def _named_agent(service: Service, agent: Annotated[PathId, Path()]) -> str:
    require_agent(service, agent)
    return agent


async def _of_user(ledger: MayRead, caller: Who, user_id: Annotated[str | None, Query()] = None) -> Ledger:
    """Raises AdministratorOnly for a user who names another one."""
    if user_id is None:
        return ledger
    if caller.user_id not in (None, user_id):
        raise AdministratorOnly("a user_id of another user")
    return ledger.user(user_id)


NamedAgent = Annotated[str, Depends(_named_agent)]
OfUser = Annotated[Ledger, Depends(_of_user)]
PageSize = Annotated[int, Query(ge=1, le=100)]


@router.get("/info")
async def service_info(service: Service) -> ServiceMetadata:
    """Read the agents and models."""
    return service


@router.post("/history")
async def service_history(ledger: MayRead, state: Shared, body: ChatHistoryInput) -> ChatHistory:
    """Read the newest messages of a thread of any agent: whole turns, as many as a page may have."""
    return await _history(ledger, body.thread_id, state.limits.page)


@router.post("/{agent}/history")
async def service_history_of_agent(
    ledger: MayRead, state: Shared, service: Service, agent: NamedAgent, body: ChatHistoryInput
) -> ChatHistory:
    """The same of a thread of this agent."""
    await ledger.threads.get(body.thread_id)
    if not await is_of_agent(ledger, service, body.thread_id, agent):
        raise ThreadNotFound(body.thread_id)
    return await _history(ledger, body.thread_id, state.limits.page)


async def _history(ledger: Ledger, thread_id: str, most: int) -> ChatHistory:
    window = Window.shown(scope_of(ledger).tenant, thread_id, Newest(most), None, None)
    section = await fitting_section(ledger, window)
    messages = section.messages if section.before is None else _from_a_turn(section.messages)
    return await apart(lambda: CODEC.as_models(CODEC.encode(messages).payload), messages)


def _from_a_turn(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Without the rest of a turn whose question is not there, unless there is nothing else."""
    first = next((index for index, message in enumerate(messages) if message.role == "user"), 0)
    return messages[first:]


@router.post("/feedback")
async def service_feedback(ledger: MayAsk, body: ServiceFeedback) -> FeedbackResponse:
    """Record a score. A later one of the same run, key and user replaces it."""
    await ledger.feedback.record(body)
    return FeedbackResponse()


@router.get("/threads")
async def service_threads(ledger: OfUser, service: Service, limit: PageSize = 20) -> ThreadSummaries:
    """List threads of the default agent."""
    return await _summaries(ledger, service, service.default_agent, limit)


@router.get("/{agent}/threads")
async def service_threads_of_agent(
    ledger: OfUser, service: Service, agent: NamedAgent, limit: PageSize = 20
) -> ThreadSummaries:
    """List threads of this agent."""
    return await _summaries(ledger, service, agent, limit)


async def _summaries(ledger: Ledger, service: ServiceMetadata, agent: str, limit: int) -> ThreadSummaries:
    summaries = []
    for thread in await threads_of(ledger, service, agent, limit):
        fields: dict[str, Any] = {"thread_id": thread.thread_id, "agent_id": agent, "updated_at": thread.active_at}
        summaries.append(ThreadSummary(**fields, title=await _title(ledger, thread)))
    return ThreadSummaries(threads=summaries)


async def _title(ledger: Ledger, thread: Thread) -> str | None:
    """The title of the thread, or else the beginning of its first question."""
    if thread.title is not None or not thread.message_count:
        return thread.title
    first = await ledger.messages.history(thread.thread_id, Oldest(_FIRST))
    questions = (message.text for message in first if message.role == "user")
    return next((text[:_TITLE] for text in questions if text), None)


@router.post("/invoke")
@router.post("/stream")
async def service_run(service: Service) -> None:
    """Refuse what needs an agent, and say why."""
    raise HTTPException(501, _NO_AGENT)


@router.post("/{agent}/invoke")
@router.post("/{agent}/stream")
async def service_run_of_agent(agent: NamedAgent) -> None:
    """The same for the agent of the path."""
    raise HTTPException(501, _NO_AGENT)
