"""The codec of `format="google-adk"`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import EncodeError, MissingExtra
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.google_adk.foreign import fit
from chatledger.formats.google_adk.parts import NAME
from chatledger.formats.google_adk.read import is_object, read_payload
from chatledger.formats.google_adk.write import Event, EventWriter
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonObject


@dataclass(frozen=True, slots=True)
class GoogleADK:
    """A list of Event objects, or of events in the JSON form of ADK's own stores, with either spelling of keys."""

    name: str = NAME

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: a program can read a thread without ADK."""
        return "dicts"

    def recognises(self, payload: object) -> bool:
        return is_google_adk(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each event, and one for each further result in it.

        Lenient rules keep a malformed part whole.
        """
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts for `Event.model_validate`. `carry` has no effect: ADK has no use for it."""
        return write_payload(messages)

    def as_models(self, payload: list[JsonObject]) -> list[Any]:
        """The Event objects of a payload that `encode` returned. Raises EncodeError for an event that ADK rejects, and
        MissingExtra if ADK is not installed.
        """
        return [as_model(event, f"$[{index}]") for index, event in enumerate(payload)]


def as_model(event: JsonObject, path: str) -> Any:
    """One Event. Raises EncodeError with the path."""
    try:
        events = importlib.import_module("google.adk.events")
    except ImportError:
        raise MissingExtra(NAME, "events of Google ADK as objects") from None
    try:
        return events.Event.model_validate(event)
    except Exception as error:  # foreign code may raise anything; the error is the cause
        raise EncodeError(path, f"ADK rejects this event ({type(error).__name__}); use as_='dicts'") from error


def events_of(messages: Sequence[ChatMessage]) -> list[Event]:
    """The events, not written yet: those of the format as they came in, others fitted to the format."""
    pairing, writer = Pairing(), EventWriter()
    for index, message in enumerate(messages):
        call_ids = pairing.ask(message, index + 1)
        answered = pairing.answer(message) if message.role == "tool" else None
        is_own = message.format == NAME
        fitted = message if is_own else fit(message, index + 1, call_ids, answered)
        if fitted is not None:
            writer.write(fitted, index, is_own=is_own, author=None if answered is None else answered.asker.name)
    return writer.events


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    events = events_of(messages)
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written([event.write() for event in events], [(row,) for event in events for row in event.rows], own)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely a list of ADK's events: objects, or dicts of an author and what only events have.

_TELLING = frozenset({"invocation_id", "invocationId", "actions", "node_info", "nodeInfo"})


def is_google_adk(payload: object) -> bool:
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(event) or _is_event(event) for event in payload)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("author"), str) or _TELLING.isdisjoint(event):
        return False
    content = event.get("content")
    if content is None:
        return "role" not in event
    return isinstance(content, dict) and isinstance(content.get("parts"), (list, type(None)))


CODEC = GoogleADK()
