"""The OpenAPI description is valid and complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from fastapi import FastAPI
from openapi_spec_validator import validate
from pydantic import ValidationError

from chatledger import Ledger, Usage
from chatledger.server import ServerLimits, create_app
from chatledger.server.openapi import TAGS
from tests.server.conftest import by_header, client_of


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return create_app(Ledger.open("never-opened.db"), authenticate=by_header).openapi()


def operations(description: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in description["paths"].values():
        yield from methods.values()


def test_it_is_valid(description: dict[str, Any]) -> None:
    validate(description)


def test_each_operation_is_described(description: dict[str, Any]) -> None:
    found = list(operations(description))
    assert len(found) > 35
    for one in found:
        assert one["summary"], one
        assert one["description"].endswith("."), one["operationId"]
        assert set(one["tags"]) <= set(TAGS), one["operationId"]
        assert one["operationId"].isidentifier()
        assert {"500", "503", "default"} <= one["responses"].keys(), one["operationId"]
    ids = [one["operationId"] for one in found]
    assert len(set(ids)) == len(ids)


def test_each_parameter_and_each_field_is_described(description: dict[str, Any]) -> None:
    silent = [
        f"{one['operationId']}: {parameter['name']}"
        for one in operations(description)
        for parameter in one.get("parameters", ())
        if not parameter.get("description")
    ]
    for name, schema in description["components"]["schemas"].items():
        fields = schema.get("properties", {})
        silent += [f"{name}.{field}" for field, said in fields.items() if not said.get("description")]
        if not schema.get("description"):
            silent.append(name)
    assert silent == []


def test_each_problem_is_problem_json_and_those_for_openais_client_are_its_own(description: dict[str, Any]) -> None:
    for one in operations(description):
        kind = "application/json" if one["tags"] == ["OpenAI conversations"] else "application/problem+json"
        assert list(one["responses"]["default"]["content"]) == [kind], one["operationId"]


def test_all_but_the_health_check_ask_for_a_token(description: dict[str, Any]) -> None:
    open_to_all = [one["operationId"] for one in operations(description) if not one.get("security")]
    assert open_to_all == ["healthz"]


def test_a_parameter_is_left_out_and_never_null_and_a_number_has_a_minimum(description: dict[str, Any]) -> None:
    schemas = [parameter["schema"] for one in operations(description) for parameter in one.get("parameters", ())]
    assert [schema for schema in schemas if "null" in json.dumps(schema)] == []
    numbers = [schema for schema in schemas if schema.get("type") == "integer"]
    assert len(numbers) > 15
    assert [schema for schema in numbers if "minimum" not in schema] == []


def test_errors_stand_by_their_status(description: dict[str, Any]) -> None:
    usage = description["paths"]["/v1/usage"]["get"]["responses"]
    assert usage["501"] == {"$ref": "#/components/responses/Problem501"}
    assert "lacks a package" in description["components"]["responses"]["Problem501"]["description"]
    write = description["paths"]["/v1/threads/{thread_id}/messages"]["post"]["responses"]
    assert {"400", "404", "409", "410", "412", "413", "415", "422"} <= write.keys()
    deleted = description["paths"]["/v1/conversations/{conversation_id}"]["delete"]["responses"]
    assert deleted["404"] == {"$ref": "#/components/responses/Error404"}
    assert "application/json" in description["components"]["responses"]["Error404"]["content"]


async def test_the_description_names_where_the_application_is_mounted() -> None:
    app, outer = create_app(Ledger.open("never-opened.db"), authenticate=by_header), FastAPI()
    outer.mount("/chat", app)
    for served, path, url in ((app, "/v1/openapi.json", "/"), (outer, "/chat/v1/openapi.json", "/chat")):
        async with client_of(served) as client:
            described = (await client.get(path)).json()
            assert (described["servers"], described["security"]) == ([{"url": url}], [{"HTTPBearer": []}])


async def test_an_application_is_mounted_under_any_name(ledger: Ledger) -> None:
    """A header is ASCII: the thread was created, and the answer was a 500."""
    app, outer = create_app(ledger, authenticate=by_header), FastAPI()
    outer.mount("/\u0447\u0430\u0442", app)
    async with client_of(outer) as client:
        created = await client.post("/%D1%87%D0%B0%D1%82/v1/threads", json={"thread_id": "t"})
        assert (created.status_code, created.headers["location"]) == (201, "/%D1%87%D0%B0%D1%82/v1/threads/t")
        assert (await client.get(created.headers["location"])).json()["thread_id"] == "t"
        described = (await client.get("/%D1%87%D0%B0%D1%82/v1/openapi.json")).json()
        assert described["servers"] == [{"url": "/%D1%87%D0%B0%D1%82"}]


def test_a_stream_of_events_names_its_data(description: dict[str, Any]) -> None:
    stream = description["paths"]["/v1/threads/{thread_id}/events"]["get"]["responses"]["200"]["content"]
    assert list(stream) == ["text/event-stream"]
    assert "ThreadChange" in description["components"]["schemas"]


def test_bounds_are_exact(description: dict[str, Any]) -> None:
    tokens = description["components"]["schemas"]["Usage-Input"]["properties"]["input_tokens"]["anyOf"][0]
    assert (tokens["exclusiveMaximum"], tokens["minimum"]) == (2**63, 0)
    call = description["components"]["schemas"]["NewFeedback"]["properties"]["call_index"]["anyOf"][0]
    assert call == {"type": "integer", "minimum": 0}
    for model in ("Feedback", "NewFeedback"):
        score = description["components"]["schemas"][model]["properties"]["score"]
        assert (score["minimum"], score["maximum"]) == (-int(1e100), int(1e100)), model
    assert "e+" not in json.dumps(description)


def test_a_page_has_the_size_that_the_server_allows() -> None:
    ledger, limits = Ledger.open("never-opened.db"), ServerLimits(page=30)
    described = create_app(ledger, authenticate=by_header, limits=limits).openapi()
    found = [
        (schema["minimum"], schema["maximum"])
        for one in operations(described)
        for parameter in one.get("parameters", ())
        if parameter["name"] in ("limit", "turns") and one["tags"] != ["OpenAI conversations"]
        for schema in [parameter["schema"]]
    ]
    assert len(found) > 5
    assert set(found) == {(1, 30)}


def test_a_part_has_its_kind(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    named = [name for name in schemas if name.endswith("Part") and name != "OpaquePart"]
    assert len(named) == 6
    assert [name for name in named if "kind" not in schemas[name]["required"]] == []
    assert schemas["OpaquePart"]["required"] == ["value"]


@pytest.mark.parametrize("text", ["0", "1.50", "+.5", "7.", "1e-7", "12E+30"])
def test_a_cost_as_a_text_is_a_decimal_number(text: str, description: dict[str, Any]) -> None:
    assert re.search(_cost_pattern(description), text)
    assert Usage(cost=text).cost == Decimal(text)


@pytest.mark.parametrize("text", ["", ".", "-", "1,5", "free", "NaN"])
def test_another_text_is_no_cost(text: str, description: dict[str, Any]) -> None:
    assert not re.search(_cost_pattern(description), text)
    with pytest.raises(ValidationError):
        Usage(cost=text)


def _cost_pattern(description: dict[str, Any]) -> str:
    choices = description["components"]["schemas"]["Usage-Input"]["properties"]["cost"]["anyOf"]
    (pattern,) = [choice["pattern"] for choice in choices if choice["type"] == "string"]
    return str(pattern)
