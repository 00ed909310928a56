"""The record of a conversation, a value of its thread, and what a save writes with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from chatledger.adapters.extra import importing
from chatledger.errors import DecodeError, EncodeError, ThreadNotFound
from chatledger.formats.pydantic_ai.codec import CODEC
from chatledger.models import ChatMessage, KvValue, continues
from chatledger.models.base import copy_with
from chatledger.models.json import JsonValue, dumps
from chatledger.models.limits import MAX_KEY_BYTES
from chatledger.repositories import Repositories
from chatledger.transaction import Transaction

with importing("pydantic_ai", extra="pydantic-ai", name="Pydantic AI"):
    from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord

_RECORD = TypeAdapter(ConversationRecord)
KEY = "pydantic-ai/record"
"""The key of the record, among the values of the thread."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and the version of its value."""

    record: ConversationRecord
    version: int


async def read_stored(source: Repositories, conversation_id: str) -> StoredRecord | None:
    """None for a thread without a record, and without a thread. Raises EncodeError for a record that the framework
    refuses.
    """
    try:
        value = await source.kv.get(("thread", conversation_id), KEY)
    except ThreadNotFound:
        return None
    return None if value is None else stored_record(value)


def stored_record(value: KvValue) -> StoredRecord:
    """Raises EncodeError for a record that the framework refuses."""
    try:
        return StoredRecord(_RECORD.validate_json(dumps(value.value)), value.version)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(["record", *map(str, first["loc"])])
        raise EncodeError(path, f"Pydantic AI refuses it: {first['type']}") from None


async def hold(transaction: Transaction, conversation_id: str) -> StoredRecord | None:
    """The record of a thread whose active branch is locked until the transaction ends, as every writer here locks it.
    Raises ThreadNotFound.
    """
    await transaction.messages.append(conversation_id, [])
    return await read_stored(transaction, conversation_id)


@dataclass(slots=True)
class Chain:
    """New entries of which each follows the one before, as rows."""

    parent_id: str | None
    last_id: str
    rows: list[ChatMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Write:
    """A record and new entries as they are stored."""

    record: ConversationRecord
    value: JsonValue
    chains: list[Chain]

    @classmethod
    def of(cls, record: ConversationRecord, entries: Sequence[ConversationEntry]) -> Write:
        """Raises DecodeError."""
        chains: list[Chain] = []
        for entry, rows in zip(entries, _rows_of(record.conversation_id, entries), strict=True):
            if not chains or chains[-1].last_id != entry.parent_id:
                chains.append(Chain(entry.parent_id, entry.id))
            chains[-1].rows += rows
            chains[-1].last_id = entry.id
        return cls(record, _value_of(record), chains)

    @property
    def id(self) -> str:
        return cast(str, self.record.conversation_id)

    @property
    def continues_one_path(self) -> bool:
        return len(self.chains) == 1 and self.chains[0].last_id == self.record.head_id

    def require(self, stored: StoredRecord | None, expected: str | None) -> None:
        """Raises ConversationConflict."""
        record = None if stored is None else stored.record
        if (None if record is None else record.revision) != expected:
            raise ConversationConflict(self.id)
        if record is not None and record.scope != self.record.scope:
            raise ConversationConflict(self.id)

    def without_runs(self) -> Write:
        chains = [
            replace(chain, rows=[copy_with(row, {"run_id": None}) for row in chain.rows]) for chain in self.chains
        ]
        return replace(self, chains=chains)


def _value_of(record: ConversationRecord) -> JsonValue:
    try:
        return cast(JsonValue, _RECORD.dump_python(record, mode="json", warnings=False))
    except ValueError as error:  # Pydantic's for a live object
        raise DecodeError("record.deferred_tool_requests", f"it has no JSON ({type(error).__name__})") from error


def _rows_of(conversation_id: str, entries: Sequence[ConversationEntry]) -> Iterator[list[ChatMessage]]:
    """The rows of each entry, under its id, its time and its run. Raises DecodeError."""
    by_entry: list[list[ChatMessage]] = []
    for row in CODEC.decode([entry.message for entry in entries], rules="lenient").messages:
        if not continues(row):
            by_entry.append([])
        by_entry[-1].append(row)
    for entry, rows in zip(entries, by_entry, strict=True):
        ids = [entry.id, *(f"{quote(entry.id, safe='')}/{number}" for number in range(1, len(rows)))]
        shared = {"run_id": _run_of(entry.message, conversation_id), "created_at": _time_of(entry.message)}
        yield [copy_with(row, {**shared, "message_id": id_}) for row, id_ in zip(rows, ids, strict=True)]


def _run_of(message: Any, conversation_id: str) -> str | None:
    """The run, which belongs to one thread: that of the conversation in which it ran, and no copy's."""
    run_id = message.run_id
    if message.conversation_id != conversation_id or not isinstance(run_id, str):
        return None
    return run_id if 0 < len(run_id.encode(errors="replace")) <= MAX_KEY_BYTES else None


def _time_of(message: Any) -> datetime | None:
    time = message.timestamp
    return time if isinstance(time, datetime) and time.tzinfo is not None else None
