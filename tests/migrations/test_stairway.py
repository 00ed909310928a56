"""Up, down and up again, revision by revision, on both databases; new revisions are climbed without a change here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Database
from tests.migrations.later import later_revision
from tests.migrations.revisions import HEAD, NEXT, revisions
from tests.migrations.stairway import climb


@pytest.mark.parametrize("revision", revisions())
def test_a_revision_can_be_climbed_twice(revision: str, empty: Database, other: Database) -> None:
    climb(revision, empty, other)


GOOD = """
def upgrade(schema):
    with op.batch_alter_table("threads", schema=schema) as table:
        table.add_column(sa.Column("colour", sa.Text()))
        table.create_check_constraint("threads_colour_check", "colour <> ''")

def downgrade(schema):
    with op.batch_alter_table("threads", schema=schema) as table:
        table.drop_constraint("threads_colour_check", type_="check")
        table.drop_column("colour")
"""
FORGETS_THE_CHECK = """
def upgrade(schema):
    with op.batch_alter_table("threads", schema=schema) as table:
        table.create_check_constraint("threads_title_check", "title <> ''")

def downgrade(schema):
    pass
"""
LOSES_ROWS = GOOD + '    op.execute(f"DELETE FROM {schema + chr(46) if schema else str()}feedback")\n'


def test_a_later_revision_is_climbed_as_the_first_was(
    empty: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_revision(GOOD, tmp_path, monkeypatch)
    assert revisions()[-2:] == [HEAD, NEXT]
    climb(NEXT, empty, other)


@pytest.mark.parametrize("body", [FORGETS_THE_CHECK, LOSES_ROWS])
def test_a_revision_with_an_incomplete_downgrade_is_noticed(
    body: str, empty: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_revision(body, tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        climb(NEXT, empty, other)
