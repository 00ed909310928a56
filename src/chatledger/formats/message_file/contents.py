"""The items of a file in their order, and what of each is stored.

Calls are items of their own and stand in their message as well: one object at both places. A call that was added to a
message directly joins the items when they are next looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatledger.errors import AlreadyExists
from chatledger.formats.message_file.draft import Draft
from chatledger.formats.message_file.drafts import assemble
from chatledger.formats.message_file.items import CallItem, TextItem, item_from_dict
from chatledger.formats.message_file.writing import Row
from chatledger.models import ChatMessage
from chatledger.models.outputs import Output


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item is stored: at which message, and which call of that it is."""

    branch: int
    seq: int
    call_idx: int | None
    call_id: str | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """An item. The first `stored` outputs are stored; `beside` says that some of them stand beside the messages."""

    item: TextItem | CallItem
    owner: Entry | None = None
    place: Place | None = None
    stored: int = 0
    beside: bool = False


class Contents:
    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @classmethod
    def read(cls, messages: Sequence[ChatMessage], beside: Iterable[Output] = ()) -> Contents:
        """The items of a branch with the outputs that stand beside its messages."""
        drafts = assemble(messages).drafts
        added: dict[tuple[int, int, int | None], list[Row]] = {}
        for output in beside:
            added.setdefault((output.branch, output.seq, output.call_idx), []).append(_row(output))
        late = [added.get(_address(draft), []) for draft in drafts]
        for draft, rows in zip(drafts, late, strict=True):
            draft.outputs += rows
        contents = cls()
        entries: dict[Draft, Entry] = {}
        for draft, rows in zip(drafts, late, strict=True):
            owner = None if draft.owner is None else entries[draft.owner]
            item = item_from_dict(draft.to_dict()) if owner is None else _call_of(owner, draft)
            entries[draft] = Entry(item, owner, _place(draft), len(item.outputs), bool(rows))
            contents._entries.append(entries[draft])
        return contents

    @property
    def entries(self) -> list[Entry]:
        """All items, the calls that were added to messages directly among them."""
        listed = {id(entry.item) for entry in self._entries}
        for entry in list(self._entries):
            calls = entry.item.function_calls if isinstance(entry.item, TextItem) else ()
            self._entries += [Entry(call, entry) for call in calls if id(call) not in listed]
        return self._entries

    def find(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.item.name == name), None)

    def add(self, item: TextItem) -> None:
        self.require_free(item.name)
        self._entries.append(Entry(item))

    def require_free(self, name: str | None) -> None:
        if name is not None and self.find(name) is not None:
            raise AlreadyExists(name, f"the file has an item {name!r} already")

    def require_names_once(self) -> None:
        """Raises AlreadyExists for a name that a call brought along which stands elsewhere."""
        seen: set[str] = set()
        for entry in self.entries:
            name = entry.item.name
            if name in seen and entry.place is None:
                raise AlreadyExists(name, f"the file has two items {name!r}")
            seen |= {name} if name is not None else set()


def _row(output: Output) -> Row:
    return {"content": output.text, "mime_type": output.mime_type, "nonce": output.nonce, **(output.body or {})}


def _address(draft: Draft) -> tuple[int, int, int | None]:
    return draft.message.branch or 0, draft.place, draft.call


def _place(draft: Draft) -> Place:
    call = None if draft.call is None else (draft.message.tool_calls or [])[draft.call]
    return Place(draft.message.branch or 0, draft.place, draft.call, None if call is None else call.id)


def _call_of(owner: Entry, draft: Draft) -> CallItem:
    assert isinstance(owner.item, TextItem)
    assert draft.owner is not None
    return owner.item.function_calls[draft.owner.calls.index(draft)]
