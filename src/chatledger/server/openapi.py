"""The OpenAPI description of the application: ids by the names of the functions, and the problems of every route."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response

from chatledger.models import Piece, ThreadChange
from chatledger.server.answers.json_response import JsonResponse
from chatledger.server.problems import STATUSES, TITLES, TITLES_OF_ERRORS, Problem
from chatledger.server.query import refuse_unfit

TAGS = {
    "health": "Whether the server works.",
    "caller": "Who sends the request.",
    "threads": "Conversations.",
    "messages": "The messages of a thread.",
    "drafts": "Answers that grow while a client's model writes them.",
    "branches": "The paths through a thread: edits and other answers.",
    "events": "The changes of a thread while they happen.",
    "search": "Search in messages and titles.",
    "runs": "The executions of agents.",
    "answers": "Answers of agents, which outlive the request that asked for them.",
    "feedback": "Scores of runs, messages and calls.",
    "OpenAI conversations": "The Conversations API as OpenAI's client speaks it, with OpenAI's errors.",
    "usage": "Sums of runs, tokens, costs, messages and scores.",
}
"""The groups of routes, in the order of the description."""

_PROBLEM = {
    "description": "A problem. Its `type` names it, and the fields of that error stand beside it.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}

_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}


_ALWAYS = (400, 401, 403, 421, 500, 503)
"""Statuses that each request may get."""
_TAGGED = {"read_messages": "the branch", "read_prompt": "the branch", "get_thread": "the thread"}
"""The operations whose answer has an entity tag, and what it is the state of."""


class DescribedApp(FastAPI):
    """An application whose description says what its error handlers answer."""

    def setup(self) -> None:
        """FastAPI's own route names the root of the server too, where the application is mounted below it."""

        async def describe(request: Request) -> Response:
            await refuse_unfit(request)
            root = quote(request.scope.get("root_path", "").rstrip("/"))
            return JsonResponse({**self.openapi(), "servers": [{"url": root or "/"}]})

        self.add_route(str(self.openapi_url), describe, include_in_schema=False)

    def openapi(self) -> dict[str, Any]:
        description = self.openapi_schema
        if description is None:
            description = super().openapi()
            description["servers"] = [{"url": "/"}]
            description["security"] = [{name: []} for name in description["components"]["securitySchemes"]]
            description["paths"]["/healthz"]["get"]["security"] = []
            _add_problems(description)
            _add_tags_of_states(description)
            _leave_out_null(description)
            _add_text(description)
            _add_events(description)
            _add_page_sizes(description, self.state.server.limits.page)
            _write_bounds_as_integers(description)
        return description


def operation_id(route: APIRoute) -> str:
    """The name of the function, which stays when a path changes."""
    return route.name


def _add_problems(description: dict[str, Any]) -> None:
    """Name the errors of each operation by their status. Those for OpenAI's client have its shape."""
    components = description["components"]
    titles = _titles()
    named = components["responses"] = {
        f"Problem{status}": {**_PROBLEM, "description": titles[status]} for status in titles
    }
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            responses.pop("422", None)  # FastAPI's own, which a handler of the application replaces
            own = responses.pop("default", None)
            kind = "Problem" if own is None else "Error"
            for status in _statuses(path, method, operation):
                if own is not None:
                    named[f"Error{status}"] = {**own, "description": titles[status]}
                responses[str(status)] = {"$ref": f"#/components/responses/{kind}{status}"}
            responses["default"] = own or _PROBLEM
    schemas = description["components"]["schemas"]
    schemas["Problem"] = _schema(Problem)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _titles() -> dict[int, str]:
    """What each status may mean."""
    by_status: dict[int, list[str]] = {}
    for kind, title in TITLES_OF_ERRORS.items():
        by_status.setdefault(getattr(kind, "_status", 500), []).append(title)
    for name, status in STATUSES.items():
        by_status.setdefault(status, []).append(TITLES[name])
    return {status: ". ".join(titles) + "." for status, titles in sorted(by_status.items())}


