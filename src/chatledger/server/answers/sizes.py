"""The sizes that a request may give a field. What the library or an import stored stays readable, however large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from chatledger.errors import LimitExceeded
from chatledger.models import ChatMessage
from chatledger.models.json import JsonObject, json_bytes, scan, text_bytes
from chatledger.models.limits import MOST_DIGITS, MOST_VALUES
from chatledger.server.answers.json_response import to_json

LARGEST_MESSAGE = 4 * 1024 * 1024
"""Maximum bytes of a message, as JSON in ASCII."""
_NAME = 512
_TITLE = 4 * 1024
_METADATA = 64 * 1024


def _bounded(most: int) -> AfterValidator:
    def check(value: Any) -> Any:
        if value is not None:
            _require(value, most)
        return value

    return AfterValidator(check)


def _require(value: Any, most: int, name: str = "") -> None:
    """Raises ValueError for a text or a JSON value that is larger."""
    size = text_bytes(value) if isinstance(value, str) else json_bytes(value)
    if size > most:
        raise ValueError(f"{name}has {size:,} bytes, and at most {most:,} are allowed")


Name = Annotated[str, _bounded(_NAME)]
"""The name of an agent, a model, a key, a source or a kind."""
Title = Annotated[str, _bounded(_TITLE)]
"""A title, or the author of a score."""
Metadata = Annotated[JsonObject, _bounded(_METADATA)]
"""The metadata of a thread or a run, or the further data of a score."""


def require_small_metadata(merged: JsonObject) -> None:
    """Raises LimitExceeded for metadata that would grow too large by being merged."""
    size = json_bytes(merged)
    if size > _METADATA:
        raise LimitExceeded("bytes of metadata", size, _METADATA)


def require_short_names(message: ChatMessage) -> ChatMessage:
    """Raises ValueError for a role, a name or the id of a call that is too long."""
    calls = message.tool_calls or ()
    names = [("role", message.role), ("name", message.name)]
    for name, value in [*names, *((f"tool_calls.{at}.name", call.name) for at, call in enumerate(calls))]:
        _require(value or "", _NAME, f"{name} ")
    ids = [("tool_call_id", message.tool_call_id)]
    for name, value in [*ids, *((f"tool_calls.{at}.id", call.id) for at, call in enumerate(calls))]:
        _require(value or "", _TITLE, f"{name} ")
    return message


def require_small(messages: Any) -> None:
    """Raises LimitExceeded for a message, or an element of a payload, that is too large for one answer, and for texts
    of JSON that have more values than a body may have.
    """
    values = digits = 0
    for at, message in enumerate(_elements(messages)):
        size = len(to_json(vars(message) if isinstance(message, ChatMessage) else message))
        if size > LARGEST_MESSAGE:
            detail = f"bytes of message {at}: {size:,} given, at most {LARGEST_MESSAGE:,} allowed"
            raise LimitExceeded("bytes of a message", size, LARGEST_MESSAGE, detail=detail)
        for text in _json_texts(message):
            count = scan(text.encode("utf-8", "surrogatepass"))
            values, digits = values + count.values, digits + count.digits
        _require_few("values", values, MOST_VALUES, at)
        _require_few("digits of long numbers", digits, MOST_DIGITS, at)


def _elements(payload: Any) -> Iterator[Any]:
    """The messages of a payload: its elements, or those of the lists in it."""
    if isinstance(payload, dict):
        for value in payload.values():
            yield from value if isinstance(value, list) else [value]
    else:
        yield from payload if isinstance(payload, list) else [payload]


def _require_few(what: str, count: int, most: int, at: int) -> None:
    if count > most:
        limit = f"{what} in texts of JSON"
        raise LimitExceeded(limit, count, most, detail=f"{limit}: more than {most:,} up to message {at}")


def _json_texts(message: Any) -> Iterator[str]:
    """The texts of a message that another format reads as JSON: arguments of calls, and a content of which a residual
    may say that it is JSON. Of a payload, each text under a name of arguments.
    """
    if isinstance(message, ChatMessage):
        texts = [call.arguments for call in message.tool_calls or ()]
        if message.residual is not None:
            texts += [message.content] if isinstance(message.content, str) else []
        yield from (text for text in texts if isinstance(text, str))
        return
    pending = [message]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            yield from (text for name in _ARGUMENTS if isinstance(text := item.get(name), str))
            pending += item.values()
        elif isinstance(item, list):
            pending += item


_ARGUMENTS = ("arguments", "args")
