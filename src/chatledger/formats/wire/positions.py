"""Two kinds of items in one list that are stored one kind after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from chatledger.models.json import JsonValue

T = TypeVar("T")


def positions_of(later: Sequence[int], count: int) -> list[int] | None:
    """The positions of items that are written after all others of `count`; None if they are the last items already."""
    return None if list(later) == list(range(count - len(later), count)) else list(later)


def interleave(first: list[T], later: list[T], positions: JsonValue) -> list[T]:
    """The items of `later` at their positions among those of `first`; at the end if the positions do not fit."""
    if not _are_positions(positions, len(later), len(first) + len(later)):
        return first + later
    taken, others, rest = set(positions), iter(first), iter(later)
    return [next(rest) if position in taken else next(others) for position in range(len(first) + len(later))]


def _are_positions(positions: JsonValue, count: int, total: int) -> bool:
    if not isinstance(positions, list) or len(positions) != count:
        return False
    if not all(isinstance(position, int) and not isinstance(position, bool) for position in positions):
        return False
    return all(before < after for before, after in zip(chain([-1], positions), chain(positions, [total]), strict=True))
