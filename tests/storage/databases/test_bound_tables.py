"""What holds the statements of a distributed ledger to one server can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot.errors import ParseError

from tests.storage.bound_tables import unbound_tables
from tests.storage.sent import unbound

BEFORE = Path(__file__).with_name("unbound")
"""Statements of an earlier release, which a real Citus refused or sent to every shard: the list of threads, the rows of
a frame of messages, the current scores, and the poll of followed threads.
"""


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("threads", ["branches", "message_parts", "messages", "message_parts"]),
        ("frame", ["runs"]),
        ("scores", ["messages"]),
        ("poll", ["threads", "branches"]),
    ],
)
def test_a_statement_that_citus_refused_or_sent_everywhere_is_found(name: str, tables: list[str]) -> None:
    statement = (BEFORE / f"{name}.sql").read_text(encoding="utf-8")
    assert unbound([statement]) == {statement: tables}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT FROM chatledger.kv WHERE key = $2 AND (tenant_id = $1 AND kind = $3)",
        'SELECT FROM chatledger.kv WHERE kv.tenant_id = $1::VARCHAR COLLATE "C"',
        "SELECT FROM chatledger.runs r JOIN chatledger.threads t ON t.tenant_id = r.tenant_id WHERE $1 = r.tenant_id",
        "SELECT FROM chatledger.runs r LEFT JOIN chatledger.threads t ON t.tenant_id = $1 WHERE r.tenant_id = $1",
        "SELECT FROM chatledger.runs WHERE tenant_id = $1 AND EXISTS (SELECT FROM chatledger.kv WHERE tenant_id = $1)",
        "SELECT FROM f($1) g CROSS JOIN LATERAL (SELECT FROM chatledger.kv WHERE tenant_id = $2 AND key = g.key) k",
        "INSERT INTO chatledger.kv (key, tenant_id) VALUES ($1, $2)",
        "INSERT INTO chatledger.kv (tenant_id) SELECT $1::text FROM unnest($2::text[]) g",
        "INSERT INTO chatledger.kv (tenant_id) SELECT r.tenant_id FROM chatledger.runs r WHERE r.tenant_id = $1",
        "UPDATE chatledger.kv SET key = $1 WHERE tenant_id = $2",
        "DELETE FROM chatledger.kv USING chatledger.runs r WHERE kv.tenant_id = $1 AND r.tenant_id = kv.tenant_id",
        "SELECT version_num FROM chatledger.chatledger_version",
    ],
)
def test_a_table_that_is_compared_with_the_parameter_is_bound(statement: str) -> None:
    assert unbound_tables(statement) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT FROM chatledger.kv",
        "SELECT $1 AS tenant_id FROM chatledger.kv ORDER BY tenant_id = $1",
        "SELECT FROM chatledger.kv WHERE tenant_id = $1 OR key = $2",
        "SELECT FROM chatledger.kv WHERE NOT tenant_id = $1",
        "SELECT FROM chatledger.kv WHERE tenant_id = ANY($1)",
        "SELECT FROM chatledger.kv WHERE tenant_id IN (SELECT $1)",
        "SELECT FROM chatledger.kv k LEFT JOIN f() g ON k.tenant_id = $1",
        "SELECT FROM unnest($1) g (tenant_id) JOIN chatledger.kv k ON k.tenant_id = g.tenant_id",
        "WITH g AS (SELECT $1 AS tenant_id) SELECT FROM g JOIN chatledger.kv k ON k.tenant_id = g.tenant_id",
        "SELECT FROM (SELECT $1 AS tenant_id) g JOIN chatledger.kv k ON k.tenant_id = g.tenant_id",
        "SELECT (SELECT FROM chatledger.kv WHERE tenant_id = r.tenant_id) FROM chatledger.runs r WHERE tenant_id = $1",
        "INSERT INTO chatledger.kv (key, tenant_id) VALUES ($1, 'acme'), ($1, $2)",
        "INSERT INTO chatledger.kv (tenant_id) SELECT g.tenant_id FROM unnest($1) g (tenant_id)",
        "UPDATE chatledger.kv SET tenant_id = $1 WHERE key = $2",
        "DELETE FROM chatledger.kv USING chatledger.runs r WHERE r.tenant_id = $1 AND r.run_id = kv.key",
    ],
)
def test_a_table_that_is_not_compared_with_the_parameter_is_not(statement: str) -> None:
    assert unbound_tables(statement) == ["kv"]


def test_what_cannot_be_parsed_is_an_error() -> None:
    with pytest.raises(ParseError):
        unbound_tables("SELECT FROM chatledger.kv WHERE (")
