"""What a server says of the agents and models that it is given."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chatledger import Ledger
from chatledger.errors import InvalidArgument
from chatledger.server import ServiceMetadata, create_app
from chatledger.server.agent_service.metadata import read_service
from tests.cli.commands import chatledger
from tests.server.conftest import by_header, client_of, json_of

GIVEN: dict[str, Any] = {
    "agents": [{"key": "chatbot", "description": "Talks."}],
    "models": ["gpt-5-nano"],
    "default_agent": "chatbot",
    "default_model": "gpt-5-nano",
}
AGENT = GIVEN["agents"][0]
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no default": ({"default_agent": ...}, "default_agent: Field required"),
    "no agents": ({"agents": []}, "agents: must have at least one"),
    "an agent without a description": ({"agents": [{"key": "a"}]}, "agents.0.description: Field required"),
    "an agent without a key": ({"agents": [{**AGENT, "key": ""}]}, "agents.0.key: must not be empty"),
    "two of a key": ({"agents": [AGENT, AGENT]}, "agents.1.key: 'chatbot' is the key of another agent"),
    "agents as a mapping": ({"agents": {"chatbot": "Talks."}}, "agents: Input should be a valid list"),
    "no models": ({"models": []}, "default_model: 'gpt-5-nano' is not in models"),
    "a model that is a number": ({"models": ["gpt-5-nano", 4]}, "models.1: Input should be a valid string"),
    "another default agent": ({"default_agent": "b"}, "default_agent: 'b' is not the key of an agent"),
    "another default model": ({"default_model": "m"}, "default_model: 'm' is not in models"),
}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**GIVEN, **changes}.items() if value is not ...}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    changes, said = WRONG[name]
    file = tmp_path / "service.json"
    file.write_text(json.dumps(changed(changes)))
    with pytest.raises(InvalidArgument, match=r"service\.json") as refused:
        read_service(file)
    assert (refused.value.argument, said in str(refused.value)) == ("service", True), str(refused.value)


def test_what_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "service.json"
    for text, said in (('{\n "agents": [,]}', "line 2 column 13"), ("[]", "$: Input should be"), ("\ufeff", "line 1")):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match=r"service\.json") as refused:
            read_service(file)
        assert said in str(refused.value)
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidArgument, match="byte 0 is not UTF-8"):
        read_service(file)


@pytest.mark.parametrize("name", WRONG)
async def test_create_app_refuses_it_too(ledger: Ledger, name: str) -> None:
    changes, said = WRONG[name]
    for service in (changed(changes), 5):
        with pytest.raises(InvalidArgument) as refused:
            create_app(ledger, authenticate=by_header, service=service)  # type: ignore[arg-type]
        assert refused.value.argument == "service"
        assert said in str(refused.value) or service == 5


async def test_the_class_of_a_service_may_be_another_one(ledger: Ledger) -> None:
    """The services have enumerations of models, and classes of their own."""

    class Model(StrEnum):
        NANO = "gpt-5-nano"

    agents = [SimpleNamespace(**AGENT)]
    given = SimpleNamespace(agents=agents, models=[Model.NANO], default_agent="chatbot", default_model=Model.NANO)
    for service in (given, GIVEN, ServiceMetadata(**GIVEN)):
        app = create_app(ledger, authenticate=by_header, service=service)  # type: ignore[arg-type]
        async with client_of(app) as client:
            assert json_of(await client.get("/agent-service/info")) == GIVEN


def test_serve_ends_with_a_wrong_file(tmp_path: Path) -> None:
    path, file = str(tmp_path / "chat.db"), tmp_path / "service.json"
    missing = chatledger("serve", "--migrate", "--service", str(file), url=path)
    assert (missing.code, "service.json" in missing.err) == (2, True), missing.err
    file.write_text(json.dumps(changed({"default_agent": "b"})))
    done = chatledger("serve", "--migrate", "--service", str(file), url=path)
    assert done.code == 2
    assert f"{file}: default_agent: 'b' is not the key of an agent" in done.err.replace("\n", " ")
