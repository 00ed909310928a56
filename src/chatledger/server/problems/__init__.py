"""Errors over HTTP: problem details (RFC 9457) from one table.

    {"type": "urn:chatledger:RuleViolation", "title": "The message breaks a rule", "status": 422,
     "detail": "message 0 of the batch breaks R6: …", "rule": "R6", "index": 0}

`type` names the error of the library. The attributes of the error stand beside it under their own names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from chatledger import errors
from chatledger.server.answers.json_response import JsonResponse
from chatledger.server.paths import path_within
from chatledger.server.problems import agent_service as agent_service_errors
from chatledger.server.problems import openai as openai_errors

_log = logging.getLogger("chatledger.server")


class Problem(BaseModel):
    """What is wrong with a request, or with the server. The fields of the error stand beside these."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="The kind of the problem, such as `urn:chatledger:ThreadNotFound`.")
    title: str = Field(description="What the kind means.")
    status: int = Field(description="The status of the response.")
    detail: str = Field(description="What is wrong with this request.")


class TokensUnreadable(errors.StorageError):
    """The file of tokens, or that of the logins beside it, cannot be read or written. The server tries again."""


class OutOfScope(errors.ChatLedgerError):
    """The token's scope does not allow the request. The request did nothing."""

    _status = 403
    scope: str
    """The scope of the token."""
    needed: str
    """The smallest scope that allows it."""

    def __init__(self, scope: str, needed: str, what: str = "this request") -> None:
        super().__init__(f"{what} needs a token of scope {needed}, and this one has {scope}")
        self.scope = scope
        self.needed = needed


class AdministratorOnly(errors.ChatLedgerError):
    """A user asks for what this server lets only the tenant's administrator do. The request did nothing."""

    _status = 403

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs a token of the tenant's administrator on this server")


TITLES_OF_ERRORS: Mapping[type[Exception], str] = {
    errors.NotFound: "It does not exist, or belongs to another user",
    errors.Erased: "The thread was erased",
    errors.VersionConflict: "It has changed since",
    errors.DraftLive: "The message is still being written",
    errors.Conflict: "It conflicts with what is stored",
    errors.RuleViolation: "The message breaks a rule",
    errors.UnknownFormat: "The format is unknown",
    errors.FormatError: "The payload does not fit the format",
    errors.LimitExceeded: "It is larger or smaller than allowed",
    errors.InvalidArgument: "An argument is wrong",
    errors.InvalidCursor: "The cursor is not of this list",
    errors.TenantOnly: "Only the tenant's administrator may do this",
    OutOfScope: "The token may not do this",
    AdministratorOnly: "Only the tenant's administrator may do this here",
    errors.OutcomeUnknown: "It may be stored or not; send the same request again",
    errors.DamagedCell: "A stored value is damaged",
    TokensUnreadable: "The server cannot read its tokens",
    errors.StorageError: "The database failed",
    errors.EncryptionError: "The server cannot decrypt or encrypt this",
    errors.SchemaMismatch: "The database needs a migration",
    errors.MissingExtra: "The server lacks a package for this",
    errors.ChatLedgerError: "The server cannot read or write this",
}
"""The first class of an error's ancestry that stands here says it."""


_LONGEST = 2_048
"""Characters of a text in a problem. What the client sent need not come back whole."""
_LOGGED: Mapping[type[Exception], str] = {
    errors.StorageError: "the database failed; the log of the server says how",
    TokensUnreadable: "the file of tokens or of logins cannot be read or written; the log of the server says why",
}
"""What is said of errors whose own words name hosts, roles or folders. Those stay in the log."""


def title_of(error: Exception) -> str:
    return next(TITLES_OF_ERRORS[kind] for kind in type(error).__mro__ if kind in TITLES_OF_ERRORS)


