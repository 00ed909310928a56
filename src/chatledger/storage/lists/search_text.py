"""Compares texts as a person reads them: without case, without the width of letters, with any blanks alike.

A query is found in a text if `fold(query) in fold(text)`. That is all: no stems, no typing errors, é is not e.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import category

from chatledger.errors import InvalidArgument, LimitExceeded
from chatledger.storage.lists.fold_text import BLOCK, fold, folded_block, folded_blocks, one_blank

MOST_CHARACTERS = 1_000
"""The longest query."""
_AROUND = 40
"""The characters of a snippet on either side of the match."""
_PIECE = 4_096
MOST_PARSED = 1024 * 1024
"""The longest arguments that are parsed: a parser makes many objects of a few characters, at one go."""
OF_A_VALUE = 64
"""The work of a parsed value, as that of so many characters that are compared."""
_REPEATED = 65_536
"""The characters of names that are written again, for the further elements of lists."""
# Numbers stay the text that they are: an integer of thousands of digits would take long to make.
_parse = json.JSONDecoder(parse_int=str, parse_float=str).decode
_JOINERS = "\u200d\ufe0f"  # they join emoji, and belong to the character before them


class Query:
    """A text that is looked for."""

    def __init__(self, text: str) -> None:
        """Raises InvalidArgument and LimitExceeded."""
        if len(text) > MOST_CHARACTERS:
            raise LimitExceeded("characters of query", len(text), MOST_CHARACTERS, minimum=1)
        self.folded: str = fold(text).strip()
        if not self.folded:
            raise InvalidArgument("query", "must hold more than blanks")
        self.work: int = 0
        """The characters that have been compared, or as many as would have taken that long."""
        self._first_word = self.folded.partition(" ")[0]
        self._in_json = max(self.folded.replace(":", " ").split(" "), key=len)
        self._has_blank = self._first_word != self.folded
        # Folding makes at most 18 characters of one, and less than one of many combining marks. So this overlap of two
        # blocks holds a match that lies across their border, unless that has hundreds of marks.
        self._overlap = 64 + 4 * len(text)

    def may_be_in(self, arguments: str) -> bool:
        """Whether the query may be in the values of this JSON, which would take ten times as long to parse. Without
        escapes, names and values stand in it as they are: only what `plain` writes between them does not.
        """
        return "\\" in arguments or self._holds(arguments, self._in_json, False)

    def is_in(self, text: str) -> bool:
        return self._holds(text, self._first_word, self._has_blank)

    def _holds(self, text: str, word: str, has_blank: bool) -> bool:
        """Whether the text has the word, and with `has_blank` the whole query."""
        if len(text) <= BLOCK:  # as most texts are
            words, work = (text.lower(), len(text)) if text.isascii() else folded_block(text)
            self.work += work
            return word in words and (not has_blank or self.folded in " ".join(words.split()))
        tail = ""  # a match may begin at the end of the block before
        for block, work in folded_blocks(text):
            self.work += work
            words, sought = tail + block, word
            if sought in words and has_blank:
                words, sought = one_blank(words), self.folded
            if sought in words:
                return True
            tail = words[max(len(words) - len(sought) + 1, 0) :]
        return False

    def cut(self, text: str) -> tuple[str, str, str]:
        """The words before the first match, the match, and the words after it, as they are in the text.

        Folding moves positions, so the match is enclosed: by the shortest beginning of the text that holds it, and by
        the shortest end of that. If it cannot be, the match is empty, at the beginning.
        """
        for start in range(0, len(text), _PIECE):
            block = text[start : start + _PIECE + self._overlap]
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
    """The names and values of JSON, one a line. The text itself if it is no JSON, or too long to be parsed: escapes
    such as \\u6d88 hide words from a search, and a person does not look for braces.
    """
    if len(arguments) > MOST_PARSED:
        return arguments
    try:
        return "\n".join(_lines(_parse(arguments)))
    except (ValueError, RecursionError):
        return arguments


def most_values(text: str) -> int:
    """The most values that JSON has, if each of its lists and objects has one. A comma within a text counts too."""
    return text.count(",") + 1


def _lines(value: Any) -> Iterator[str]:
    """Does not recurse: a line from deep within would pass through each level above it. The name of a list stands
    before its first element, and before the others until a long name has been repeated often.
    """
    left = _REPEATED
    pending = [("", value, True)]
    while pending:
        name, part, is_first = pending.pop()
        if isinstance(part, dict):
            pending.extend((key, inner, True) for key, inner in reversed(part.items()))
        elif isinstance(part, list):
            last = len(part) - 1
            pending.extend((name, inner, is_first and at == last) for at, inner in enumerate(reversed(part)))
        else:
            shown = part if isinstance(part, str) else json.dumps(part)
            yield f"{name}: {shown}" if name and (is_first or left > 0) else shown
            left -= 0 if is_first else len(name)
