"""The codec of `agent-service`: a list of messages or a ChatHistory, of objects or of dicts.

A payload is written as the dict of a ChatHistory, value by value what came in; `as_models` makes the ChatHistory of
it, with the set of fields that were given on each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.carrying import unpack
from chatledger.formats.agent_service.histories import UNSAID, write_history
from chatledger.formats.agent_service.keeping import AROUND, Dump, keep_around, keep_row
from chatledger.formats.agent_service.models import ChatHistory, ChatMessage
from chatledger.formats.agent_service.reading import check, read
from chatledger.formats.agent_service.sources import MESSAGES, Row, Source, fields_of, open_payload
from chatledger.formats.agent_service.words import NAME, ROLE_OF_TYPE
from chatledger.formats.agent_service.writing import write
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import measured
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Loss, RulesLevel

_FIELDS = frozenset(ChatMessage.model_fields)


class AgentServiceCodec:
    name = NAME

    def given_as(self, messages: Sequence[LedgerMessage]) -> Kind:
        """Models, whatever came in: the service's own API answers with a ChatHistory."""
        return "models"

    def recognises(self, payload: object) -> bool:
        """Only messages with a type and a content of this format and no key of another."""
        if isinstance(payload, ChatHistory):
            return True
        messages = payload if isinstance(payload, list) else (fields_of(payload) or {}).get(MESSAGES)
        return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        opened = open_payload(payload, rules)
        messages = [_decode(source, rules) for source in opened.sources]
        losses = opened.losses + _keep_what_is_around(opened.around, messages, rules)
        return Decoded(messages, losses)

    def encode(self, messages: Sequence[LedgerMessage], *, carry: bool = False) -> Encoded:
        """The dict of a ChatHistory. `carry` puts what a row cannot say into the custom_data of its message."""
        return measured(self, messages, lambda given: write_history(given, carrying=carry), unsaid=UNSAID)

    def as_models(self, payload: dict[str, Any]) -> ChatHistory:
        """The ChatHistory of a payload that `encode` gave.

        A message that lenient rules let in and no model takes is written as from another format: an unknown type
        becomes custom, arguments that are no object stand under `_raw`.
        """
        return ChatHistory(messages=[_as_model(row) for row in payload[MESSAGES]])


CODEC = AgentServiceCodec()


def _is_message(value: object) -> bool:
    row = fields_of(value)
    if row is None or not isinstance(row.get("type"), str) or not isinstance(row.get("content"), str):
        return False
    if row["type"] not in ROLE_OF_TYPE:
        return False
    return row.keys() <= _FIELDS if isinstance(value, dict) else row.keys() >= _FIELDS


def _decode(source: Source, rules: RulesLevel) -> LedgerMessage:
    check(source.row, source.path, rules)
    message = read(source.row, lenient=rules == "lenient")
    carried = unpack(message, source.row)
    if carried is not None:
        return carried
    return message.model_copy(update={"residual": keep_row(source.row, message, source.given)})


def _keep_what_is_around(around: Row | None, messages: list[LedgerMessage], rules: RulesLevel) -> list[Loss]:
    residual = None if around is None else keep_around(around)
    if residual is None:
        return []
    for index, message in enumerate(messages):
        if message.format == NAME:
            messages[index] = message.model_copy(update={"residual": {**(message.residual or {}), AROUND: residual}})
            return []
    if rules != "lenient":
        raise DecodeError("$", "there is no message that could keep what stands beside the messages")
    return [Loss(AROUND, None, "$")]


def _as_model(row: Row) -> ChatMessage:
    try:
        message = ChatMessage.model_validate(row)
    except ValidationError:
        message = ChatMessage.model_validate(write(read(row)))
    if not isinstance(row, Dump):
        return message
    return ChatMessage.model_construct(set(row.given & _FIELDS), **dict(message))
