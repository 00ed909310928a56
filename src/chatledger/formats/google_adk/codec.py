"""The codec of `format="google-adk"`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError, EncodeError, MissingExtra
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.google_adk.detect import is_google_adk
from chatledger.formats.google_adk.foreign import fit
from chatledger.formats.google_adk.names import NAME
from chatledger.formats.google_adk.read import read_event, read_payload
from chatledger.formats.google_adk.write import Event, Writer
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.wire.pairing import Pairing
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonObject, same_json

_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "is_error", "response_metadata"}
"""The fields that reading can set."""


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

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of dicts for `Event.model_validate`. `carry` has no effect: ADK has no use for it."""
        return measured(self, messages, write_payload, unsaid=("run_id", "custom_data"))

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
    pairing, writer = Pairing(), Writer()
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
    payload = [event.write() for event in events]
    rows = [event.rows for event in events]
    as_read = all(
        event.is_own and _is_as_read([messages[row] for row in event.rows], written)
        for event, written in zip(events, payload, strict=True)
    )
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    is_whole = sum(map(len, rows)) == len(messages)
    return Written(payload, [(row,) for event in rows for row in event], own, as_read=as_read and is_whole)


def _is_as_read(messages: Sequence[ChatMessage], written: JsonObject) -> bool:
    """Whether reading the event gives its rows back, so that its losses need not be measured."""
    try:
        back = read_event(written, "", lenient=True)
    except DecodeError:
        return False
    if len(back) != len(messages) or any(message.reasoning is not None for message in messages):
        return False
    return all(
        same_json(one.model_dump(include=_FIELDS), other.model_dump(include=_FIELDS))
        for one, other in zip(back, messages, strict=True)
    )


CODEC = GoogleADK()
