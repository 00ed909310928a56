"""Rows: each message of a payload as the dict that its class would dump, whether it came as a dict or as an object.

Objects are read by their fields and never imported, so any class of this shape will do: a service's own, a fork's, a
newer one with fields that we do not know. Their attributes are read rather than their dump, which would hide a live
object inside a free dict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.coercion import coerce
from chatledger.formats.wire.plain import require_json
from chatledger.models import Loss, RulesLevel
from chatledger.models.json import JsonValue

Row = dict[str, JsonValue]

MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Source:
    """A row and where it stands. `given` names the fields that were set on an object, if those are not all."""

    row: Row
    path: str
    given: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A payload taken apart: `around` is what holds its messages, with the list emptied; None for a bare list."""

    around: Row | None
    sources: list[Source]
    losses: list[Loss]


def open_payload(payload: object, rules: RulesLevel) -> Opened:
    """The rows of a list of messages or of a ChatHistory. Raises DecodeError where it is neither."""
    losses: list[Loss] = []
    if isinstance(payload, (list, tuple)):
        return Opened(None, _sources(payload, "$", rules, losses), losses)
    history = fields_of(payload)
    messages = None if history is None else history.get(MESSAGES)
    if history is None or not isinstance(messages, (list, tuple)):
        raise DecodeError("$", "neither a list of messages nor a chat history")
    around = _as_json({**history, MESSAGES: []}, "$", rules, losses)
    return Opened(around, _sources(messages, f"$.{MESSAGES}", rules, losses), losses)


def fields_of(value: object) -> dict[str, Any] | None:
    """A dict as it is, a model object as a dict of its fields in order, anything else as None."""
    if isinstance(value, dict):
        return value
    fields = getattr(type(value), "model_fields", None)
    if not isinstance(fields, dict):
        return None
    held = {name: vars(value)[name] for name in fields if name in vars(value)}
    return {**held, **(getattr(value, "model_extra", None) or {})}


def _sources(messages: Sequence[object], path: str, rules: RulesLevel, losses: list[Loss]) -> list[Source]:
    return [_source(message, f"{path}[{index}]", rules, losses) for index, message in enumerate(messages)]


def _source(message: object, path: str, rules: RulesLevel, losses: list[Loss]) -> Source:
    fields = fields_of(message)
    if fields is None:
        raise DecodeError(path, f"a message is an object, not {type(message).__name__}")
    return Source(_as_json(fields, path, rules, losses), path, _given(message, fields))


def _given(message: object, fields: dict[str, Any]) -> list[str] | None:
    if isinstance(message, dict):
        return None
    given = [name for name in fields if name in getattr(message, "model_fields_set", fields)]
    return None if len(given) == len(fields) else given


def _as_json(row: dict[Any, Any], path: str, rules: RulesLevel, losses: list[Loss]) -> Row:
    if rules != "lenient":
        require_json(row, path)
        return row
    coerced, lost = coerce(row, path)
    losses += lost
    return coerced
