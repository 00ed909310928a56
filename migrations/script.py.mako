"""${message}

The previous release is still running while this revision executes, and may be deployed again.
- A rename takes three releases: add the new name and write both, backfill, then drop the old one. Put schema and data
  in separate revisions.
- Import nothing from chatledger: its models will change, and a revision must not. Declare the few columns that it
  needs.
- On PostgreSQL each revision is a transaction with a lock_timeout, retried if it does not get a lock. So do little in
  one. Use CONCURRENTLY outside of it (`op.get_context().autocommit_block()`), and NOT VALID before VALIDATE. Change
  data in batches by key that are safe to run twice.
- On SQLite, use batch mode for changes that ALTER TABLE cannot make. A rename updates neither views nor foreign keys
  that refer to the old name.
- On both, drop a view that shows a changed column, and create it again.
- Store a dump of the released schema with rows in tests/migrations/released/.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade(schema: str | None) -> None:
    ${upgrades if upgrades else "pass"}


def downgrade(schema: str | None) -> None:
    ${downgrades if downgrades else "pass"}
