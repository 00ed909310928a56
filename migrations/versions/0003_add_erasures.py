"""Tombstones of erased threads, users and tenants, and the scores that were kept.

The previous release is still running while this revision executes, and may be deployed again. It knows neither table,
and can create a thread with an id that was erased.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Text = sa.Text()
Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade(schema: str | None) -> None:
    prefix = f"{schema}." if schema else ""
    op.create_table(
        "erasures",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("erasure_id", Key, nullable=False),
        sa.Column("kind", Text, nullable=False),
        sa.Column("subject", Key, nullable=False),
        sa.Column("rows", Text, nullable=False),
        sa.Column("scores", sa.Integer(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "erasure_id", name="erasures_pkey"),
        sa.CheckConstraint("kind IN ('thread', 'user', 'tenant')", name="erasures_kind_check"),
        schema=schema,
    )
    for columns in (["kind", "subject"], ["created_at", "erasure_id"]):
        name = "_".join(["erasures_tenant_id", *columns, "idx"])
        op.create_index(name, "erasures", ["tenant_id", *columns], schema=schema)
    op.create_table(
        "kept_scores",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("erasure_id", Key, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("key", Text, nullable=False),
        sa.Column("score", sa.Float(53), nullable=False),
        sa.Column("agent", Text),
        sa.Column("model", Text),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "erasure_id", "idx", name="kept_scores_pkey"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "erasure_id"],
            [f"{prefix}erasures.tenant_id", f"{prefix}erasures.erasure_id"],
            name="kept_scores_tenant_id_erasure_id_fkey",
        ),
        sa.CheckConstraint("idx >= 0", name="kept_scores_idx_check"),
        schema=schema,
    )


def downgrade(schema: str | None) -> None:
    op.drop_table("kept_scores", schema=schema)
    op.drop_table("erasures", schema=schema)
