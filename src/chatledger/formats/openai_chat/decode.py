"""A payload as messages: a list of message objects, and nothing else that a program may hold in its place."""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.dumping import plain_message
from chatledger.formats.openai_chat.fields import as_object, wrong
from chatledger.formats.openai_chat.message import read_message
from chatledger.models import ChatMessage
from chatledger.models.json import MAX_DEPTH, json_problem

ROOT = "messages"


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The messages of a list. Raises DecodeError, whatever is given."""
    if isinstance(payload, dict) and ROOT in payload:
        raise DecodeError(ROOT, "a request body was given; the payload is the list under its key 'messages'")
    if not isinstance(payload, list):
        raise wrong(ROOT, "a list of messages", payload)
    sources = [plain_message(value, f"{ROOT}[{index}]") for index, value in enumerate(payload)]
    _check_json(sources)
    return [_read(source, f"{ROOT}[{index}]", lenient=lenient) for index, source in enumerate(sources)]


def _read(source: Any, path: str, *, lenient: bool) -> ChatMessage:
    return read_message(as_object(source, path), path, lenient=lenient)


def _check_json(sources: list[Any]) -> None:
    problem = json_problem(sources, max_depth=MAX_DEPTH)
    if problem is not None:
        path, detail = problem
        raise DecodeError(ROOT + path.removeprefix("$"), detail)
