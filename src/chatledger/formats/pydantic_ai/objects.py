"""Objects of the framework as JSON and back. Only this module needs the framework, and imports it at first use."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError, EncodeError, MissingExtra
from chatledger.models.json import JsonValue, dumps

_PACKAGE = "pydantic_ai"


def is_object(value: object) -> bool:
    """Whether the value is a request or a response of the framework, or of a class that inherits from one."""
    return any(
        cls.__name__ in ("ModelRequest", "ModelResponse") and cls.__module__.partition(".")[0] == _PACKAGE
        for cls in type(value).__mro__
    )


def plain(payload: object) -> list[Any]:
    """The messages of a payload, with each object in the framework's own JSON.

    Raises DecodeError for anything but a list, and for an object without a JSON form, with its path.
    """
    if not isinstance(payload, (list, tuple)):
        raise DecodeError("$", f"expected a list of messages, not {type(payload).__name__}")
    return [_dumped(value, f"$[{index}]") if is_object(value) else value for index, value in enumerate(payload)]


def build(payload: Sequence[JsonValue]) -> list[Any]:
    """The objects of messages. Raises EncodeError with the path of the first message that the framework rejects, and
    MissingExtra if the framework is not installed.
    """
    adapter = _adapter()
    return [_built(adapter, message, f"$[{index}]") for index, message in enumerate(payload)]


def _built(adapter: Any, message: JsonValue, path: str) -> Any:
    try:
        # The framework reads bytes from base64 only in JSON.
        [built] = adapter.validate_json(dumps([message]))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        steps = [str(step) for step in first["loc"][2:]]  # after the place in this list, and the kind
        raise EncodeError(".".join([path, *steps]), f"Pydantic AI rejects this value: {first['type']}") from None
    return built


def _dumped(value: Any, path: str) -> Any:
    adapter = _adapter()
    try:
        [dumped] = adapter.dump_python([value], mode="json", warnings=False)
    except Exception as error:  # any error of a live object in the message
        raise DecodeError(_undumpable(adapter, value, path), f"it has no JSON form ({type(error).__name__})") from error
    return dumped


def _undumpable(adapter: Any, value: Any, path: str) -> str:
    """The path of the first part that cannot be dumped; the path of the message if all parts can."""
    for index, part in enumerate(value.parts):
        try:
            adapter.dump_python([dataclasses.replace(value, parts=[part])], mode="json", warnings=False)
        except Exception:  # as above
            rest = _dumps_without_parts(adapter, value)
            return f"{path}.parts[{index}]" if rest else path
    return path


def _dumps_without_parts(adapter: Any, value: Any) -> bool:
    try:
        adapter.dump_python([dataclasses.replace(value, parts=[])], mode="json", warnings=False)
    except Exception:  # as above
        return False
    return True


def _adapter() -> Any:
    try:
        return importlib.import_module(f"{_PACKAGE}.messages").ModelMessagesTypeAdapter
    except ImportError:
        raise MissingExtra("pydantic-ai", "Pydantic AI's messages as objects") from None
