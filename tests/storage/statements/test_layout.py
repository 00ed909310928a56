"""A statement in lines is the same statement."""

from __future__ import annotations

import pytest
import sqlglot

from tests.storage.statements.files import stored
from tests.storage.statements.layout import WIDTH, lay_out, pattern, same
from tests.storage.statements.scene import KINDS

LONG = " AND ".join(f"column_{number} = ${number}" for number in range(12))


@pytest.mark.parametrize(
    ("statement", "lines"),
    [
        ("SELECT  1", ["SELECT 1"]),
        ("SELECT 'a  --  (' FROM t", ["SELECT 'a  --  (' FROM t"]),
        ("SELECT * FROM t WHERE a = 'x''y (' AND b = $1::text[]", None),
        (f"SELECT a FROM t WHERE {LONG}", ["SELECT a", "FROM t", "WHERE column_0 = $0 AND column_1 = $1 AND"]),
        (f"UPDATE t SET a = $1 WHERE {LONG} AND b BETWEEN 1 AND 2", ["UPDATE t", "SET a = $1", "WHERE"]),
        (f"WITH a AS (SELECT 1 FROM t WHERE {LONG}), b AS (SELECT 2) SELECT 3", ["WITH a AS (", "  SELECT 1"]),
        (f"SELECT CASE WHEN {LONG} THEN 1 ELSE 2 END FROM t", ["SELECT CASE", "  WHEN"]),
    ],
)
def test_lines_are_the_same_statement(statement: str, lines: list[str] | None) -> None:
    laid_out = lay_out(statement)
    assert same(statement, laid_out)
    assert sqlglot.parse_one(statement, read="postgres") == sqlglot.parse_one(laid_out, read="postgres")
    for line, begin in zip(laid_out.splitlines(), lines or (), strict=False):
        assert line.startswith(begin)


@pytest.mark.parametrize("other", ["SELECT 'a'", "SELECT 'a  b'", "SELECT 'a b', 1", 'SELECT "a b"', "SELECT ('a b')"])
def test_other_statements_are_not_the_same(other: str) -> None:
    assert not same("SELECT 'a b'", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("INSERT INTO t VALUES ($1, f($2)), ($3, f($4))", "INSERT INTO t VALUES ($5, f($6))"),
        ("SELECT 1 FROM t WHERE a IN (?, ?, ?)", "SELECT 1 FROM t\nWHERE a IN (?);"),
        ("SELECT 1 WHERE a IN ($1::text, $2::text)", "SELECT 1 WHERE a IN ($9::text)"),
    ],
)
def test_statements_that_differ_in_the_number_of_rows_have_a_pattern(one: str, other: str) -> None:
    assert pattern(one) == pattern(other)


@pytest.mark.parametrize("other", ["SELECT b FROM t", "SELECT a FROM t WHERE a = $1", "SELECT a, a FROM t"])
def test_other_statements_have_other_patterns(other: str) -> None:
    assert pattern("SELECT a FROM t") != pattern(other)


def test_a_comment_is_refused() -> None:
    with pytest.raises(ValueError, match="comment"):
        lay_out("SELECT 1 -- one\nFROM t")


@pytest.mark.parametrize("kind", KINDS)
def test_each_stored_statement_is_laid_out_and_can_be_parsed(kind: str) -> None:
    for text in stored(kind).values():
        statements = statements_of(text)
        assert statements
        for one in statements:
            assert lay_out(" ".join(one.split())) == one
            if not one.startswith(("BEGIN", "SAVEPOINT", "RELEASE")):  # sqlglot does not know all of them
                sqlglot.parse(one, read="sqlite" if kind == "sqlite" else "postgres")


def statements_of(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("-- ")]
    return [one.strip() for one in "\n".join([*lines, ""]).split(";\n")][:-1]


def test_a_line_is_short_unless_it_is_one_token() -> None:
    for text in stored("postgresql").values():
        assert [line for line in text.splitlines() if len(line) > WIDTH and line.count(" ") > 20] == []
