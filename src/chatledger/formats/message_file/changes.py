"""What saving a file writes: new items and outputs as messages behind the others, and outputs that come too late.

An output comes in time as long as its item is of the last turn: the message is then where a reader of the conversation
expects it. Later it would be an answer out of place, and a second result of a call would answer nothing; so it stands
beside the messages, as does every output of the item after it. No committed row changes either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatledger.formats.message_file.contents import Entry, Place
from chatledger.formats.message_file.items import CallItem, TextItem
from chatledger.formats.message_file.outputs import CodeOutput, PlainOutput
from chatledger.formats.message_file.writing import call_id_of, write_item, write_outputs
from chatledger.models import ChatMessage
from chatledger.models.outputs import Output

_COLUMNS = ("content", "mime_type", "nonce")


@dataclass(slots=True)
class Changes:
    """What is to be written onto a branch that is at `version`, and what its entries become once it is."""

    branch: int
    version: int
    messages: list[ChatMessage] = field(default_factory=list)
    beside: list[Output] = field(default_factory=list)
    _become: list[tuple[Entry, Place, int, bool]] = field(default_factory=list)

    @property
    def next_seq(self) -> int:
        return self.version + len(self.messages) + 1

    def become(self, entry: Entry, place: Place, *, beside: bool = False) -> None:
        self._become.append((entry, place, len(entry.item.outputs), beside or entry.beside))

    def apply(self) -> None:
        """The entries as they are after the commit."""
        for entry, place, stored, beside in self._become:
            entry.place, entry.stored, entry.beside = place, stored, beside


def find_changes(entries: Sequence[Entry], branch: int, version: int) -> Changes:
    changes = Changes(branch, version)
    places: dict[Entry, Place] = {entry: entry.place for entry in entries if entry.place is not None}
    last_turn = _start_of_last_turn(entries)
    answers: list[Entry] = []
    for index, entry in enumerate(entries):
        if entry.place is None:
            if isinstance(entry.item, TextItem):
                _write_answers(changes, places, answers)
            places[entry] = _write_new(changes, places, entry)
        if len(entry.item.outputs) == entry.stored:
            continue
        late = entry.place is not None and (index < last_turn or entry.beside)
        if late or (isinstance(entry.item, CallItem) and entry.stored):
            _write_beside(changes, places[entry], entry)
        elif isinstance(entry.item, CallItem):
            _write_outputs(changes, places[entry], entry)
        else:
            answers.append(entry)
    _write_answers(changes, places, answers)
    return changes


def _start_of_last_turn(entries: Sequence[Entry]) -> int:
    stored = [index for index, entry in enumerate(entries) if entry.place and isinstance(entry.item, TextItem)]
    return stored[-1] if stored else 0


def _write_new(changes: Changes, places: dict[Entry, Place], entry: Entry) -> Place:
    seq = changes.next_seq
    back = None if entry.owner is None else seq - places[entry.owner].seq
    changes.messages.append(write_item(entry.item, back=back, was_object=True))
    is_call = isinstance(entry.item, CallItem)
    call_id = call_id_of(entry.item) if isinstance(entry.item, CallItem) else None
    place = Place(changes.branch, seq, 0 if is_call else None, call_id)
    changes.become(entry, place)
    return place


def _write_answers(changes: Changes, places: dict[Entry, Place], answers: list[Entry]) -> None:
    """What agents said, behind the calls that were made for it."""
    for entry in answers:
        _write_outputs(changes, places[entry], entry)
    answers.clear()


def _write_outputs(changes: Changes, place: Place, entry: Entry) -> None:
    back = changes.next_seq - place.seq
    new = entry.item.outputs[entry.stored :]
    changes.messages.append(write_outputs(entry.item, new, back=back, call=place.call_idx, call_id=place.call_id))
    changes.become(entry, place)


def _write_beside(changes: Changes, place: Place, entry: Entry) -> None:
    changes.beside += [_row(place, output) for output in entry.item.outputs[entry.stored :]]
    changes.become(entry, place, beside=True)


def _row(place: Place, output: PlainOutput | CodeOutput) -> Output:
    body = {key: value for key, value in output.to_dict().items() if key not in _COLUMNS}
    return Output(
        branch=place.branch,
        seq=place.seq,
        call_idx=place.call_idx,
        nonce=output.nonce,
        mime_type=output.mime_type,
        text=output.content,
        body=body or None,
    )
