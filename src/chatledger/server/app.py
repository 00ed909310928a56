"""The application: the gate, the limits, the routes and what errors become."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import NoneType
from typing import Any, Literal, TypeAlias

from chatledger.arguments import BOOL, STR, Kind, require, require_items
from chatledger.errors import ChatLedgerError, InvalidArgument, MissingExtra
from chatledger.formats.agent_service import ServiceMetadata
from chatledger.formats.history import load_built_in

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import Response
except ImportError:
    raise MissingExtra("server", "the server") from None

import chatledger
from chatledger.ledger import Ledger, Opening
from chatledger.server.agent_service.metadata import require_service
from chatledger.server.agent_service.routes import add_service_to
from chatledger.server.answers.compressed import Compressed
from chatledger.server.answers.json_response import JsonResponse
from chatledger.server.callers.access import AccessGate, Authenticate
from chatledger.server.callers.approvals import APPROVALS_BY
from chatledger.server.callers.chosen_ids import IDS_BY, IdsBy
from chatledger.server.callers.tokens import TokenFile
from chatledger.server.client_limits import ServerLimits
from chatledger.server.deadline import Deadline
from chatledger.server.failures import Failures
from chatledger.server.methods import Methods
from chatledger.server.openapi import TAGS, DescribedApp, operation_id
from chatledger.server.page import add_page_to
from chatledger.server.paths import EncodedPaths
from chatledger.server.problems import problem_of, problem_of_http
from chatledger.server.requests.body_limit import BodyLimit
from chatledger.server.requests.json_request import InvalidBody
from chatledger.server.requests.renamed import naming_the_new, of_old_route
from chatledger.server.requests.whole_body import WholeBody
from chatledger.server.routes import add_to
from chatledger.server.shares import Share
from chatledger.server.state import State

_ORIGIN = re.compile(r"https?://[^/*\s]+")
_Agents: TypeAlias = Mapping[str, Callable[[Any], Awaitable[None]]]
_AGENTS = Kind("a mapping of names to agents, or None", Mapping, NoneType)
_LEDGER = Kind("a Ledger, or what Ledger.open returns", Ledger, Opening)


def create_app(
    ledger: Ledger | Opening,
    *,
    authenticate: Authenticate,
    limits: ServerLimits | None = None,
    hosts: Sequence[str] | None = None,
    cors: Sequence[str] = (),
    page: bool = True,
    ids: IdsBy = "client",
    answers: Mapping[str, Callable[[Any], Awaitable[None]]] | None = None,
    approvals: Literal["admin", "owner"] = "admin",
    service: ServiceMetadata | None = None,
) -> FastAPI:
    """The server of a ledger as an ASGI application: the API under `/v1`, and the page at `/`.

        app = create_app(Ledger.open(url, notify=True), authenticate=authenticate)       # alone
        other.mount("/conversations", create_app(ledger, authenticate=authenticate))     # in an application

    Pass `Ledger.open(…)` without awaiting it, and the application opens the ledger when it starts and closes it when it
    ends. Pass an open ledger to mount the application in another one, because a mounted application is not told when
    the server starts. `notify=True` lets event streams continue at once instead of every 250 ms.

    `authenticate` is called for each request, and returns its Caller, or None to refuse it. A TokenFile is such a
    function. Each call then goes through the view of the caller's tenant and user, so another user's thread is not
    found. `hosts` are the accepted Host headers without port; None accepts all, for a server behind a proxy that checks
    them. `cors` are the origins of other sites whose pages may call the API. `page=False` leaves out the page.
    With `ids="server"` the server makes the ids of the threads, runs and scores of a user, so that no user can find out
    or take the ids of others; an administrator still chooses.

    `answers` are the agents that `POST /v1/threads/{id}/answers` may ask, by name. The application runs them for all
    tenants, as `ledger.answers.serve(answers, all_tenants=True)` does; if it is mounted in another one, enter that
    block there. `approvals="owner"` lets the owner of a thread approve and refuse the calls for which an answer waits,
    and not the administrator alone.

    With `service` the clients of an agent service can list threads, read histories and send feedback below
    `/agent-service`. It says which agents and models they are told. The agent of a thread is its kind, or else that of
    its newest run. The OpenAPI description has no other wires, so these routes are not in it.

    Without keys, a database that is recorded as encrypted is not served: the start raises EncryptionError, and where
    the application is mounted, each request does. Raises InvalidArgument, and MissingExtra without
    `chatledger[server]`.
    """
    _check_arguments(ledger, hosts, cors, page, ids)
    require(_AGENTS, answers=answers)
    require(APPROVALS_BY, approvals=approvals)
    agents = dict(answers or {})
    tokens = authenticate if isinstance(authenticate, TokenFile) and page else None
    opened = ledger if isinstance(ledger, Ledger) else None
    limits = limits or ServerLimits()
    names = frozenset(agents)
    state = State(limits, authenticate, opened, tokens=tokens, ids=ids, agents=names, approvals=approvals)
    state.service = None if service is None else require_service(service)
    access = Middleware(AccessGate, authenticate=authenticate, hosts=hosts, origins=cors, login=tokens is not None)
    app = DescribedApp(
        title="chatledger",
        version=chatledger.__version__,
        summary="The conversations of an LLM application.",
        lifespan=partial(_while_open, ledger, agents),
        openapi_url="/v1/openapi.json",
        openapi_tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        generate_unique_id_function=operation_id,
        docs_url=None,  # its scripts would come from another server
        redoc_url=None,
        default_response_class=JsonResponse,
        redirect_slashes=False,
        middleware=_middleware(state, access, cors),
        exception_handlers={
            ChatLedgerError: _to_problem,
            RequestValidationError: _to_bad_request,
            HTTPException: _to_http_problem,
        },
    )
    app.state.server = state
    load_built_in()  # else the first payload imports them, and all callers wait
    add_to(app)
    if state.service is not None:
        add_service_to(app)
    if page:
        add_page_to(app)
    return app


def _check_arguments(ledger: object, hosts: Sequence[str] | None, cors: Sequence[str], page: bool, ids: IdsBy) -> None:
    """Raises InvalidArgument."""
    require(_LEDGER, ledger=ledger)
    require(BOOL, page=page)
    require(IDS_BY, ids=ids)
    if hosts is not None:
        require_items(STR, hosts=hosts)
    require_items(STR, cors=cors)
    for origin in cors:
        if not _ORIGIN.fullmatch(origin):
            raise InvalidArgument("cors", f"must hold origins such as https://app.example, not {origin!r}")


@asynccontextmanager
async def _while_open(ledger: Ledger | Opening, agents: _Agents, app: FastAPI) -> AsyncIterator[None]:
    """The life of the application. An Opening is opened and closed with it, and the agents run meanwhile."""
    state: State = app.state.server
    async with AsyncExitStack() as life:
        opened = ledger if isinstance(ledger, Ledger) else await life.enter_async_context(ledger)
        await state.require_keys(opened)
        if agents:
            await life.enter_async_context(opened.answers.serve(agents, all_tenants=True))
        state.ledger = opened
        yield


def _middleware(state: State, access: Middleware, cors: Sequence[str]) -> list[Middleware]:
    """What a request passes before its route, in order."""
    return [
        Middleware(WholeBody),
        Middleware(
            CORSMiddleware,
            allow_origins=list(cors),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["ETag", "Location", "Retry-After"],
        ),
        Middleware(Failures),
        Middleware(Deadline, seconds=state.limits.request_seconds),
        access,
        Middleware(EncodedPaths),
        Middleware(BodyLimit, size=state.limits.body, held=state.bodies),
        Middleware(Share, places=state.places),
        Middleware(Methods),
        Middleware(Compressed),
    ]


async def _to_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ChatLedgerError)
    return problem_of(error)


async def _to_bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_of_http(naming_the_new(request, InvalidBody.of(error.errors())))


async def _to_http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, InvalidBody):
        return problem_of_http(naming_the_new(request, error))
    old = of_old_route(request) if error.status_code in (404, 405) else None
    if old is not None:
        return problem_of_http(old)
    return problem_of_http(error)
