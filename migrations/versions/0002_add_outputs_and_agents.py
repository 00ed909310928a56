"""Outputs that are added to committed messages, and the agents of a thread.

The previous release is still running while this revision executes, and may be deployed again. It knows neither table,
so it cannot delete a thread that has rows in them: the foreign keys refuse it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Text = sa.Text()
Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Small = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")

THREAD = ["tenant_id", "thread_id"]
MESSAGE = [*THREAD, "branch", "seq"]


def upgrade(schema: str | None) -> None:
    prefix = f"{schema}." if schema else ""
    op.create_table(
        "agents",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("name", Key, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("definition", Text, nullable=False),
        sa.Column("settings", Text),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint(*THREAD, "name", name="agents_pkey"),
        sa.ForeignKeyConstraint(
            THREAD, [f"{prefix}threads.{column}" for column in THREAD], name="agents_tenant_id_thread_id_fkey"
        ),
        sa.CheckConstraint("idx >= 0", name="agents_idx_check"),
        schema=schema,
    )
    op.create_table(
        "outputs",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("seq", Position, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("call_idx", Small),
        sa.Column("nonce", Text, nullable=False),
        sa.Column("mime_type", Text, nullable=False),
        sa.Column("text", Text, nullable=False),
        sa.Column("body", Text),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint(*MESSAGE, "idx", name="outputs_pkey"),
        sa.ForeignKeyConstraint(
            MESSAGE,
            [f"{prefix}messages.{column}" for column in MESSAGE],
            name="outputs_tenant_id_thread_id_branch_seq_fkey",
        ),
        sa.CheckConstraint("idx >= 0", name="outputs_idx_check"),
        schema=schema,
    )


def downgrade(schema: str | None) -> None:
    op.drop_table("outputs", schema=schema)
    op.drop_table("agents", schema=schema)
