"""Initial schema: threads, branches, runs, messages with parts, calls and results, feedback, and the two views."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Text = sa.Text()
Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Small = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
Decimal = sa.Numeric().with_variant(sa.Text(), "sqlite")

TABLES = (
    "threads",
    "branches",
    "runs",
    "messages",
    "message_parts",
    "tool_calls",
    "tool_results",
    "feedback",
)
MESSAGE = ["tenant_id", "thread_id", "branch", "seq"]


def upgrade(schema: str | None) -> None:
    op.create_table(
        "threads",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("user_id", Key),
        sa.Column("title", Text),
        sa.Column("metadata", Text),
        sa.Column("rules", Text),
        sa.Column("active_branch", sa.Integer(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("active_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", name="threads_pkey"),
        sa.CheckConstraint("rules IN ('lenient', 'strict', 'ordered')", name="threads_rules_check"),
        schema=schema,
    )
    _index(schema, "threads", ["tenant_id", "user_id", "active_at", "thread_id"])
    _index(schema, "threads", ["tenant_id", "active_at", "thread_id"])
    op.create_table(
        "branches",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("lineage", Text, nullable=False),
        sa.Column("last_seq", Position, nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("last_role", Text),
        sa.Column("open_calls", Text),
        sa.Column("partial_seq", Position),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", "branch", name="branches_pkey"),
        _points_at(schema, "branches", ["tenant_id", "thread_id"], "threads"),
        sa.CheckConstraint("last_seq >= 0", name="branches_last_seq_check"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )
    op.create_table(
        "runs",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("run_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("agent", Text),
        sa.Column("model", Text),
        sa.Column("status", Text, nullable=False),
        sa.Column("input", Text),
        sa.Column("input_tokens", sa.BigInteger()),
        sa.Column("output_tokens", sa.BigInteger()),
        sa.Column("total_tokens", sa.BigInteger()),
        sa.Column("usage_details", Text),
        sa.Column("cost", Decimal),
        sa.Column("error", Text),
        sa.Column("metadata", Text),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("ended_at", Moment),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", name="runs_pkey"),
        sa.UniqueConstraint("tenant_id", "thread_id", "run_id", name="runs_tenant_id_thread_id_run_id_key"),
        _points_at(schema, "runs", ["tenant_id", "thread_id"], "threads"),
        sa.CheckConstraint("status IN ('running', 'completed', 'failed', 'cancelled')", name="runs_status_check"),
        schema=schema,
    )
    op.create_table(
        "messages",
        *_message_key(),
        sa.Column("message_id", Key),
        sa.Column("role", Text, nullable=False),
        sa.Column("name", Text),
        sa.Column("content_form", Text),
        sa.Column("text", Text),
        sa.Column("reasoning_form", Text),
        sa.Column("call_count", sa.Integer()),
        sa.Column("tool_call_id", Text),
        sa.Column("is_error", sa.Boolean()),
        sa.Column("run_id", Key),
        sa.Column("state", Text, nullable=False),
        sa.Column("format", Text),
        sa.Column("residual", Text),
        sa.Column("response_metadata", Text),
        sa.Column("custom_data", Text),
        sa.Column("violations", Text),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint(*MESSAGE, name="messages_pkey"),
        _points_at(schema, "messages", ["tenant_id", "thread_id", "branch"], "branches"),
        _points_at(schema, "messages", ["tenant_id", "thread_id", "run_id"], "runs"),
        sa.CheckConstraint("seq >= 1", name="messages_seq_check"),
        sa.CheckConstraint("content_form IN ('str', 'text', 'parts')", name="messages_content_form_check"),
        sa.CheckConstraint("reasoning_form IN ('str', 'parts')", name="messages_reasoning_form_check"),
        sa.CheckConstraint("state IN ('complete', 'partial', 'interrupted', 'synthetic')", name="messages_state_check"),
        schema=schema,
    )
    _index(schema, "messages", ["tenant_id", "thread_id", "message_id"], "messages_message_id_key", "message_id", True)
    _index(schema, "messages", ["tenant_id", "thread_id", "run_id"], "messages_run_id_idx", "run_id")
    op.create_table(
        "message_parts",
        *_message_key(),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("channel", Text, nullable=False),
        sa.Column("kind", Text, nullable=False),
        sa.Column("text", Text),
        sa.Column("body", Text),
        sa.PrimaryKeyConstraint(*MESSAGE, "idx", name="message_parts_pkey"),
        _points_at(schema, "message_parts", MESSAGE, "messages"),
        sa.CheckConstraint("idx >= 0", name="message_parts_idx_check"),
        sa.CheckConstraint("channel IN ('content', 'reasoning')", name="message_parts_channel_check"),
        schema=schema,
    )
    op.create_table(
        "tool_calls",
        *_message_key(),
        sa.Column("idx", Small, nullable=False),
        sa.Column("call_id", Text),
        sa.Column("name", Text, nullable=False),
        sa.Column("arguments", Text),
        sa.Column("arguments_form", Text),
        sa.Column("extras", Text),
        sa.PrimaryKeyConstraint(*MESSAGE, "idx", name="tool_calls_pkey"),
        _points_at(schema, "tool_calls", MESSAGE, "messages"),
        sa.CheckConstraint("idx >= 0", name="tool_calls_idx_check"),
        sa.CheckConstraint("arguments_form IN ('str', 'object')", name="tool_calls_arguments_form_check"),
        schema=schema,
    )
    call = ["tenant_id", "thread_id", "call_branch", "call_seq", "call_idx"]
    op.create_table(
        "tool_results",
        *_message_key(),
        sa.Column("call_branch", sa.Integer(), nullable=False),
        sa.Column("call_seq", Position, nullable=False),
        sa.Column("call_idx", Small, nullable=False),
        sa.PrimaryKeyConstraint(*MESSAGE, name="tool_results_pkey"),
        _points_at(schema, "tool_results", MESSAGE, "messages"),
        _points_at(schema, "tool_results", call, "tool_calls", [*MESSAGE, "idx"], name="tool_results_call_fkey"),
        schema=schema,
    )
    _index(schema, "tool_results", [*call, "branch"], "tool_results_call_key", "call_seq", True)
    op.create_table(
        "feedback",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("feedback_id", Key, nullable=False),
        sa.Column("run_id", Key, nullable=False),
        sa.Column("key", Text, nullable=False),
        sa.Column("score", sa.Float(53), nullable=False),
        sa.Column("kwargs", Text, nullable=False),
        sa.Column("author", Text),
        sa.Column("source", Text),
        sa.Column("thread_id", Key),
        sa.Column("branch", sa.Integer()),
        sa.Column("seq", Position),
        sa.Column("idempotency_key", Key),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "feedback_id", name="feedback_pkey"),
        sa.UniqueConstraint(
            "tenant_id", "run_id", "idempotency_key", name="feedback_tenant_id_run_id_idempotency_key_key"
        ),
        _points_at(schema, "feedback", ["tenant_id", "run_id"], "runs"),
        _points_at(schema, "feedback", MESSAGE, "messages"),
        schema=schema,
    )
    _index(schema, "feedback", ["tenant_id", "created_at", "feedback_id"])
    _index(schema, "feedback", MESSAGE, "feedback_message_idx", "thread_id")
    for view in _views(schema):
        op.execute(view)


def downgrade(schema: str | None) -> None:
    prefix = f'"{schema}".' if schema else ""
    for view in ("transcript", "scores"):
        op.execute(f"DROP VIEW {prefix}{view}")
    for table in reversed(TABLES):
        op.drop_table(table, schema=schema)


def _message_key() -> list[sa.Column[object]]:
    return [
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("seq", Position, nullable=False),
    ]


def _points_at(
    schema: str | None,
    table: str,
    columns: list[str],
    target: str,
    target_columns: list[str] | None = None,
    name: str | None = None,
) -> sa.ForeignKeyConstraint:
    prefix = f"{schema}." if schema else ""
    return sa.ForeignKeyConstraint(
        columns,
        [f"{prefix}{target}.{column}" for column in target_columns or columns],
        name=name or f"{table}_{'_'.join(columns)}_fkey",
    )


def _index(
    schema: str | None,
    table: str,
    columns: list[str],
    name: str | None = None,
    present: str | None = None,
    unique: bool = False,
) -> None:
    where = sa.text(f"{present} IS NOT NULL") if present else None
    name = name or f"{table}_{'_'.join(columns)}_idx"
    op.create_index(name, table, columns, unique=unique, schema=schema, postgresql_where=where, sqlite_where=where)


def _views(schema: str | None) -> list[sa.DDL]:
    spelling = _SPELLING[op.get_context().dialect.name]
    prefix = f'"{schema}".' if schema else ""
    statements = (
        template.format(**spelling | {"schema": prefix, "time": spelling["time"].format(row=row)}).strip()
        for template, row in ((_TRANSCRIPT, "m"), (_SCORES, "f"))
    )
    return [sa.DDL(statement.replace("%", "%%")) for statement in statements]  # type: ignore[no-untyped-call]


_TRANSCRIPT = """
CREATE VIEW {schema}transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT {join}(x, '') FROM (
      SELECT p.text AS x FROM {schema}message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT {join}(x, ', ') FROM (
      SELECT c.name AS x FROM {schema}tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, {time} AS created_at
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage}
JOIN {schema}messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = {branch}
  AND m.seq >= {first} AND m.seq <= coalesce({last}, m.seq)
"""
_SCORES = """
CREATE VIEW {schema}scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  {time} AS created_at
FROM {schema}feedback f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
"""
_SPELLING = {
    "sqlite": {
        "join": "group_concat",
        "lineage": "json_each(b.lineage) AS l",
        "branch": "json_extract(l.value, '$[0]')",
        "first": "json_extract(l.value, '$[1]')",
        "last": "json_extract(l.value, '$[2]')",
        "time": """
    strftime('%Y-%m-%dT%H:%M:%S', ({row}.created_at - ({row}.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', ({row}.created_at % 1000000 + 1000000) % 1000000)""",
    },
    "postgresql": {
        "join": "string_agg",
        "lineage": "jsonb_array_elements(b.lineage::jsonb) AS l(value)",
        "branch": "(l.value->>0)::int",
        "first": "(l.value->>1)::bigint",
        "last": "(l.value->>2)::bigint",
        "time": """
    to_char({row}.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    },
}
