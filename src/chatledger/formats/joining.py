"""Which messages belong to which, when some were split, merged, left out or moved on the way."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

Origins = Sequence[tuple[int, ...]]


def places_of(origins: Origins) -> dict[int, list[int]]:
    """For each message the places of what was written from it."""
    places: dict[int, list[int]] = {}
    for piece, sources in enumerate(origins):
        for source in sources:
            places.setdefault(source, []).append(piece)
    return places


def groups_of(count: int, origins: Origins) -> Iterator[tuple[list[int], list[int]]]:
    """The messages and the pieces that have nothing to do with any others, in order of the messages.

    One message in two pieces is a group, and so are two in one piece; a message that was left out has no piece.
    """
    places = places_of(origins)
    seen: set[int] = set()
    for first in range(count):
        if first not in seen:
            sources, pieces = _connected(first, places, origins)
            seen |= sources
            yield sorted(sources), sorted(pieces)


def _connected(first: int, places: dict[int, list[int]], origins: Origins) -> tuple[set[int], set[int]]:
    sources, pieces, pending = {first}, set[int](), [first]
    while pending:
        for piece in places.get(pending.pop(), ()):
            if piece not in pieces:
                pieces.add(piece)
                pending += [source for source in origins[piece] if source not in sources]
                sources.update(origins[piece])
    return sources, pieces


def unordered(origins: Origins) -> set[int]:
    """The fewest messages that have to be taken away for the others to stand in their order."""
    firsts = [min(sources) for sources in origins if sources]
    if all(left <= right for left, right in pairwise(firsts)):
        return set()
    return set(firsts) - set(_longest_rise(list(dict.fromkeys(firsts))))


def _longest_rise(values: Sequence[int]) -> list[int]:
    """The longest subsequence that rises: for each length the smallest end, and what stood before it."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for value in values:
        place = bisect_right(ends, value)
        before[value] = ends[place - 1] if place else None
        ends[place : place + 1] = [value]
    rise: list[int] = []
    value_: int | None = ends[-1] if ends else None
    while value_ is not None:
        rise.append(value_)
        value_ = before[value_]
    return rise
