"""A statement in lines that can be read. Only its white space changes, so it stays the same statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

WIDTH = 110
_INDENT = "  "
_TOKEN = re.compile(r"""\s+|'(?:[^']|'')*'|"(?:[^"]|"")*"|[$:?@]?\w+|::|[<>=!|~*+/%^&#-]+|.""", re.DOTALL)
_NUMBER = re.compile(r"\$\d+")
_AGAIN = re.compile(r"(\((?:[^()]|\([^()]*\))*\)|[$?](?:::\w+)?)(?:,\1)+")
_QUERY = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES")
_OPENINGS = {"WITH", "SELECT", "INSERT", "DELETE", "VALUES", "WHERE", "HAVING", "LIMIT", "OFFSET", "RETURNING"}
_OPENINGS |= {"UNION", "EXCEPT", "WHEN", "ELSE"}
"""Words that begin a clause wherever they stand."""
_PAIRS = {"(": ")", "CASE": "END"}
_SHORT = 40
_JOINS = ("LEFT", "RIGHT", "CROSS", "INNER", "FULL")
_BREAKS = ("AND", "OR", "ON", "+", "||")
"""Words before which a long clause may be broken, as it may be behind a comma."""


@dataclass(frozen=True)
class Piece:
    """A token, or what stands in brackets or between CASE and END. `apart`: white space stands before it."""

    text: str
    apart: bool
    inside: Sequence[Piece] | None = None
    end: str = ""

    @property
    def word(self) -> str:
        return self.text.upper()

    @property
    def flat(self) -> str:
        space = " " * (self.end == "END")
        return self.text if self.inside is None else f"{self.text}{space}{flat(self.inside)}{space}{self.end}"

    @property
    def has_query(self) -> bool:
        """A query that is worth lines of its own."""
        inside = self.inside or ()
        return len(self.flat) > _SHORT and any(one.word in _QUERY or one.has_query for one in inside)


def lay_out(statement: str) -> str:
    return "\n".join(_lines(_pieces(iter(tokens(statement)), ""), ""))


def same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but the white space between their tokens."""
    return [token for token in tokens(one) if token != " "] == [token for token in tokens(other) if token != " "]


def pattern(statement: str) -> str:
    """What is the same of statements that differ in nothing but white space, the numbers of parameters, and how often
    the same row or parameter stands in a list.
    """
    text = _NUMBER.sub("$", re.sub(r"\s+", "", statement.rstrip("; \n")))
    return _AGAIN.sub(r"\1", text)


def tokens(statement: str) -> list[str]:
    """White space is one token, of one space. Raises ValueError for a comment, which would not end with its line."""
    found = [" " if token.isspace() else token for token in _TOKEN.findall(statement.strip())]
    if any(token.startswith(("--", "/*")) for token in found):
        raise ValueError(f"a statement with a comment: {statement}")
    return found


def flat(pieces: Sequence[Piece]) -> str:
    return "".join(" " * (one.apart and at > 0) + one.flat for at, one in enumerate(pieces))


def _pieces(given: Iterator[str], end: str) -> list[Piece]:
    found: list[Piece] = []
    apart = False
    for token in given:
        if token == end:
            break
        if token in _PAIRS:
            found.append(Piece(token, apart, _pieces(given, _PAIRS[token]), _PAIRS[token]))
        elif token != " ":
            found.append(Piece(token, apart))
        apart = token == " "
    return found


def _lines(pieces: Sequence[Piece], indent: str) -> list[str]:
    whole = indent + flat(pieces)
    if len(whole) <= WIDTH and not any(one.has_query for one in pieces):
        return [whole]
    return [line for clause in _split(pieces, _begins_clause) for line in _clause(clause, indent)]


def _split(pieces: Sequence[Piece], begins: Callable[[Sequence[Piece], int], bool]) -> list[list[Piece]]:
    found: list[list[Piece]] = [[]]
    for at, piece in enumerate(pieces):
        if found[-1] and begins(pieces, at):
            found.append([])
        found[-1].append(piece)
    return found


def _begins_clause(pieces: Sequence[Piece], at: int) -> bool:
    before, word, after = (pieces[one].word if 0 <= one < len(pieces) else "" for one in (at - 1, at, at + 1))
    if word in _OPENINGS:
        return after != "ORDINALITY"
    if word == "FROM":
        return before not in ("DELETE", "DISTINCT")
    if word in ("UPDATE", "SET"):
        return before not in ("DO", "FOR", "KEY", "UPDATE")
    if word in ("GROUP", "ORDER"):
        return after == "BY"
    if word in _JOINS:
        return after in ("JOIN", "OUTER")
    if word == "JOIN":
        return before not in (*_JOINS, "OUTER")
    if word == "ON":
        return after == "CONFLICT"
    return before == "," and pieces[at + 1 : at + 2] != [] and _is_cte(pieces, at)


def _is_cte(pieces: Sequence[Piece], at: int) -> bool:
    """`name AS (…)` or `name (…) AS (…)`, behind a comma."""
    return any(
        (one.word == "AS" and following.has_query) or following.word.endswith("MATERIALIZED")
        for one, following in zip(pieces[at + 1 : at + 3], pieces[at + 2 : at + 4], strict=False)
    )


def _may_break(pieces: Sequence[Piece], at: int) -> bool:
    of_between = [one.word for one in pieces[:at] if one.word in ("BETWEEN", "AND")][-1:] == ["BETWEEN"]
    return pieces[at - 1].word == "," or (pieces[at].word in _BREAKS and not of_between)


def _clause(pieces: Sequence[Piece], indent: str) -> list[str]:
    done: list[str] = []
    line = ""
    rest = indent + _INDENT * _begins_clause(pieces, 0)
    for run in _split(pieces, _may_break):
        text = " " * run[0].apart + flat(run)
        margin = rest if done or line else indent
        fits = not any(one.has_query for one in run)
        if line and (not fits or len(line + text) > WIDTH):
            done.append(line)
            line = ""
        if not line:
            text = text.lstrip()
            line = margin
        if fits and len(line + text) <= WIDTH:
            line += text
            continue
        *full, line = _broken(run, margin)
        done += full
    return [*done, line]


def _broken(run: Sequence[Piece], margin: str) -> list[str]:
    """What is in brackets and is long, or a query, in lines of its own."""
    done: list[str] = []
    line = margin
    for at, piece in enumerate(run):
        line += " " * (piece.apart and at > 0)
        if piece.inside and (piece.has_query or len(line + piece.flat) > WIDTH):
            done += [line + piece.text, *_lines(piece.inside, margin + _INDENT)]
            line = margin + piece.end
        else:
            line += piece.flat
    return [*done, line]