def problem_of(error: errors.ChatLedgerError) -> ProblemResponse:
    """The response for an error of the library."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return ProblemResponse(body_of(error), headers)


def body_of(error: errors.ChatLedgerError) -> dict[str, Any]:
    """The problem details of an error of the library."""
    detail = str(error)
    if type(error) in _LOGGED and error.__cause__ is not None:
        _log.warning("%s", error)
        detail = _LOGGED[type(error)]
    facts = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    return {**facts, **_details(type(error).__name__, title_of(error), error.http_status, detail)}


def problem(
    status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **facts: Any
) -> ProblemResponse:
    """The response for an error of the request itself."""
    return ProblemResponse({**body_of_request(status, kind, detail), **facts}, headers or {})


def body_of_request(status: int, kind: str, detail: str) -> dict[str, Any]:
    """The problem details of an error of the request itself."""
    return _details(kind, TITLES[kind], status, detail)


def problem_of_http(error: HTTPException) -> ProblemResponse:
    """The response for an error that the framework raises, and for a full server."""
    kind = _HTTP.get(error.status_code, "Http")
    facts = {"errors": _errors_of(error)} if kind == "InvalidRequest" else {}
    return problem(error.status_code, kind, str(error.detail), headers=error.headers, **facts)


def _errors_of(error: HTTPException) -> list[dict[str, str]]:
    """What is wrong with the request, as of a request that does not fit its route."""
    detail = str(error.detail)
    return getattr(error, "errors", None) or [{"path": "body", "detail": detail, "kind": "invalid"}]


_HTTP = {400: "InvalidRequest", 404: "NoRoute", 405: "NoMethod", 413: "BodyTooLarge", 501: "NoAgent", 503: "Busy"}
STATUSES = {
    "Unauthenticated": 401,
    "UnknownHost": 421,
    "NotLocal": 421,
    "ForeignSite": 403,
    "InvalidRequest": 400,
    "NoRoute": 404,
    "NoMethod": 405,
    "BodyTooLarge": 413,
    "EncodedBody": 415,
    "HeadTooLarge": 431,
    "Busy": 503,
    "OffsetMoved": 409,
    "DraftSilent": 409,
    "SlowBody": 408,
    "Timeout": 503,
    "ServerError": 500,
    "NoAgent": 501,
}
"""The status of each error of the request itself."""
TITLES = {
    "Unauthenticated": "The request has no token, or one that the server does not know",
    "UnknownHost": "The server does not have this name",
    "NotLocal": "Without tokens only this machine is served",
    "ForeignSite": "Pages of other sites may not write",
    "InvalidRequest": "The request does not fit the API",
    "NoRoute": "The server has no such route",
    "NoMethod": "The route has no such method",
    "BodyTooLarge": "The body is larger than allowed",
    "EncodedBody": "The body of a request may not be compressed",
    "HeadTooLarge": "The URL and the headers are larger than allowed",
    "Busy": "The server is too busy for this now",
    "OffsetMoved": "The draft has another length than the client believes",
    "DraftSilent": "The draft was renewed too long without a new piece",
    "SlowBody": "The body came too slowly",
    "NoAgent": "The server runs no agent",
    "Http": "The server refused the request",
    "Timeout": "The answer took too long",
    "ServerError": "The server failed",
}


def _details(kind: str, title: str, status: int, detail: str) -> dict[str, Any]:
    return {"type": f"urn:chatledger:{kind}", "title": title, "status": status, "detail": _plain(detail)}


class ProblemResponse(JsonResponse):
    """Problem details; on the paths that OpenAI's client calls, an error of OpenAI instead, and on those of an agent
    service with its statuses.
    """

    def __init__(self, problem: dict[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(problem, problem["status"], headers, media_type="application/problem+json")
        self.problem = problem
        self._given = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if agent_service_errors.concerns(scope):
            problem = agent_service_errors.problem_for_service(self.problem)
            response = JsonResponse(problem, problem["status"], self._given, media_type=self.media_type)
            await response(scope, receive, send)
            return
        if not openai_errors.concerns(scope):
            if self.problem["type"] == "urn:chatledger:NoRoute" and path_within(scope).startswith("/v1/"):
                detailed = {**self.problem, "detail": openai_errors.detail_of_no_route(scope)}
                # OpenAI's client takes its message, type and code from `error`.
                self.body = self.render({**detailed, **openai_errors.body_of(detailed)})
                self.headers["Content-Length"] = str(len(self.body))
            await super().__call__(scope, receive, send)
            return
        headers = {**self._given, **openai_errors.headers_of(self.problem)}
        body, status = openai_errors.body_of(self.problem), openai_errors.status_of(self.problem)
        await JsonResponse(body, status, headers)(scope, receive, send)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    return str(value)
