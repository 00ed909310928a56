"""Losses and repairs as text: one line for each kind, with the number of its messages, in order of the first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatledger.cli.output import lost, plural

if TYPE_CHECKING:
    from chatledger.models import Loss, Repair

SHOWN = 20
_INDEX = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class _RemarkGroup:
    """A remark on several messages. `first` is its first place. `last` is its latest, to count a message once."""

    text: str
    first: str
    last: str
    is_of_messages: bool
    messages: int = 1
    total: int = 1

    def line(self, text: str) -> str:
        if self.total == 1:
            return f"{self.first}: {self.text}" if self.first else self.text
        times = "" if self.total == self.messages else f"{self.total:,} × "
        count = plural(self.messages, "message" if self.is_of_messages else "record")
        first = f", first in {self.first}" if self.first else ""
        return f"{text} ({times}in {count}{first})"


class Remarks:
    """Collects remarks while messages are read. Its memory grows with the kinds of remarks, not with the messages."""

    def __init__(self) -> None:
        self._groups: dict[str, _RemarkGroup] = {}
        self._codes: Counter[str] = Counter()

    def add_losses(self, losses: Iterable[Loss], place: str = "") -> None:
        """`place` names the record or thread of the messages, if the command reads several."""
        for loss in losses:
            self._codes[loss.code] += 1
            self._add(loss.code if loss.path in ("", loss.code) else f"{loss.code} at {loss.path}", loss.seq, place)

    def add_repairs(self, repairs: Iterable[Repair]) -> None:
        for repair in repairs:
            self._add(f"{repair.detail} ({repair.code})", repair.seq, "")

    def _add(self, text: str, seq: int | None, place: str) -> None:
        where = ", ".join(filter(None, [place, "" if seq is None else f"message {seq}"]))
        alike = _INDEX.sub("[*]", text)
        group = self._groups.get(alike)
        if group is None:
            self._groups[alike] = _RemarkGroup(text, where, where, seq is not None)
            return
        group.total += 1
        group.messages += group.last != where
        group.last = where

    def lines(self) -> Iterator[str]:
        """A line for each of the first SHOWN remarks, and a count of the others."""
        for alike, group in list(self._groups.items())[:SHOWN]:
            yield group.line(alike)
        more = len(self._groups) - SHOWN
        if more > 0:
            yield f"… and {more:,} more of other kinds"

    def summary(self) -> str | None:
        """The losses by code; None if there are none."""
        return lost(self._codes) if self._codes else None
