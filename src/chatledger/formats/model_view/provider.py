"""The differences between providers, as values: the same code repairs for all of them.

The limits are from the error messages of the providers. OpenAI's chat completions once allowed 40 characters for the id
of a call and now allow 64; generated ids have at most 40.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from chatledger.formats.model_view.repairs import RepairLog
from chatledger.models import ChatMessage
from chatledger.models.json import JsonObject, JsonValue

MADE_ID = 40
"""The maximum length of a generated id."""

Fit = Callable[[ChatMessage, RepairLog], ChatMessage | None]
"""The message as the provider accepts it, regardless of its neighbours; None if there is nothing to send."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider. `name` is the name of its format."""

    name: str
    messages_key: str
    """The key of the messages in a request."""
    keys: RequestKeys
    """The keys that the objects of a request may have."""
    call_ids: re.Pattern[str]
    tool_names: re.Pattern[str]
    keeps: Callable[[ChatMessage], bool]
    """Whether a message is written as it came in, and not fitted like a message of another format."""
    writes_fields_of_other_roles: bool
    """Whether such a message is written with its calls and its tool_call_id in any role. If not, they are losses."""
    fit: Fit
    """Repairs of a single message that only this provider needs."""
    ids_may_come_again: bool = False
    """Whether a call may have the id of an earlier call that has its result. OpenAI's chat completions look for the
    results of a message directly behind it, so there only the calls of one message need different ids."""
    prepare: Callable[[ChatMessage, RepairLog], ChatMessage] = lambda message, _log: message
    """Runs before the pairing: gives a message of the format itself a role that the format has."""
    has_ids: Callable[[ChatMessage], bool] = lambda _message: True
    """Whether the message's calls and their results need ids; legacy forms have none."""
    is_result_without_id: Callable[[ChatMessage], bool] = lambda _message: False
    finish: Callable[[list[ChatMessage], RepairLog], list[ChatMessage]] = lambda messages, _log: messages
    """Repairs that depend on the neighbours of a message."""


# --- Keys of a request ------------------------------------------------------------------------------------------------
# Leaves out the keys that a provider's request may not have: its API refuses a message that has one.
#
# Stored messages have them: a reply carries its id and its usage, and a program may have added a time. A table says
# which keys each object of a request may have. An object is found by its `type`, by its role, or by the key that holds
# it:
#
#     "tool_use": "caller* id input name toolset_name? type",
#     "user message": "content* role",
#     ".image_url": "detail url",
#
# `?` marks a key that may be null, and `*` a key that holds more objects. If several objects have one name, `|`
# separates them, and the one is meant that keeps the most keys. An object without an entry stays as it is: a server may
# know it.
#
# The tables are those of the request types of the SDKs, which this package does not import; a test compares them.
# `besides` are keys that servers require although the SDK does not know them.

_DEPTH = 24
"""How far down objects and lists are looked at. The types of requests end before."""


class _Key(NamedTuple):
    may_be_null: bool
    has_objects: bool


_Shape = Mapping[str, _Key]


class RequestKeys:
    """The keys of the objects in the lists `under` of a provider's requests, the messages first."""

    def __init__(
        self, table: Mapping[str, str], *, under: Sequence[str], besides: Mapping[str, str] | None = None
    ) -> None:
        self.besides = besides or {}
        self._under = under
        self._shapes = {
            name: [_shape(f"{shape} {self.besides.get(name, '')}") for shape in shapes.split("|")]
            for name, shapes in table.items()
        }

    def fit(self, payload: Any) -> tuple[Any, list[str]]:
        """The payload without other keys, and the names of those that it had."""
        removed: dict[str, None] = {}
        if not isinstance(payload, dict):
            return self._fit(payload, self._under[0], removed, _DEPTH), list(removed)
        fitted = {key: self._fit(payload[key], key, removed, _DEPTH) for key in self._under if key in payload}
        return {**payload, **fitted}, list(removed)

    def _fit(self, value: JsonValue, key: str, removed: dict[str, None], depth: int) -> JsonValue:
        if isinstance(value, str) or depth == 0:
            return value
        if isinstance(value, list):
            return [self._fit(item, key, removed, depth - 1) for item in value]
        if not isinstance(value, dict):
            return value
        name, shapes = self._find(value, key)
        if not shapes:
            return value
        shape = shapes[0] if len(shapes) == 1 else max(shapes, key=lambda shape: _kept(shape, value))
        fitted = {}
        for own, inner in value.items():
            known = shape.get(own)
            if known is None or (inner is None and not known.may_be_null):
                removed[f"{name}{own}"] = None
            else:
                fitted[own] = self._fit(inner, own, removed, depth - 1) if known.has_objects else inner
        return fitted

    def _find(self, value: JsonObject, key: str) -> tuple[str, Sequence[_Shape]]:
        """What goes before the name of a key of the object, and the shapes that the object may have."""
        kind, role = value.get("type"), value.get("role")
        shapes = self._shapes.get(f"{role} message", []) if isinstance(role, str) else []
        if isinstance(kind, str) and kind in self._shapes:
            shapes = shapes + self._shapes[kind]
        if shapes:
            return "" if isinstance(role, str) else f"{kind}.", shapes
        shapes = self._shapes.get(f".{key}", [])
        return f"{key}.", [shape for shape in shapes if "type" not in value or "type" in shape]


def _shape(keys: str) -> _Shape:
    return {key.rstrip("?*"): _Key("?" in key, "*" in key) for key in keys.split()}


def _kept(shape: _Shape, value: JsonObject) -> int:
    """The number of keys that the object keeps in this shape."""
    return sum(key in shape and (inner is not None or shape[key].may_be_null) for key, inner in value.items())
