"""Compares texts as a person reads them: without case, without the width of letters, with any blanks alike.

A query is found in a text if `fold(query) in fold(text)`. That is all: no stems, no typing errors, é is not e.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import category, normalize

from chatledger.errors import InvalidArgument, LimitExceeded

MOST_CHARACTERS = 1_000
"""The longest query."""
_AROUND = 40
"""The characters of a snippet on either side of the match."""
_BLOCK = 4_096
_JOINERS = "\u200d\ufe0f"  # they join emoji, and belong to the character before them


def fold(text: str) -> str:
    """The text for a comparison: NFKC and full case folding, each run of blanks as one blank."""
    folded = text.lower() if text.isascii() else normalize("NFKC", normalize("NFKC", text).casefold())
    return re.sub(r"\s+", " ", folded)


class Query:
    """A text that is looked for."""

    def __init__(self, text: str) -> None:
        """Raises InvalidArgument and LimitExceeded."""
        if len(text) > MOST_CHARACTERS:
            raise LimitExceeded("characters of query", len(text), MOST_CHARACTERS, minimum=1)
        self.folded = fold(text).strip()
        if not self.folded:
            raise InvalidArgument("query", "must hold more than blanks")
        self._first_word = self.folded.partition(" ")[0]
        self._has_blank = self._first_word != self.folded
        # Folding makes at most 18 characters of one, and less than one of many combining marks. So this overlap of two
        # blocks holds a match that lies across their border, unless that has hundreds of marks.
        self._overlap = 64 + 4 * len(text)

    def is_in(self, text: str) -> bool:
        folded = text.lower() if text.isascii() else normalize("NFKC", normalize("NFKC", text).casefold())
        if not self._has_blank:
            return self.folded in folded
        return self._first_word in folded and self.folded in " ".join(folded.split())

    def cut(self, text: str) -> tuple[str, str, str]:
        """The words before the first match, the match, and the words after it, as they are in the text.

        Folding moves positions, so the match is enclosed: by the shortest beginning of the text that holds it, and by
        the shortest end of that. If it cannot be, the match is empty, at the beginning.
        """
        for start in range(0, len(text), _BLOCK):
            block = text[start : start + _BLOCK + self._overlap]
            if self.is_in(block):
                places = range(len(block) + 1) if block.isascii() else _places(block)
                end = places[min(bisect_left(places, True, key=lambda at: self.is_in(block[:at])), len(places) - 1)]
                starts = places[: bisect_left(places, end)]
                last = bisect_left(starts, True, key=lambda at: not self.is_in(block[at:end])) - 1
                return _around(text, start + starts[max(last, 0)], start + end)
        return _around(text, 0, 0)


def _around(text: str, first: int, last: int) -> tuple[str, str, str]:
    begin, end = max(first - _AROUND, 0), min(last + _AROUND, len(text))
    while begin > 0 and _parts_a_character(text, begin):
        begin -= 1
    while end < len(text) and _parts_a_character(text, end):
        end += 1
    return text[begin:first], text[first:last], text[last:end]


def _places(text: str) -> Sequence[int]:
    """The positions between the characters, as a person counts them. A letter and its accent are one."""
    return [at for at in range(len(text) + 1) if not _parts_a_character(text, at)]


def _parts_a_character(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    return category(text[at])[0] == "M" or text[at] in _JOINERS or text[at - 1] == "\u200d"


def plain(arguments: str) -> str:
    """The names and values of JSON, one a line. The text itself if it is no JSON: escapes such as \\u6d88 hide words
    from a search, and a person does not look for braces.
    """
    try:
        return "\n".join(_lines(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _lines(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _lines(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _lines(one, name)
    else:
        shown = value if isinstance(value, str) else json.dumps(value)
        yield f"{name}: {shown}" if name else shown