def _statuses(path: str, method: str, operation: dict[str, Any]) -> list[int]:
    """The errors that the operation may have."""
    if path == "/healthz":
        return [421, 500, 503]
    names = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    statuses = {*_ALWAYS}
    of_openai = operation["tags"] == ["OpenAI conversations"]
    if method != "get":
        statuses |= {404, 409} if of_openai else {404, 409, 410, 413, 422}
    if "{" in path or names & {"cursor", "after", "thread_id", "run_id"}:
        statuses.add(404)
    if method == "get" and path not in ("/v1/me", "/v1/metrics") and not of_openai:
        statuses.add(413)
    if "requestBody" in operation:
        statuses |= {413, 415}
    if "application/x-ndjson" in operation.get("requestBody", {}).get("content", ()):
        statuses.add(408)
    if names & {"if-match"}:
        statuses.add(412)
    if "format" in names:
        statuses.add(422)
    if names & {"prices", "format"} or "Append" in str(operation.get("requestBody")):
        statuses.add(501)
    return sorted(statuses)


def _add_tags_of_states(description: dict[str, Any]) -> None:
    """Describe `ETag`, `Location` and `If-None-Match`, with which the routes answer by themselves."""

    def header(text: str) -> dict[str, Any]:
        return {"description": text, "schema": {"type": "string"}}

    for operation in _operations(description):
        state = _TAGGED.get(operation["operationId"])
        if state is not None:
            tag = {"ETag": header(f"The state of {state}.")}
            operation["responses"]["200"]["headers"] = tag
            operation["responses"]["304"] = {"description": f"The client has this state of {state}.", "headers": tag}
            text = "The `ETag` of an earlier answer; 304 while it is the same."
            known = {"name": "If-None-Match", "in": "header", "required": False, **header(text)}
            operation.setdefault("parameters", []).append(known)
        created = operation["responses"].get("201")
        if created is not None and operation["operationId"] != "record_feedback":  # no route reads one score
            created["headers"] = {"Location": header("Where the thing is that was created.")}
            if operation["operationId"] in _TAGGED_WRITES:
                created["headers"]["ETag"] = header("Its state.")


_TAGGED_WRITES = ("append_messages", "create_thread", "copy_thread", "fork_branch")


def _leave_out_null(description: dict[str, Any]) -> None:
    """A parameter is left out, and is never null."""
    for operation in _operations(description):
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
            if len(kinds) == 1:
                del schema["anyOf"]
                schema.update(kinds[0])


def _add_text(description: dict[str, Any]) -> None:
    """Describe the text that a message has beside its content, when it is read."""
    message = description["components"]["schemas"]["ChatMessage"]
    text = {"type": "string", "readOnly": True, "title": "Text", "description": "All text of the content, joined."}
    message["properties"] = {**message["properties"], "text": text}


def _add_events(description: dict[str, Any]) -> None:
    """Describe a stream of events as OpenAPI 3.1 can: in words. FastAPI writes a word of 3.2, which few read."""
    for operation in _operations(description):
        stream = operation["responses"].get("200", {}).get("content", {}).get("text/event-stream")
        if stream is not None:
            stream.pop("itemSchema", None)
            stream["schema"] = {
                "description": "Server-sent events. Their data is a ThreadChange, with `deltas` its filled fields."
            }
    schemas = description["components"]["schemas"]
    schemas |= {model.__name__: _schema(model) for model in (ThreadChange, Piece)}


def _add_page_sizes(description: dict[str, Any], most: int) -> None:
    """Say how large a page may be, which each server decides."""
    for operation in _operations(description):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in ("limit", "turns") and "maximum" not in parameter["schema"]:
                parameter["schema"].update(minimum=1, maximum=most)


def _write_bounds_as_integers(part: Any) -> None:
    """FastAPI makes a bound a float: 2**63 becomes 9.223372036854776e+18, which as a decimal number is larger."""
    if isinstance(part, dict):
        for name in _BOUNDS & part.keys():
            if isinstance(part[name], float) and part[name].is_integer():
                part[name] = int(part[name])
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _write_bounds_as_integers(inner)


def _operations(description: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in description["paths"].values():
        yield from operations.values()


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model; the models that it names are in the description already."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    schema.pop("$defs", None)
    return schema
