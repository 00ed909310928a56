"""The agents and models that a client is told, as an object or as a JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chatledger.errors import InvalidArgument
from chatledger.formats.agent_service import ServiceMetadata


def read_service(path: str | os.PathLike[str]) -> ServiceMetadata:
    """The metadata in a JSON file. Raises InvalidArgument with the file and the place of what is wrong in it."""
    try:
        return _checked(json.loads(Path(path).read_bytes().decode("utf-8")))
    except OSError as error:
        raise InvalidArgument("service", f"cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument("service", f"{path}: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidArgument("service", f"{path}: is not JSON: {error}") from None
    except (_Wrong, RecursionError) as error:
        raise InvalidArgument("service", f"{path}: {error}") from None


def require_service(service: object) -> ServiceMetadata:
    """The metadata of an object that has them, also of a service's own class. Raises InvalidArgument."""
    try:
        return _checked(service)
    except _Wrong as error:
        raise InvalidArgument("service", f"is no ServiceMetadata: {error}") from None


class _Wrong(Exception):
    """The metadata have a mistake at this place."""

    def __init__(self, place: str, detail: str) -> None:
        super().__init__(f"{place}: {detail}")


def _checked(value: Any) -> ServiceMetadata:
    try:
        service = ServiceMetadata.model_validate(value, from_attributes=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _Wrong(".".join(map(str, first["loc"])) or "$", first["msg"]) from None
    if not service.agents:
        raise _Wrong("agents", "must have at least one")
    keys: set[str] = set()
    for index, agent in enumerate(service.agents):
        place = f"agents.{index}.key"
        if not agent.key:
            raise _Wrong(place, "must not be empty")
        if agent.key in keys:
            raise _Wrong(place, f"{agent.key!r} is the key of another agent")
        keys.add(agent.key)
    if service.default_agent not in keys:
        raise _Wrong("default_agent", f"{service.default_agent!r} is not the key of an agent")
    if service.default_model not in service.models:
        raise _Wrong("default_model", f"{service.default_model!r} is not in models")
    return service
