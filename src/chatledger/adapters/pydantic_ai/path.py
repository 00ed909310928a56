"""The entries of a conversation as they are read: the messages up to one of them, on whichever branch has it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from chatledger.adapters.extra import importing
from chatledger.errors import EncodeError, NotFound
from chatledger.formats.pydantic_ai.codec import CODEC
from chatledger.formats.pydantic_ai.foreign import fit
from chatledger.formats.pydantic_ai.names import NAME, request_head
from chatledger.formats.pydantic_ai.write import ModelMessageWriter
from chatledger.models import ChatMessage, Newest, Oldest, continues
from chatledger.models.json import JsonValue
from chatledger.models.windows import MOST
from chatledger.repositories import Repositories

with importing("pydantic_ai", extra="pydantic-ai", name="Pydantic AI"):
    from pydantic_ai.conversation_store import ConversationEntry

_LOGGER = logging.getLogger("chatledger.adapters")
_ROWS = 50
"""Rows that are read at a time to find the last one of an entry."""


class EntryNotFound(NotFound, LookupError):
    """No conversation has an entry with that id, or it was deleted."""

    entry_id: str
    """The requested id."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"there is no entry {entry_id!r}")
        self.entry_id = entry_id


@dataclass(slots=True)
class Unit:
    """An entry as rows, and the index behind the last of them among the messages that were read."""

    id: str
    rows: list[ChatMessage]
    end: int

    def joins(self, row: ChatMessage) -> bool:
        """Whether the row belongs to the entry as well. A redacted row has lost its format, and is known by its id."""
        if row.format == NAME:
            return continues(row)
        stem, _, number = (row.message_id or "").rpartition("/")
        return stem == quote(self.id, safe="") and number.isdigit()

    def message(self) -> JsonValue:
        """The message of the framework. Without any part, because it was redacted, it is an empty request."""
        writer = ModelMessageWriter()
        for index, row in enumerate(self.rows):
            fitted = fit(row)
            if fitted is not None:
                writer.write(fitted, index + 1, is_own=row.format == NAME)
        first, *others = writer.messages or [request_head([])]
        if others:  # redacted rows between the others
            assert isinstance(first, dict)
            first = {**first, "parts": [part for message in writer.messages for part in cast("Any", message)["parts"]]}
        return first


def units_of(messages: Sequence[ChatMessage]) -> list[Unit]:
    """The entries. Each message of another format is one, too."""
    units: list[Unit] = []
    for index, row in enumerate(messages):
        if units and units[-1].joins(row):
            units[-1].rows.append(row)
            units[-1].end = index + 1
        else:
            units.append(Unit(row.message_id or "", [row], index + 1))
    return units


def last_entry(messages: Sequence[ChatMessage]) -> str | None:
    """The id of the last entry; None for none."""
    units = units_of(messages)
    return units[-1].id if units else None


@dataclass(frozen=True, slots=True)
class EntryPath:
    """The messages up to the last one of an entry, and their entries. A window also has the parent of its first one."""

    messages: Sequence[ChatMessage]
    units: Sequence[Unit]

    def entry(self, index: int) -> ConversationEntry:
        """Raises EncodeError."""
        unit = self.units[index]
        (message,) = CODEC.as_models([unit.message()])
        return ConversationEntry(id=unit.id, parent_id=self.units[index - 1].id if index else None, message=message)

    def entries(self, limit: int | None) -> list[ConversationEntry]:
        entries = []
        for index in range(0 if limit is None else max(len(self.units) - limit, 0), len(self.units)):
            try:
                entries.append(self.entry(index))
            except EncodeError as error:
                seq = self.units[index].rows[0].seq
                _LOGGER.warning("An entry is left out that Pydantic AI refuses, at seq %s: %s", seq, error)
        return entries


async def read_path(source: Repositories, thread_id: str, entry_id: str, limit: int | None) -> EntryPath:
    """The path up to an entry, at least `limit` entries and the one before them. Raises EntryNotFound.

    Nearly always the active branch ends with the entry; if that does not have it, it is looked for.
    """
    newest = None if limit is None else limit + 1
    branch: int | None = None
    before: int | None = None
    while True:
        try:
            window = Newest(MOST if newest is None else newest, before=before)
            history = await source.messages.history(thread_id, window, branch=branch)
        except NotFound:
            raise EntryNotFound(entry_id) from None
        units = units_of(history.messages)
        at_entry = next((index for index, unit in enumerate(units) if unit.id == entry_id), None)
        if at_entry is None:
            if before is not None:
                raise EntryNotFound(entry_id)
            at, branch = await place_of(source, thread_id, entry_id)
            before = at + 1
        elif limit is None or newest is None or at_entry >= limit or history.previous_cursor is None:
            return EntryPath(history.messages[: units[at_entry].end], units[: at_entry + 1])
        else:
            newest *= 2  # some of the entries are several messages


async def place_of(source: Repositories, thread_id: str, entry_id: str) -> tuple[int, int]:
    """The seq of the last message of an entry, and the branch that stores it. Raises EntryNotFound."""
    try:
        first = await source.messages.get(thread_id, entry_id)
        unit, branch, at = Unit(entry_id, [first], 0), first.branch or 0, first.seq or 0
        while True:
            page = await source.messages.history(thread_id, Oldest(_ROWS, after=at), branch=branch)
            for row in page:
                if not unit.joins(row):
                    return at, branch
                at = row.seq or 0
            if page.next_cursor is None:
                return at, branch
    except NotFound:
        raise EntryNotFound(entry_id) from None
