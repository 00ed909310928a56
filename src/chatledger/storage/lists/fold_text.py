"""Folds texts for a comparison: NFKC and full case folding, each run of blanks as one blank.

The time grows with the length of the text, whatever stands in it. `unicodedata.normalize` sorts each run of combining
marks by insertion, and makes up to 18 letters of one. So long runs are broken as Unicode's Stream-Safe Text Format does
(UAX 15), which no text of a person has. A text is folded in short blocks, since each call holds the interpreter's lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import category, combining, normalize

MOST_MARKS = 30
"""The combining marks that may follow each other. No script needs as many."""
_BREAK = "\u034f"  # the combining grapheme joiner: nothing is sorted or composed across it
_SUSPECT = 13
"""So many characters decompose into at most MOST_MARKS marks, those of the character before them included."""
BLOCK = 4_096
"""The characters of a block; the last of them may be followed by as many that compose with the one before them."""
_ASCII_BLOCK = 65_536
_OF_A_LETTER = 3
"""The work of a character that is not of ASCII."""
_OF_MARKS = 8
"""Breaking a long run of marks takes so many times as long as folding other text."""
_HIGH = "\U00010000-\U0001ffff"
"""All marks of high codes are among these. A set of many high ranges would be ten times as slow to match."""


def fold(text: str) -> str:
    """The text for a comparison."""
    return one_blank(folded(text))


def folded(text: str) -> str:
    """As `fold`, but with the blanks as they are."""
    return "".join(block for block, _ in folded_blocks(text))


def folded_blocks(text: str) -> Iterator[tuple[str, int]]:
    """The folded text in blocks, each with its work."""
    return map(folded_block, _slices(text) if text.isascii() else _blocks(text))


def folded_block(block: str) -> tuple[str, int]:
    """The folded block, and its work: about its bytes in UTF-8, before or after, whichever are more."""
    if block.isascii():
        return block.lower(), len(block)
    mark, run = _marks()
    is_suspect = mark.search(block[_SUSPECT - 1 :: _SUSPECT])  # a long run has a mark at one of these places
    words = _fold(run.sub(_broken, block) if is_suspect else block)
    return words, max(len(block), len(words)) * (_OF_A_LETTER * _OF_MARKS if is_suspect else _OF_A_LETTER)


def one_blank(text: str) -> str:
    """The text with each run of blanks as one blank."""
    before, after = (" " if text[at : at + 1].isspace() else "" for at in (0, len(text) - 1))
    return f"{before}{' '.join(text.split())}{after}" if text else ""


def _fold(text: str) -> str:
    return normalize("NFKC", normalize("NFKC", text).casefold())


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + _ASCII_BLOCK] for start in range(0, len(text), _ASCII_BLOCK))


def _blocks(text: str) -> Iterator[str]:
    """The text in blocks that end where no character composes with the next one."""
    start = 0
    while start < len(text):
        end = next((at for at in range(start + BLOCK, start + 2 * BLOCK) if _begins(text[at : at + 1])), None)
        end = end or start + 2 * BLOCK
        yield text[start:end]
        start = end


def _begins(character: str) -> bool:
    """Whether the character composes with none before it. The end of the text does not either."""
    first = normalize("NFKD", character)[:1]
    return first in ("", _BREAK) or not (category(first)[0] == "M" or "\u1160" <= first <= "\u11ff")  # vowels of Hangul


# --- Runs of marks ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A mark, and a run of many. A mark is whatever decomposes into one at its beginning."""
    codes = [code for code in range(0x80, 0x10000) if combining(normalize("NFKD", chr(code))[0])]
    mark = f"[{''.join(map(chr, codes))}{_HIGH}]"
    return re.compile(mark), re.compile(f"{mark}{{{_SUSPECT},}}")


def _broken(run: re.Match[str]) -> str:
    """The run with a break before each mark that would be one too many."""
    pieces: list[str] = []
    before = run.string[run.start() - 1] if run.start() else ""
    count = _ends(before)[1]
    for character in run[0]:
        leading, trailing, whole = _ends(character)
        if count + leading > MOST_MARKS:
            pieces.append(_BREAK)
            count = 0
        pieces.append(character)
        count = count + leading if whole else trailing
    return "".join(pieces)


@lru_cache(maxsize=4096)
def _ends(character: str) -> tuple[int, int, bool]:
    """The marks at the beginning and at the end of a decomposed character, and whether it has nothing else."""
    is_mark = [combining(part) != 0 for part in normalize("NFKD", character)]
    leading = (*is_mark, False).index(False)
    return leading, (*reversed(is_mark), False).index(False), leading == len(is_mark)
