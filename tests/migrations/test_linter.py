"""The findings of a linter for PostgreSQL migrations on the statements of all revisions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chatledger.admin import offline_sql
from tests.migrations.later import later_revision

SQUAWK = Path(sys.executable).parent / "squawk"
EXCLUDED = {
    "prefer-text-field": "the version table is Alembic's own, with revisions of four digits",
    "require-statement-timeout": "who validates a constraint or fills a column in batches takes its time on purpose, "
    "and holds no lock meanwhile that others wait for; waiting for a lock is bounded by lock_timeout",
    "prefer-bigint-over-int": "they count branches, scores, and parts and calls of one message",
    "prefer-bigint-over-smallint": "the same, of calls of one message",
    "ban-drop-constraint": "a score may outlive the message that it is about",
    "ban-drop-column": "no program of a release read or wrote the column `database_id` of `workers`",
    "renaming-object": "no statement names an index",
}

LOCKS_THE_TABLE = """
def upgrade(schema):
    op.create_index("messages_state_idx", "messages", ["state"], schema=schema)
    op.add_column("messages", sa.Column("colour", sa.Text(), nullable=False), schema=schema)

def downgrade(schema):
    pass
"""


def objections() -> dict[str, str]:
    """By rule, the first place."""
    result = subprocess.run(
        [str(SQUAWK), "--reporter", "json", "--pg-version", "13"],
        input=offline_sql("postgresql://nobody@127.0.0.1:1/nothing"),
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(result.stdout)
    return {one["rule_name"]: f"line {one['line'] + 1}: {one['message']}" for one in reversed(found)}


def test_the_linter_objects_only_to_the_excluded_rules() -> None:
    found = objections()
    assert {rule: said for rule, said in found.items() if rule not in EXCLUDED} == {}
    assert EXCLUDED.keys() <= found.keys()


def test_the_linter_sees_what_locks_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later_revision(LOCKS_THE_TABLE, tmp_path, monkeypatch)
    assert {"require-concurrent-index-creation", "adding-required-field"} <= objections().keys()
