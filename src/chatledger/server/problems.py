"""Errors over HTTP: problem details (RFC 9457) from one table.

    {"type": "urn:chatledger:RuleViolation", "title": "The message breaks a rule", "status": 422,
     "detail": "message 0 of the batch breaks R6: …", "rule": "R6", "index": 0}

`type` names the error of the library. The attributes of the error stand beside it under their own names.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chatledger import errors
from chatledger.server.conversations import errors as openai_errors
from chatledger.server.json_response import JsonResponse

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

    scope: str
    """The scope of the token."""
    needed: str
    """The smallest scope that allows it."""

    def __init__(self, scope: str, needed: str, what: str = "this request") -> None:
        super().__init__(f"{what} needs a token of scope {needed}, and this one has {scope}")
        self.scope = scope
        self.needed = needed


class Meaning(NamedTuple):
    status: int
    title: str


MEANINGS: Mapping[type[Exception], Meaning] = {
    errors.NotFound: Meaning(404, "It does not exist, or belongs to another user"),
    errors.Erased: Meaning(410, "The thread was erased"),
    errors.VersionConflict: Meaning(412, "The branch has changed since"),
    errors.RevisionConflict: Meaning(412, "The thread has changed since"),
    errors.DraftLive: Meaning(409, "The message is still being written"),
    errors.Conflict: Meaning(409, "It conflicts with what is stored"),
    errors.RuleViolation: Meaning(422, "The message breaks a rule"),
    errors.UnknownFormat: Meaning(400, "The format is unknown"),
    errors.FormatError: Meaning(422, "The payload does not fit the format"),
    errors.LimitExceeded: Meaning(413, "It is larger or smaller than allowed"),
    errors.InvalidArgument: Meaning(400, "An argument is wrong"),
    errors.InvalidCursor: Meaning(400, "The cursor is not of this list"),
    errors.TenantOnly: Meaning(403, "Only the tenant's administrator may do this"),
    OutOfScope: Meaning(403, "The token may not do this"),
    errors.OutcomeUnknown: Meaning(503, "It may be stored or not; send the same request again"),
    errors.DamagedCell: Meaning(500, "A stored value is damaged"),
    TokensUnreadable: Meaning(503, "The server cannot read its tokens"),
    errors.StorageError: Meaning(503, "The database failed"),
    errors.KeyUnavailable: Meaning(503, "The server lacks a key for this"),
    errors.SchemaMismatch: Meaning(503, "The database needs a migration"),
    errors.MissingExtra: Meaning(501, "The server lacks a package for this"),
    errors.ChatLedgerError: Meaning(500, "The server cannot read or write this"),
}
"""The first class of an error's ancestry that stands here decides."""


_LOGGED: Mapping[type[Exception], str] = {
    errors.StorageError: "the database failed; the log of the server says how",
    TokensUnreadable: "the file of tokens or of logins cannot be read or written; the log of the server says why",
}
"""What is said of errors whose own words name hosts, roles or folders. Those stay in the log."""


def meaning_of(error: Exception) -> Meaning:
    return next(MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS)


def problem_of(error: errors.ChatLedgerError) -> ProblemResponse:
    """The response for an error of the library. A live draft and an unknown outcome say when to try again."""
    body = body_of(error)
    headers = {}
    if isinstance(error, errors.DraftLive):
        headers["Retry-After"] = str(max(1, math.ceil((error.until - datetime.now(UTC)).total_seconds())))
    elif body["status"] == 503:
        headers["Retry-After"] = "1"
    return ProblemResponse(body, headers)


def body_of(error: errors.ChatLedgerError) -> dict[str, Any]:
    """The problem details of an error of the library."""
    status, title = meaning_of(error)
    if isinstance(error, errors.StorageError) and not error.retryable:
        status = 500
    if isinstance(error, errors.LimitExceeded) and error.given <= error.maximum:
        status = 400  # too little
    detail = str(error)
    if type(error) in _LOGGED and error.__cause__ is not None:
        _log.warning("%s", error)
        detail = _LOGGED[type(error)]
    facts = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    return {**facts, **_details(type(error).__name__, title, status, detail)}


def problem(status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **facts: Any) -> Response:
    """The response for an error of the request itself."""
    return ProblemResponse({**body_of_request(status, kind, detail), **facts}, headers or {})


def body_of_request(status: int, kind: str, detail: str) -> dict[str, Any]:
    """The problem details of an error of the request itself."""
    return _details(kind, TITLES[kind], status, detail)


def problem_of_http(error: HTTPException) -> Response:
    """The response for an error that the framework raises, and for a full server."""
    kind = _HTTP.get(error.status_code, "Http")
    facts = {"errors": _errors_of(error)} if kind == "InvalidRequest" else {}
    return problem(error.status_code, kind, str(error.detail), headers=error.headers, **facts)


def _errors_of(error: HTTPException) -> list[dict[str, str]]:
    """What is wrong with the request, as of a request that does not fit its route."""
    detail = str(error.detail)
    return getattr(error, "errors", None) or [{"path": "body", "detail": detail, "kind": "invalid"}]


_HTTP = {400: "InvalidRequest", 404: "NoRoute", 405: "NoMethod", 413: "BodyTooLarge", 503: "Busy"}
TITLES = {
    "Unauthenticated": "The request has no token, or one that the server does not know",
    "UnknownHost": "The server does not have this name",
    "NotLocal": "Without tokens only this machine is served",
    "ForeignSite": "Pages of other sites may not write",
    "InvalidRequest": "The request does not fit the API",
    "NoRoute": "The server has no such route",
    "NoMethod": "The route has no such method",
    "BodyTooLarge": "The body is larger than allowed",
    "HeadTooLarge": "The URL and the headers are larger than allowed",
    "Busy": "The server has no room for this now",
    "Http": "The server refused the request",
    "Timeout": "The answer took too long",
    "ServerError": "The server failed",
}


def _details(kind: str, title: str, status: int, detail: str) -> dict[str, Any]:
    return {"type": f"urn:chatledger:{kind}", "title": title, "status": status, "detail": detail}


class ProblemResponse(JsonResponse):
    """Problem details; on the paths that OpenAI's client calls, an error of OpenAI instead."""

    def __init__(self, problem: dict[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(problem, problem["status"], headers, media_type="application/problem+json")
        self.problem = problem
        self._given = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not openai_errors.concerns(scope):
            await super().__call__(scope, receive, send)
            return
        headers = {**self._given, **openai_errors.headers_of(self.problem)}
        body, status = openai_errors.body_of(self.problem), openai_errors.status_of(self.problem)
        await JsonResponse(body, status, headers)(scope, receive, send)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value)
