"""Properties of the decoders for any input. A target raises the errors that must not leave them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger import ChatLedgerError, ChatMessage
from chatledger.errors import DecodeError, FormatError
from chatledger.formats import format_names, get_codec, recognise
from chatledger.models import RulesLevel
from chatledger.storage.rows.messages import encode_message
from chatledger.transfer.plan import ImportOptions, Planner
from chatledger.transfer.records import BadRecord, read_records
from chatledger.transfer.shapes.requests import each_request


def recognise_any(payload: Any) -> None:
    with contextlib.suppress(FormatError):
        recognise(payload)


def decode(name: str, payload: Any, rules: RulesLevel) -> list[ChatMessage]:
    """The messages; none if the payload is refused as it should be."""
    try:
        return get_codec(name).decode(payload, rules=rules).messages
    except FormatError:
        return []


def write_everywhere(messages: Sequence[ChatMessage]) -> None:
    """As rows, which may only be refused with an error of ours, and in every format, which must never fail."""
    stored = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    for message in stored:
        with contextlib.suppress(ChatLedgerError):
            encode_message(message)
    for name in format_names() if stored else ():
        get_codec(name).encode(stored)
        get_codec(name).encode(stored, carry=True)


def plan_file(content: bytes, format: str, rules: RulesLevel) -> int:  # noqa: A002 - as in the ledger's own calls
    """Read a file's records and plan their threads; how many could be. What is wrong with a record is an error of ours,
    and the next one follows.
    """
    planner = Planner(ImportOptions(format=format, rules=rules), "file.json")
    planned = 0
    for found in read_records(io.BytesIO(content)):
        for record in each_request(found):
            if isinstance(record, BadRecord):
                assert isinstance(record.error, DecodeError)
                continue
            with contextlib.suppress(ChatLedgerError, ValidationError):
                planned += bool(planner.plan(record).thread_id)
    return planned
