"""What `/v1` was called before 0.1.0. Who still sends it gets a problem that names the new way.

A name goes in here with the commit that takes it out of the API. A test sends each, and sees that it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.routing import compile_path

from chatledger.server.paths import path_within
from chatledger.server.requests.json_request import InvalidBody

FIELDS: Mapping[str, Mapping[str, str]] = {
    "read_messages": {
        "query.last_turns": "last_turns is now turns",
        "query.max_tokens": "max_tokens is now tokens",
        "query.partials": "partials is gone: the message that is still being written is in draft, never in items",
        "query.view": "view is gone: GET /v1/threads/{thread_id}/prompt has what the provider accepts",
    },
    "append_messages": {
        "body.after": "after is now reply_to, the id of a message, or alternative_to for its place",
        "body.user_id": "user_id is now in the URL: ?user_id=",
        "body.kind": 'kind is now in create: {"create": {"kind": …}}',
        "body.title": 'title is now in create: {"create": {"title": …}}',
        "body.kv_expected": "kv_expected is now beside each value: kv: {key: {value, expected}}",
    },
    "follow_thread": {"query.after": "after is now cursor"},
    "fork_branch": {"body.at": "at is now the id of a message, or null for the beginning"},
    "rewind_branch": {"body.to": "to is now the id of a message, or null for the beginning"},
    "copy_thread": {"body.at": "at is now until, the id of a message"},
}
"""By operation, the query parameters and the fields of bodies that it lost, or that now take another type."""
_ARCHIVED = 'is now PATCH /v1/threads/{thread_id} with {"archived": '
ROUTES: Mapping[str, str] = {
    "POST /v1/threads/{thread_id}/archive": f"archive {_ARCHIVED}true}}",
    "POST /v1/threads/{thread_id}/unarchive": f"unarchive {_ARCHIVED}false}}",
    "GET /v1/threads/{thread_id}/alternatives": (
        "alternatives is now GET /v1/threads/{thread_id}/messages/{message_id}/alternatives"
    ),
    "GET /v1/feedback/current": "feedback/current is now GET /v1/feedback; all scores are GET /v1/feedback?events=true",
    "POST /v1/feedback/{feedback_id}/retract": "retract is now DELETE /v1/feedback/{feedback_id}",
    "POST /v1/feedback/{feedback_id}/remove": "remove is now DELETE /v1/feedback/{feedback_id}",
}
"""The routes that are gone."""
_OLD_PATHS = [(route.split()[0], compile_path(route.split()[1])[0], says) for route, says in ROUTES.items()]
_WRONG = frozenset({"extra_forbidden", "string_type"})
"""The kinds of mistakes that an old name makes. A field that is only missing has none."""


def naming_the_new(request: Request, error: InvalidBody) -> InvalidBody:
    """The error in the words of the table, where it has any."""
    says = FIELDS.get(getattr(request.scope.get("route"), "name", ""), {})
    errors = [mistake for mistake in error.errors if mistake["kind"] in _WRONG and mistake["path"] in says]
    for mistake in errors:
        mistake["detail"] = says[mistake["path"]]
    return InvalidBody(error.errors) if errors else error


def of_old_route(request: Request) -> InvalidBody | None:
    """What a request to a route that is gone gets; None for one that never was."""
    path = path_within(request.scope)
    for method, pattern, says in _OLD_PATHS:
        if method == request.method and pattern.match(path):
            return InvalidBody([{"path": "path", "detail": says, "kind": "renamed"}])
    return None
