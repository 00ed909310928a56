"""The results of an import: counts, and the records that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from chatledger.errors import DecodeError, UnknownFormat
from chatledger.models import Violation

Outcome: TypeAlias = Literal["created", "grown", "unchanged"]


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that was not imported: its position, and the error."""

    file: str
    place: str
    error: Exception

    @property
    def problem(self) -> str:
        """The error without the position of the record."""
        if isinstance(self.error, DecodeError):
            return ": ".join(part for part in (self.error.path, self.error.detail) if part)
        return str(self.error)

    def __str__(self) -> str:
        byte = self.error.byte if isinstance(self.error, DecodeError) else None
        return f"{self.file}, {self.place}" + (f", byte {byte}" if byte is not None else "") + f": {self.problem}"


@dataclass(slots=True)
class ImportReport:
    """Counts of threads by outcome, of stored messages, of violations by rule and of losses by code.

    - `grown` threads got new messages or other metadata.
    - `without_time` counts records without a time, whose messages got the time of the import.
    - `read_as` counts records by file and format.
    - `looks_like` maps a file to the format that its first record has, if the options name another one.
    - `twins` maps a file to the thread that already holds its first record under an id from another field.
    - `refused` lists files of unknown format; `empty` lists files without any record, good or bad.
    - `erased` lists records that were skipped because their threads were erased. Each error is an `Erased` with the
      thread's id.
    - `stopped` tells whether the first failure ended the import.
    - `values` counts stored values that belong to no thread.
    """

    created: int = 0
    grown: int = 0
    unchanged: int = 0
    messages: int = 0
    violations: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    without_time: int = 0
    read_as: dict[str, Counter[str]] = field(default_factory=dict)
    looks_like: dict[str, str] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)
    failures: list[FailedRecord] = field(default_factory=list)
    refused: list[UnknownFormat] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    erased: list[FailedRecord] = field(default_factory=list)
    stopped: bool = False
    values: int = 0

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def threads(self) -> int:
        return self.created + self.grown + self.unchanged

    def add(self, outcome: Outcome, messages: int, violations: Sequence[Violation]) -> None:
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.messages += messages
        self.violations.update(violation.rule for violation in violations)

    def to_json(self) -> dict[str, Any]:
        threads = {name: getattr(self, name) for name in ("created", "grown", "unchanged", "failed")}
        return {
            "threads": threads,
            "messages": self.messages,
            "values": self.values,
            "violations": dict(sorted(self.violations.items())),
            "losses": dict(sorted(self.losses.items())),
            "without_time": self.without_time,
            "read_as": {file: dict(counts) for file, counts in self.read_as.items()},
            "twins": self.twins,
            "stopped": self.stopped,
            "refused": list(map(str, self.refused)),
            "empty": self.empty,
            "erased": list(map(_to_json, self.erased)),
            "failures": list(map(_to_json, self.failures)),
        }


def _to_json(failure: FailedRecord) -> dict[str, str]:
    error = type(failure.error).__name__
    return {"file": failure.file, "place": failure.place, "error": error, "detail": str(failure)}
