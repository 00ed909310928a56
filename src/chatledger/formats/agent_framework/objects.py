"""Objects of the framework as dicts and back. The framework is imported only to create objects.

The framework's own dump of a message silently leaves out live values in its properties and contents. Here they are
kept, so that reading rejects them with their path.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

from chatledger.errors import DecodeError, EncodeError, MissingExtra
from chatledger.formats.agent_framework.parts import CONTENTS, NAME, PROPERTIES, THINKING, TYPE
from chatledger.models.json import JsonValue

_PACKAGE = "agent_framework"
_RAW = "raw_representation"
Signers = dict[int, str]
"""The provider that signed a thought, by the position of the content in its message."""


def is_object(value: object) -> bool:
    """Whether the value is a message object of the framework, or of a class that inherits from one."""
    bases = type(value).__mro__
    return any(cls.__name__ == "Message" and cls.__module__.partition(".")[0] == _PACKAGE for cls in bases)


def dumped(value: Any, path: str) -> tuple[dict[str, Any], Signers]:
    """The dict of `Message.to_dict`, with the live values that it would leave out, and the signers of the contents.

    Raises DecodeError for an object whose own code fails.
    """
    try:
        source = value.to_dict()
        properties = value.additional_properties
        contents = list(value.contents)
        whole = [content.to_dict() for content in contents]
    except Exception as error:  # foreign code may raise anything; the error is the cause
        raise DecodeError(path, f"{type(value).__name__}.to_dict raised {type(error).__name__}") from error
    if _has_live(properties):
        source[PROPERTIES] = dict(properties)
    source[CONTENTS] = [full if _has_live(full) else short for full, short in zip(whole, source[CONTENTS], strict=True)]
    for annotation in _annotations(source.get(CONTENTS)):
        annotation.pop(_RAW, None)
    signers = {position: signer for position, content in enumerate(contents) if (signer := _signer_of(content))}
    return source, signers


def _has_live(value: object) -> bool:
    """Whether the framework would leave out a part of the value."""
    if isinstance(value, Mapping):
        return any(_has_live(child) for child in value.values())
    if isinstance(value, list):
        return any(map(_has_live, value))
    if value is None or isinstance(value, (str, int, float, date, time)):
        return False
    return not callable(getattr(value, "to_dict", None))


def _annotations(value: object) -> Iterator[dict[str, Any]]:
    """The annotations of contents at any depth. Each may hold the object of the provider's SDK."""
    if isinstance(value, list):
        for child in value:
            yield from _annotations(child)
    elif isinstance(value, dict):
        annotations = value.get("annotations")
        if isinstance(annotations, list):
            yield from (annotation for annotation in annotations if isinstance(annotation, dict))
        for child in value.values():
            yield from _annotations(child)


def _signer_of(content: Any) -> str | None:
    """The provider whose SDK made a thought. If a thought was streamed, the content holds the object of each piece."""
    if getattr(content, TYPE, None) != THINKING or getattr(content, "protected_data", None) is None:
        return None
    raw = getattr(content, _RAW, None)
    first = raw[0] if isinstance(raw, list) and raw else raw
    package = type(first).__module__.partition(".")[0]
    return package if package in _SDKS else None


_SDKS = ("anthropic", "openai")
"""The SDKs of providers, which are named like them. Others stand in front of several providers."""


def build(payload: Sequence[JsonValue]) -> list[Any]:
    """The objects of messages. Raises EncodeError with the path of the first message that the framework rejects, and
    MissingExtra if the framework is not installed.
    """
    try:
        message = importlib.import_module(_PACKAGE).Message
    except ImportError:
        raise MissingExtra(NAME, "messages of the Microsoft Agent Framework as objects") from None
    return [_built(message, source, f"$[{index}]") for index, source in enumerate(payload)]


def _built(message: Any, source: JsonValue, path: str) -> Any:
    try:
        built = message.from_dict(source)
        is_whole = len(built.contents) == len(source[CONTENTS])
    except Exception as error:  # foreign code may raise anything; the error is the cause
        raise EncodeError(
            path, f"the framework rejects this message ({type(error).__name__}); use as_='dicts'"
        ) from error
    if not is_whole:  # the framework logs an unknown content and leaves it out
        raise EncodeError(path, "the framework would drop a content of this message; use as_='dicts'")
    return built
