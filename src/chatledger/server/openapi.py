"""The OpenAPI description of the application: ids by the names of the functions, and the problems of every route."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

from chatledger.models import ThreadChange
from chatledger.server.problems import Problem

TAGS = {
    "health": "Whether the server works.",
    "caller": "Who sends the request.",
    "threads": "Conversations.",
    "messages": "The messages of a thread.",
    "branches": "The paths through a thread: edits and other answers.",
    "events": "The changes of a thread while they happen.",
    "search": "Search in messages and titles.",
    "runs": "The executions of agents.",
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


class DescribedApp(FastAPI):
    """An application whose description says what its error handlers answer."""

    def openapi(self) -> dict[str, Any]:
        description = self.openapi_schema
        if description is None:
            description = super().openapi()
            _add_problems(description)
            _add_events(description)
            _add_page_sizes(description, self.state.server.limits.page)
            _write_bounds_as_integers(description)
        return description


def operation_id(route: APIRoute) -> str:
    """The name of the function, which stays when a path changes."""
    return route.name


def _add_problems(description: dict[str, Any]) -> None:
    """Name a problem as the response of each operation that names no errors of its own."""
    for operation in _operations(description):
        responses = operation["responses"]
        if "default" not in responses:
            responses.pop("422", None)  # FastAPI's own, which a handler of the application replaces
            responses["default"] = _PROBLEM
    schemas = description["components"]["schemas"]
    schemas["Problem"] = _schema(Problem)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _add_events(description: dict[str, Any]) -> None:
    """Describe a stream of events as OpenAPI 3.1 can: in words. FastAPI writes a word of 3.2, which few read."""
    for operation in _operations(description):
        stream = operation["responses"].get("200", {}).get("content", {}).get("text/event-stream")
        if stream is not None:
            stream.pop("itemSchema", None)
            stream["schema"] = {"description": "Server-sent events. Their data is a ThreadChange."}
    description["components"]["schemas"]["ThreadChange"] = _schema(ThreadChange)


def _add_page_sizes(description: dict[str, Any], most: int) -> None:
    """Say how large a page may be, which each server decides."""
    for operation in _operations(description):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "limit":
                for schema in parameter["schema"].get("anyOf", ()):
                    if schema["type"] == "integer":
                        schema.update(minimum=1, maximum=most)


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
