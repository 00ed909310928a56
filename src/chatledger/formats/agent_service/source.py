"""Each message of a payload as the dict that its class would dump, for dicts and objects.

Objects are read by their fields and never imported, so any class with these fields works: a service's own, a fork's, a
newer class with unknown fields. Their attributes are read rather than their dump, which would hide a live object inside
a free dict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.wire.plain import coerce, require_json
from chatledger.models import Loss, RulesLevel
from chatledger.models.json import JsonObject

MESSAGES = "messages"
_NAMES = re.compile(r"\.(type|tool_call_id|run_id)|\.tool_calls\[\d+\]\.(id|name)")
"""The paths of ids and names in a message."""


@dataclass(frozen=True, slots=True)
class Source:
    """A message that came in, and its path. `given` names the fields that were set on an object, if not all were."""

    fields: JsonObject
    path: str
    given: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A payload taken apart. `around` is the history that holds the messages, without them; None for a bare list."""

    around: JsonObject | None
    sources: list[Source]
    losses: list[Loss]


def open_payload(payload: object, rules: RulesLevel) -> Opened:
    """The messages of a list or of a ChatHistory. Raises DecodeError for anything else."""
    losses: list[Loss] = []
    if isinstance(payload, (list, tuple)):
        return Opened(None, _sources(payload, "$", rules, losses), losses)
    history = fields_of(payload)
    messages = None if history is None else history.get(MESSAGES)
    if history is None or not isinstance(messages, (list, tuple)):
        raise DecodeError("$", "expected a list of messages or a chat history")
    around = _as_json({**history, MESSAGES: []}, "$", rules, losses)
    return Opened(around, _sources(messages, f"$.{MESSAGES}", rules, losses), losses)


def fields_of(value: object) -> dict[str, Any] | None:
    """A dict unchanged, a model object as a dict of its fields in order, None for anything else."""
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
        raise DecodeError(path, f"expected a message object, not {type(message).__name__}")
    return Source(_as_json(fields, path, rules, losses), path, _given(message, fields))


def _given(message: object, fields: dict[str, Any]) -> list[str] | None:
    if isinstance(message, dict):
        return None
    given = [name for name in fields if name in getattr(message, "model_fields_set", fields)]
    return None if len(given) == len(fields) else given


def _as_json(fields: dict[Any, Any], path: str, rules: RulesLevel, losses: list[Loss]) -> JsonObject:
    if rules != "lenient":
        require_json(fields, path)
        return fields
    coerced, lost = coerce(fields, path, _NAMES)
    losses += lost
    return coerced  # type: ignore[no-any-return]
