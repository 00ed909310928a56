"""The codec of `format="pydantic-ai"`."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError, EncodeError, MissingExtra
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.pydantic_ai.foreign import fit
from chatledger.formats.pydantic_ai.names import NAME, PART_KIND, REQUEST, RESPONSE
from chatledger.formats.pydantic_ai.read import read_payload
from chatledger.formats.pydantic_ai.write import ModelMessageWriter
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue, dumps


@dataclass(frozen=True, slots=True)
class PydanticAI:
    """A list of requests and responses, in the JSON of the framework's `ModelMessagesTypeAdapter` or as its objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_pydantic_ai(payload)

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: only `as_="models"` needs the framework."""
        return "dicts"

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each part of a request, and one for each response.

        Lenient rules keep a malformed message or part whole.
        """
        return Decoded(read_payload(plain(payload), lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts for `ModelMessagesTypeAdapter.validate_json`. `carry` has no effect."""
        return write_payload(messages)

    def as_models(self, payload: Any) -> Any:
        return build(payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = ModelMessageWriter()
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        fitted = fit(message)
        is_own = message.format == NAME
        written = None if fitted is None else writer.write(fitted, index + 1, is_own=is_own)
        if written is not None:
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(writer.messages, origins, own)


# --- Objects ----------------------------------------------------------------------------------------------------------
# Objects of the framework as JSON and back. Only this module needs the framework, and imports it at first use.

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


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely of Pydantic AI: its messages have a `kind`, and their parts a `part_kind`.


def is_pydantic_ai(payload: object) -> bool:
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(map(_is_message, payload)) and any(is_object(message) or message["parts"] for message in payload)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict):
        return is_object(message)
    kind, parts = message.get("kind"), message.get("parts")
    return (
        isinstance(kind, str) and kind in (REQUEST, RESPONSE) and isinstance(parts, list) and all(map(_is_part, parts))
    )


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get(PART_KIND), str)


CODEC = PydanticAI()
