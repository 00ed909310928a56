"""A payload as messages: a list of message objects, and nothing else that a program may hold in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.message import read_message
from chatledger.formats.wire.fields import as_object, wrong
from chatledger.formats.wire.plain import dump_given, dumped, plain_value, require_json
from chatledger.models import ChatMessage

ROOT = "messages"
_DEPTH = 4
"""How far down objects may stand in a message: its calls and parts, what these hold, and one more."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The messages of a list. Raises DecodeError, whatever is given."""
    if isinstance(payload, dict) and ROOT in payload:
        raise DecodeError(ROOT, "a request body was given; the payload is the list under its key 'messages'")
    if not isinstance(payload, list):
        raise wrong(ROOT, "a list of messages", payload)
    sources = [plain_message(value, f"{ROOT}[{index}]") for index, value in enumerate(payload)]
    require_json(sources, ROOT)
    return [_read(source, f"{ROOT}[{index}]", lenient=lenient) for index, source in enumerate(sources)]


def _read(source: Any, path: str, *, lenient: bool) -> ChatMessage:
    return read_message(as_object(source, path), path, lenient=lenient)


def plain_message(value: object, path: str) -> Any:
    """A message as a dict, if it is one or an object that dumps one; anything else as it is.

    Keys that were not given stay absent, but for the role: a class of its own for each role has it as a default.
    """
    if type(value) is dict and _SCALARS.issuperset(map(type, value.values())):
        return value.copy()
    message = plain_value(value, path, _DEPTH, dump_given)
    if isinstance(message, dict) and "role" not in message and not isinstance(value, dict):
        return plain_value(dumped(value, path, _dump_all), path, _DEPTH, dump_given)
    return message


def _dump_all(model_dump: Callable[..., object]) -> object:
    try:
        return model_dump(exclude_unset=False)
    except TypeError:  # a model_dump of an older or another kind, without options
        return model_dump()
