"""Errors in the shape of OpenAI, on the paths of the Conversations API. The status decides what its client raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from chatledger.server.paths import path_within

PATH = "/v1/conversations"
_MODELS = re.compile(r"/v1/(responses|chat/completions|completions|embeddings|models)(/|$)")
_NO_MODEL = (
    "this server stores conversations and runs no model: send the request to your model's provider, with the items of "
    "GET /v1/conversations/{conversation_id}/items as its input, and store the answer with "
    "POST /v1/conversations/{conversation_id}/items"
)

_STATUSES = {
    "Erased": 404,
    "VersionConflict": 409,
    "RuleViolation": 400,
    "DecodeError": 400,
    "LimitExceeded": 400,
}
"""The errors that have another status here than in the rest of the API."""
_CODES = {
    "missing": "missing_required_parameter",
    "extra_forbidden": "unknown_parameter",
    "too_long": "array_above_max_length",
    "string_too_long": "string_above_max_length",
    "greater_than_equal": "integer_below_min_value",
    "less_than_equal": "integer_above_max_value",
}
"""OpenAI's word for what Pydantic finds wrong in a request."""
_KINDS = {
    "Unauthenticated": "invalid_api_key",
    "ThreadNotFound": "conversation_not_found",
    "Erased": "conversation_not_found",
    "MessageNotFound": "item_not_found",
}
"""OpenAI's word for an error of ours. The others keep their names."""
_PASSING = frozenset({"DraftLive"})
"""Conflicts that end by themselves, so that it helps to send the request again."""


def concerns(scope: Scope) -> bool:
    """Whether the request is one of the Conversations API."""
    path = path_within(scope)
    return path == PATH or path.startswith(f"{PATH}/")


def detail_of_no_route(scope: Scope) -> str:
    """What a request to a path that the server does not have gets to read."""
    path = path_within(scope)
    return _NO_MODEL if _MODELS.match(path) else f"there is no {path:.200}; GET /v1/openapi.json has the routes"


def status_of(problem: Mapping[str, Any]) -> int:
    return _STATUSES.get(_kind(problem), int(problem["status"]))


def headers_of(problem: Mapping[str, Any]) -> dict[str, str]:
    """OpenAI's client sends a request again after each conflict, unless the response tells it not to."""
    lasts = status_of(problem) == 409 and _kind(problem) not in _PASSING
    return {"x-should-retry": "false"} if lasts else {}


def body_of(problem: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's error for a problem of ours."""
    param, code = _param_and_code(problem)
    kind = "server_error" if status_of(problem) >= 500 else "invalid_request_error"
    return {"error": {"message": _message(problem), "type": kind, "param": param, "code": code}}


def _kind(problem: Mapping[str, Any]) -> str:
    return str(problem["type"]).rpartition(":")[2]


def _message(problem: Mapping[str, Any]) -> str:
    match _kind(problem):
        case "ThreadNotFound" | "Erased":
            return f"there is no conversation {problem['thread_id']!r}"
        case "MessageNotFound":
            return f"conversation {problem['thread_id']!r} has no item {problem['message_id']!r}"
        case "InvalidRequest":
            return "; ".join(f"{_place(mistake['path'])}: {mistake['detail']}" for mistake in problem["errors"][:3])
    return str(problem["detail"])


def _param_and_code(problem: Mapping[str, Any]) -> tuple[str | None, str]:
    kind = _kind(problem)
    if kind == "InvalidRequest":
        first = problem["errors"][0]
        return _place(first["path"]), _CODES.get(first.get("kind", ""), "invalid_value")
    if kind in ("DecodeError", "InvalidArgument"):
        return problem.get("path") or problem.get("argument"), "invalid_value"
    return None, _KINDS.get(kind, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower())


def _place(path: str) -> str:
    """The place without the part of the request that it is in: `query.limit` is `limit`."""
    return path.partition(".")[2].replace("[]", "") or path
