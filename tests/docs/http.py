"""The routes of docs/reference/http.md, made of the OpenAPI description of the server when the site is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from starlette.requests import Request

from chatledger import Ledger, errors
from chatledger.server import Caller, create_app
from chatledger.server.openapi import TAGS
from chatledger.server.problems import STATUSES, TITLES, TITLES_OF_ERRORS

_NAMES = {"date-time": "time", **{name: name for name in ("string", "integer", "number", "boolean", "object")}}


@cache
def description() -> dict[str, Any]:
    async def nobody(request: Request) -> Caller | None:
        return None

    return create_app(Ledger.open("never-opened.db"), authenticate=nobody).openapi()


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The method, the path and the description of each operation, in the order of the tags."""
    found = [
        (method.upper(), path, one)
        for path, methods in description()["paths"].items()
        for method, one in methods.items()
    ]
    yield from sorted(found, key=lambda one: list(TAGS).index(one[2]["tags"][0]))


@cache
def shared() -> Sequence[str]:
    """The items of parameters that three operations or more take: one of each name, the one of most operations."""
    rows = Counter(_item(one) for _, _, operation in operations() for one in operation.get("parameters", ()))
    names: dict[str, str] = {}
    for row, count in rows.most_common():
        if count >= 3:
            names.setdefault(row.split("`")[1], row)
    return [*names.values()]


def parameters() -> str:
    return "\n".join(shared())


def _item(parameter: dict[str, Any]) -> str:
    name, place, said = parameter["name"], parameter["in"], parameter["description"]
    return f"- `{name}`{'' if place == 'query' else f' ({place})'}: {_type(parameter['schema'])}. {said}"


def described() -> str:
    parts: list[str] = []
    tag = ""
    for method, path, one in operations():
        if one["tags"][0] != tag:
            tag = one["tags"][0]
            parts += [f"### {tag[:1].upper() + tag[1:]}", TAGS[tag]]
        parts += [f"#### {one['operationId']}", f"`{method} {path}`", " ".join(one["description"].split())]
        parts += list(_takes(one))
        parts.append(_returns(one))
    return "\n\n".join(parts)


def _takes(operation: dict[str, Any]) -> Iterator[str]:
    taken = operation.get("parameters", ())
    rows = [row for row in map(_item, taken) if row not in shared()]
    if rows:
        yield "\n".join(rows)
    also = [f"`{one['name']}`" for one in taken if _item(one) in shared()]
    if also:
        yield f"{'Takes also' if rows else 'Takes'} {', '.join(also)}."
    if "requestBody" in operation:
        kinds = operation["requestBody"]["content"]
        own = kinds.get("application/json")
        yield f"Body: {_type(own['schema'])}." if own else f"Body: `{'` or `'.join(kinds)}`."


def _returns(operation: dict[str, Any]) -> str:
    said = []
    for status, response in operation["responses"].items():
        if status < "3" and "content" not in response:
            said.append(f"{status} with nothing")
        elif status < "3":
            [(media, content)] = response["content"].items()
            type_ = "events, each with a ThreadChange" if media == "text/event-stream" else _type(content["schema"])
            said.append(type_ if status == "200" else f"{status} with {type_}")
    return f"Returns {', or '.join(said)}."


def _type(schema: dict[str, Any]) -> str:
    """The type as a short text."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        item = name.removesuffix("Items")
        return f"[{name}](#{name.lower()})" if name in _own() else f"a page of {item}" if item != name else name
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return _NAMES.get(schema.get("format", ""), _NAMES.get(schema.get("type", ""), "any JSON"))


@cache
def _own() -> frozenset[str]:
    """The bodies that the server defines. The others are models of the library, or pages."""
    schemas = description()["components"]["schemas"]
    asked = {
        content["schema"].get("$ref", "").rpartition("/")[2]
        for _, _, one in operations()
        for content in one.get("requestBody", {"content": {}})["content"].values()
    }
    return frozenset(
        (asked | {"Stored", "MessagePage", "Prompt", "Me", "ShownAnswer"}) & schemas.keys() - {"ChatMessage"}
    )


def bodies() -> str:
    schemas = description()["components"]["schemas"]
    parts = []
    for name in sorted(_own()):
        required = schemas[name].get("required", ())
        rows = [
            f"- `{field}`: {_type(said)}{', required' if field in required else ''}. {said['description']}"
            for field, said in schemas[name]["properties"].items()
        ]
        parts += [f"### {name}", " ".join(schemas[name]["description"].split())]
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def problems() -> str:
    """Those of the server itself; the page of errors has the status of each error of the library."""
    named = [(status, name, TITLES[name]) for name, status in STATUSES.items()]
    raised = [
        (getattr(kind, "_status", 500), kind.__name__, title)
        for kind, title in TITLES_OF_ERRORS.items()
        if not _of_library(kind)
    ]
    rows = [f"| {status} | `{name}` | {title} |" for status, name, title in sorted([*named, *raised])]
    return "\n".join(["| status | `type` | title |", "|---|---|---|", *rows])


def _of_library(kind: type) -> bool:
    return getattr(errors, kind.__name__, None) is kind


TABLES = {"parameters": parameters, "operations": described, "bodies": bodies, "problems": problems}
