"""The items of an open file, which of their outputs are stored, and the changes that a save writes.

A call is an item and is also listed in its message: both are the same object. A call that a program adds directly to a
message becomes an item when the items are next read.

A save writes new items and outputs as messages at the end of the branch. An output becomes a message if its item is in
the last turn: then the message is at the place where a reader of the conversation expects it. A later output would be
out of place, and a second result of a call would answer nothing. Such an output, and every further output of its item,
is stored beside the messages. A save never changes a committed message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chatledger.errors import IdConflict
from chatledger.formats.message_file.foreign import GrowingItem, assemble
from chatledger.formats.message_file.models import CallItem, CodeOutput, PlainOutput, TextItem, item_from_dict
from chatledger.formats.message_file.read import call_id_of, read_item, read_outputs
from chatledger.models import ChatMessage
from chatledger.models.json import JsonObject
from chatledger.models.outputs import Output

_COLUMNS = ("content", "mime_type", "nonce")


@dataclass(frozen=True, slots=True)
class Address:
    """The message that stores an item, and the index of the call in it."""

    branch: int
    seq: int
    call_idx: int | None
    call_id: str | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """An item. Its first `stored` outputs are stored; `beside` is True if some of them are beside the messages."""

    item: TextItem | CallItem
    owner: Entry | None = None
    address: Address | None = None
    stored: int = 0
    beside: bool = False


class Contents:
    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @classmethod
    def read(cls, messages: Sequence[ChatMessage], beside: Iterable[Output] = ()) -> Contents:
        """The items of a branch, with the outputs that are stored beside its messages."""
        drafts = assemble(messages).drafts
        added: dict[tuple[int, int, int | None], list[JsonObject]] = {}
        for output in beside:
            added.setdefault((output.branch, output.seq, output.call_idx), []).append(_output_fields(output))
        late = [added.get(_key_of(draft), []) for draft in drafts]
        for draft, outputs in zip(drafts, late, strict=True):
            draft.outputs += outputs
        contents = cls()
        entries: dict[GrowingItem, Entry] = {}
        for draft, outputs in zip(drafts, late, strict=True):
            owner = None if draft.owner is None else entries[draft.owner]
            item = item_from_dict(draft.to_dict()) if owner is None else _call_of(owner, draft)
            entries[draft] = Entry(item, owner, _address_of(draft), len(item.outputs), bool(outputs))
            contents._entries.append(entries[draft])
        return contents

    @property
    def entries(self) -> list[Entry]:
        """All items, including calls that were added to messages directly."""
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
            raise IdConflict("item", name, f"the file already has an item {name!r}")

    def require_names_once(self) -> None:
        """Raises IdConflict for a new item whose name another item has, such as a call built with that name."""
        seen: set[str] = set()
        for entry in self.entries:
            name = entry.item.name
            if name in seen and entry.address is None:
                raise IdConflict("item", name, f"two items of the file are named {name!r}")
            seen |= {name} if name is not None else set()


def _output_fields(output: Output) -> JsonObject:
    return {"content": output.text, "mime_type": output.mime_type, "nonce": output.nonce, **(output.body or {})}


def _key_of(draft: GrowingItem) -> tuple[int, int, int | None]:
    return draft.message.branch or 0, draft.position, draft.call


def _address_of(draft: GrowingItem) -> Address:
    call = None if draft.call is None else (draft.message.tool_calls or [])[draft.call]
    return Address(draft.message.branch or 0, draft.position, draft.call, None if call is None else call.id)


def _call_of(owner: Entry, draft: GrowingItem) -> CallItem:
    assert isinstance(owner.item, TextItem)
    assert draft.owner is not None
    return owner.item.function_calls[draft.owner.calls.index(draft)]


@dataclass(slots=True)
class Changes:
    """The messages and outputs to write to a branch at `version`, and the state of the entries after that."""

    branch: int
    version: int
    messages: list[ChatMessage] = field(default_factory=list)
    beside: list[Output] = field(default_factory=list)
    _become: list[tuple[Entry, Address, int, bool]] = field(default_factory=list)

    @property
    def next_seq(self) -> int:
        return self.version + len(self.messages) + 1

    def become(self, entry: Entry, address: Address, *, beside: bool = False) -> None:
        self._become.append((entry, address, len(entry.item.outputs), beside or entry.beside))

    def apply(self) -> None:
        """Mark the entries as stored, after the commit."""
        for entry, address, stored, beside in self._become:
            entry.address, entry.stored, entry.beside = address, stored, beside


def find_changes(entries: Sequence[Entry], branch: int, version: int) -> Changes:
    changes = Changes(branch, version)
    addresses: dict[Entry, Address] = {entry: entry.address for entry in entries if entry.address is not None}
    last_turn = _start_of_last_turn(entries)
    answers: list[Entry] = []
    for index, entry in enumerate(entries):
        if entry.address is None:
            if isinstance(entry.item, TextItem):
                _append_answers(changes, addresses, answers)
            addresses[entry] = _append_item(changes, addresses, entry)
        if len(entry.item.outputs) == entry.stored:
            continue
        late = entry.address is not None and (index < last_turn or entry.beside)
        if late or (isinstance(entry.item, CallItem) and entry.stored):
            _add_beside(changes, addresses[entry], entry)
        elif isinstance(entry.item, CallItem):
            _append_outputs(changes, addresses[entry], entry)
        else:
            answers.append(entry)
    _append_answers(changes, addresses, answers)
    return changes


def _start_of_last_turn(entries: Sequence[Entry]) -> int:
    stored = [index for index, entry in enumerate(entries) if entry.address and isinstance(entry.item, TextItem)]
    return stored[-1] if stored else 0


def _append_item(changes: Changes, addresses: dict[Entry, Address], entry: Entry) -> Address:
    seq = changes.next_seq
    back = None if entry.owner is None else seq - addresses[entry.owner].seq
    changes.messages.append(read_item(entry.item, back=back, was_object=True))
    is_call = isinstance(entry.item, CallItem)
    call_id = call_id_of(entry.item) if isinstance(entry.item, CallItem) else None
    address = Address(changes.branch, seq, 0 if is_call else None, call_id)
    changes.become(entry, address)
    return address


def _append_answers(changes: Changes, addresses: dict[Entry, Address], answers: list[Entry]) -> None:
    """Append the outputs of messages, after the calls that were made for them."""
    for entry in answers:
        _append_outputs(changes, addresses[entry], entry)
    answers.clear()


def _append_outputs(changes: Changes, address: Address, entry: Entry) -> None:
    back = changes.next_seq - address.seq
    new = entry.item.outputs[entry.stored :]
    changes.messages.append(read_outputs(entry.item, new, back=back, call=address.call_idx, call_id=address.call_id))
    changes.become(entry, address)


def _add_beside(changes: Changes, address: Address, entry: Entry) -> None:
    changes.beside += [_beside_output(address, output) for output in entry.item.outputs[entry.stored :]]
    changes.become(entry, address, beside=True)


def _beside_output(address: Address, output: PlainOutput | CodeOutput) -> Output:
    body = {key: value for key, value in output.to_dict().items() if key not in _COLUMNS}
    return Output(
        branch=address.branch,
        seq=address.seq,
        call_idx=address.call_idx,
        nonce=output.nonce,
        mime_type=output.mime_type,
        text=output.content,
        body=body or None,
    )
