"""Items that are still growing while the messages of a branch are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chatledger.formats.message_file.writing import Row
from chatledger.models import ChatMessage
from chatledger.rules.tip import OpenCall


@dataclass(slots=True, eq=False)
class Draft:
    """An item: the message that it stands in, its fields, and what was found to belong to it.

    `call` is the index among the calls of the message, None for the message itself. `source` is the index of the
    message among those that are read, None where nobody said it; `answering` has those that the outputs are of.
    """

    message: ChatMessage
    place: int
    source: int | None
    fields: Row
    call: int | None = None
    owner: Draft | None = None
    outputs: list[Row] = field(default_factory=list)
    answering: list[int] = field(default_factory=list)
    calls: list[Draft] = field(default_factory=list)

    def add_outputs(self, rows: Sequence[Row], source: int) -> None:
        """Outputs that a message is; one whose nonce is taken gets another."""
        for row in rows:
            taken = {output["nonce"] for output in self.outputs}
            again = row["nonce"] in taken
            self.outputs.append({**row, "nonce": f"{row['nonce']}_{len(taken)}"} if again else row)
        if rows:
            self.answering.append(source)

    def origins(self) -> Iterator[tuple[int, ...]]:
        """Of which messages each is made that the item will be read as."""
        yield () if self.source is None else (self.source,)
        for call in self.calls:
            yield from call.origins()
        if self.outputs:
            yield tuple(dict.fromkeys(self.answering))

    def to_dict(self) -> Row:
        whole = {**self.fields, "outputs": list(self.outputs)}
        if "function_calls" in whole:
            whole["function_calls"] = [call.to_dict() for call in self.calls]
        return whole


class Drafts:
    """The items so far, in file order, by their places; and which calls have no outputs yet."""

    def __init__(self) -> None:
        self.all: list[Draft] = []
        self.open_calls: tuple[OpenCall, ...] = ()
        self._at: dict[tuple[int, int | None], Draft] = {}

    def add(self, draft: Draft) -> Draft:
        self.all.append(draft)
        self._at[draft.place, draft.call] = draft
        if draft.owner is not None:
            draft.owner.calls.append(draft)
        if draft.call is not None:
            call = (draft.message.tool_calls or [])[draft.call]
            self.open_calls += (OpenCall(0, draft.place, draft.call, call.id, call.name),)
        return draft

    def at(self, place: int | None, call: int | None) -> Draft | None:
        return None if place is None else self._at.get((place, call))

    def answer(self, draft: Draft, outputs: Sequence[Row], source: int) -> None:
        draft.add_outputs(outputs, source)
        self.open_calls = tuple(call for call in self.open_calls if (call.seq, call.idx) != (draft.place, draft.call))

    @property
    def last_message(self) -> Draft | None:
        return next((draft for draft in reversed(self.all) if draft.call is None), None)
