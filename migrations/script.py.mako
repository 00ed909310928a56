"""${message}

The previous release is still running while this revision executes, and may be the one that comes back.
- Add and write both, backfill, then drop: a rename takes three releases. Schema and data go in separate revisions.
- Import nothing from chatledger: the models move on, history must not. Declare the few columns that are needed.
- On PostgreSQL each revision is a transaction with a lock_timeout, tried again when a lock is not to be had: do little
  in one. CONCURRENTLY outside of it (`op.get_context().autocommit_block()`), NOT VALID and then VALIDATE. Data in
  batches by key, safe to run twice.
- On SQLite: batch mode for what ALTER TABLE cannot do. A rename reaches neither views nor the keys that point there.
- On both: a view that shows a changed column is dropped first and made again.
- A dump with rows of the released schema belongs in tests/migrations/released/.
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
