"""Tables for changes after the commit, for state beside threads and for tenants; columns of lists; and views.

The previous release is still running while this revision executes, and may be deployed again. It knows none of the new
columns and tables, all of which may stay NULL or empty, and it counts positions without a message as messages. So
remove, pop and revise messages only once every process runs the new release. A removed message cannot be restored: the
downgrade refuses a database with such positions.

A message id is now looked up by (tenant, id, thread). If a process of the previous release repeats an append with its
own ids, it does not know the key that refuses the repeat, and raises an error once. Its next attempt finds the repeat.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Text = sa.Text()
Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Small = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")

CREATED = ("threads_tenant_id_user_id_created_at_thread_id_idx", "threads_tenant_id_created_at_thread_id_idx")
BY_ID, BY_ID_NEW = "messages_message_id_key", "messages_message_id_key_new"
OF_USER = "feedback_user_idx"
RESULTS, RESULTS_NEW = "tool_results_call_key", "tool_results_call_idx"
CALL = ["tenant_id", "thread_id", "call_branch", "call_seq", "call_idx", "branch"]
MESSAGE = ["tenant_id", "thread_id", "branch", "seq"]
FEEDBACK_KEY = "feedback_tenant_id_thread_id_branch_seq_fkey"


def upgrade(schema: str | None) -> None:
    if op.get_context().dialect.name == "sqlite":
        _drop_views(None, *OLD_VIEWS)  # SQLite cannot replace a view, nor rename a table that a view reads
        _add_columns(None)
        _upgrade_sqlite()
    else:
        _build_indexes(schema)  # first, because they commit: a migrator that is killed may leave them, and nothing else
        _add_columns(schema)
        op.drop_constraint(FEEDBACK_KEY, "feedback", schema=schema)
        op.execute(f"ALTER INDEX {_prefix(schema)}{BY_ID_NEW} RENAME TO {BY_ID}")
    _create_tables(schema)
    _create_views(schema)


def downgrade(schema: str | None) -> None:
    if not op.get_context().as_sql:
        branches = sa.table("branches", sa.column("absent"), schema=schema)
        holes = sa.select(branches.c.absent).where(branches.c.absent > 0).limit(1)
        if op.get_bind().execute(holes).first() is not None:
            raise CommandError("messages were removed or revised, which schema 0004 cannot express: stay at 0005")
    kept = OLD_VIEWS if op.get_context().dialect.name == "postgresql" else {}
    for name, template in kept.items():
        _execute_view(template, schema, replaced=name)
    _drop_views(schema, *(name for name in _TEMPLATES if name not in kept))
    for table in ("tenants", "kv", "revisions"):
        op.drop_table(table, schema=schema)
    op.drop_index(BY_ID, "messages", schema=schema)
    present = sa.text("message_id IS NOT NULL")
    op.create_index(
        BY_ID, "messages", ["tenant_id", "thread_id", "message_id"],
        unique=True, schema=schema, postgresql_where=present, sqlite_where=present,
    )  # fmt: skip
    op.drop_index(RESULTS_NEW, "tool_results", schema=schema)
    answering = sa.text("call_seq IS NOT NULL")
    op.create_index(
        RESULTS, "tool_results", CALL,
        unique=True, schema=schema, postgresql_where=answering, sqlite_where=answering,
    )  # fmt: skip
    op.drop_index(OF_USER, "feedback", schema=schema)
    for name in CREATED:
        op.drop_index(name, "threads", schema=schema)
    for table, columns in _columns().items():
        with op.batch_alter_table(table, schema=schema) as batch:
            if table == "feedback":
                batch.create_foreign_key(FEEDBACK_KEY, "messages", MESSAGE, MESSAGE, referent_schema=schema)
            for column in columns:
                batch.drop_column(column.name)
    for name, template in OLD_VIEWS.items():
        if name not in kept:
            _execute_view(template, schema)


def _columns() -> dict[str, list[sa.Column[object]]]:
    """The new columns of each table, in the order in which an append locks the tables."""
    return {
        "branches": [sa.Column("absent", Position)],
        "threads": [sa.Column("kind", Key), sa.Column("archived_at", Moment), sa.Column("revision", sa.Integer())],
        "messages": [sa.Column("revision", sa.Integer()), sa.Column("digest", Text)],
        "feedback": [
            sa.Column("message_id", Key),
            sa.Column("call_idx", Small),
            sa.Column("user_id", Key),
            sa.Column("retracted_at", Moment),
        ],
    }


def _add_columns(schema: str | None) -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column, schema=schema, if_not_exists=schema is not None)


def _create_tables(schema: str | None) -> None:
    op.create_table(
        "revisions",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("seq", Position, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("kind", Text, nullable=False),
        sa.Column("target_branch", sa.Integer(), nullable=False),
        sa.Column("target_seq", Position, nullable=False),
        sa.Column("message_id", Key),
        sa.Column("body", Text),
        sa.Column("digest", Text),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint(*MESSAGE, "idx", name="revisions_pkey"),
        sa.ForeignKeyConstraint(
            MESSAGE[:3],
            [f"{schema}.branches.{column}" if schema else f"branches.{column}" for column in MESSAGE[:3]],
            name="revisions_tenant_id_thread_id_branch_fkey",
        ),
        sa.CheckConstraint("idx >= 0", name="revisions_idx_check"),
        sa.CheckConstraint("kind IN ('revised', 'retracted', 'popped')", name="revisions_kind_check"),
        schema=schema,
    )
    present = sa.text("message_id IS NOT NULL")
    op.create_index(
        "revisions_message_id_idx", "revisions", ["tenant_id", "thread_id", "message_id"],
        schema=schema, postgresql_where=present, sqlite_where=present,
    )  # fmt: skip
    op.create_table(
        "kv",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("kind", Text, nullable=False),
        sa.Column("scope_id", Key, nullable=False),
        sa.Column("namespace", Key, nullable=False),
        sa.Column("key", Key, nullable=False),
        sa.Column("value", Text, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "kind", "scope_id", "namespace", "key", name="kv_pkey"),
        sa.CheckConstraint("kind IN ('tenant', 'user', 'thread')", name="kv_kind_check"),
        sa.CheckConstraint("version >= 1", name="kv_version_check"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )
    op.create_table(
        "tenants",
        sa.Column("tenant_id", Key, nullable=False),
        sa.Column("encrypted_at", Moment),
        sa.PrimaryKeyConstraint("tenant_id", name="tenants_pkey"),
        schema=schema,
    )


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _upgrade_sqlite() -> None:
    _remake_feedback()
    op.create_index(OF_USER, "feedback", ["tenant_id", "user_id"], sqlite_where=sa.text("user_id IS NOT NULL"))
    op.create_index(CREATED[0], "threads", ["tenant_id", "user_id", "created_at", "thread_id"])
    op.create_index(CREATED[1], "threads", ["tenant_id", "created_at", "thread_id"])
    op.drop_index(BY_ID, "messages")
    op.create_index(
        BY_ID, "messages", ["tenant_id", "message_id", "thread_id"],
        unique=True, sqlite_where=sa.text("message_id IS NOT NULL"),
    )  # fmt: skip
    op.drop_index(RESULTS, "tool_results")
    op.create_index(RESULTS_NEW, "tool_results", CALL, sqlite_where=sa.text("call_seq IS NOT NULL"))


def _remake_feedback() -> None:
    """SQLite cannot drop a constraint, so the table is rebuilt without the foreign key to messages."""
    made = op.create_table(
        "feedback_made",
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
        *_columns()["feedback"],
        sa.PrimaryKeyConstraint("tenant_id", "feedback_id", name="feedback_pkey"),
        sa.UniqueConstraint(
            "tenant_id", "run_id", "idempotency_key", name="feedback_tenant_id_run_id_idempotency_key_key"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"], ["runs.tenant_id", "runs.run_id"], name="feedback_tenant_id_run_id_fkey"
        ),
    )
    stored = sa.table("feedback", *(sa.column(name) for name in list(made.c.keys())))
    op.execute(made.insert().from_select(list(stored.c.keys()), sa.select(*stored.c)))
    op.drop_table("feedback")
    op.rename_table("feedback_made", "feedback")
    op.create_index(
        "feedback_tenant_id_created_at_feedback_id_idx", "feedback", ["tenant_id", "created_at", "feedback_id"]
    )
    op.create_index("feedback_message_idx", "feedback", MESSAGE, sqlite_where=sa.text("thread_id IS NOT NULL"))


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def _build_indexes(schema: str | None) -> None:
    """Build the indexes on tables with rows, without a lock that blocks other sessions. A revision that does not get a
    lock runs again, and that run does not rebuild a valid index.
    """
    partitioned = _is_partitioned(schema)
    wanted = [
        (CREATED[0], "threads", "tenant_id, user_id, created_at, thread_id", ""),
        (CREATED[1], "threads", "tenant_id, created_at, thread_id", ""),
        (BY_ID_NEW, "messages", "tenant_id, message_id, thread_id", " WHERE message_id IS NOT NULL"),
        (RESULTS_NEW, "tool_results", ", ".join(CALL), " WHERE call_seq IS NOT NULL"),
        (OF_USER, "feedback", "tenant_id, user_id", " WHERE user_id IS NOT NULL"),
    ]
    if partitioned:  # PostgreSQL has no CONCURRENTLY for partitioned tables
        _build(schema, wanted, "")
        return
    with op.get_context().autocommit_block():
        _build(schema, wanted, " CONCURRENTLY")


def _build(schema: str | None, wanted: list[tuple[str, str, str, str]], how: str) -> None:
    prefix = _prefix(schema)
    op.execute(f'ALTER TABLE {prefix}feedback ADD COLUMN IF NOT EXISTS user_id text COLLATE "C"')
    for name, table, columns, where in wanted:
        if not _is_valid(schema, name):
            op.execute(f"DROP INDEX{how} IF EXISTS {prefix}{name}")
            unique = " UNIQUE" if name == BY_ID_NEW else ""
            op.execute(f"CREATE{unique} INDEX{how} IF NOT EXISTS {name} ON {prefix}{table} ({columns}){where}")
    for replaced in (BY_ID, RESULTS):
        op.execute(f"DROP INDEX{how} IF EXISTS {prefix}{replaced}")


def _is_valid(schema: str | None, name: str) -> bool:
    if op.get_context().as_sql:
        return False
    found = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
    return bool(op.get_bind().execute(found, {"name": f'"{schema}"."{name}"'}).scalar())


def _is_partitioned(schema: str | None) -> bool:
    if op.get_context().as_sql:
        return False
    kind = sa.text("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(:name)")
    return op.get_bind().execute(kind, {"name": f'"{schema}".messages'}).scalar() == "p"


def _prefix(schema: str | None) -> str:
    return f'"{schema}".' if schema else ""


# --- Views ------------------------------------------------------------------------------------------------------------


def _create_views(schema: str | None) -> None:
    for name, template in _TEMPLATES.items():
        replaced = name in OLD_VIEWS and op.get_context().dialect.name == "postgresql"
        _execute_view(template, schema, replaced=name if replaced else None)


def _drop_views(schema: str | None, *names: str) -> None:
    for name in names:
        op.execute(f"DROP VIEW {_prefix(schema)}{name}")


def _execute_view(template: str, schema: str | None, *, replaced: str | None = None) -> None:
    """Create a view. PostgreSQL cannot change the type of a column of a view, so the view `replaced` is dropped, and
    who could read it can read the new one.
    """
    dialect = op.get_context().dialect.name
    same = {"schema": _prefix(schema), "join": _SPELLING[dialect]["join"]}
    spelling = _SPELLING[dialect] | same | {"text": _TEXT.format(**same, r="{r}")}
    of_row = {word: _OfRow(spelling[word]) for word in _OF_A_ROW}
    statement = template.format(**spelling | of_row).strip()
    if replaced is not None:
        statement = _REPLACE.format(view=f"{_prefix(schema)}{replaced}", statement=statement)
    op.execute(sa.DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]


_REPLACE = """
DO $replace$
DECLARE grants text;
BEGIN
  SELECT string_agg(format('GRANT %s ON {view} TO %s%s', privilege_type,
    CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '; ')
  INTO grants FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = '{view}'::regclass;
  DROP VIEW {view};
  {statement};
  IF grants IS NOT NULL THEN EXECUTE grants; END IF;
END $replace$
"""
_TRANSCRIPT = """
CREATE VIEW {schema}transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  {text[m]} AS text,
  (
    SELECT {join}(x, ', ') FROM (
      SELECT c.name AS x FROM {schema}tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, {time[m.created_at]} AS created_at,
  t.user_id, m.message_id, m.branch, m.state
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage[l]}
JOIN {schema}messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = {branch[l]}
  AND m.seq >= {first[l]} AND m.seq <= coalesce({last[l]}, m.seq)
"""
# A call that branches share may have a result on each of them; the result on the active path is shown.
_CALLS = """
CREATE VIEW {schema}calls AS
SELECT c.tenant_id, c.thread_id, c.branch, c.seq, c.idx, m.message_id, c.call_id, c.name, c.arguments,
  a.seq AS result_seq,
  {text[a]} AS result,
  a.is_error, {time[m.created_at]} AS called_at, {time[a.created_at]} AS answered_at
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage[l]}
JOIN {schema}tool_calls c ON c.tenant_id = t.tenant_id AND c.thread_id = t.thread_id AND c.branch = {branch[l]}
  AND c.seq >= {first[l]} AND c.seq <= coalesce({last[l]}, c.seq)
JOIN {schema}messages m ON m.tenant_id = c.tenant_id AND m.thread_id = c.thread_id AND m.branch = c.branch
  AND m.seq = c.seq
LEFT JOIN {schema}tool_results r ON r.tenant_id = c.tenant_id AND r.thread_id = c.thread_id
  AND r.call_branch = c.branch AND r.call_seq = c.seq AND r.call_idx = c.idx
  AND EXISTS (
    SELECT 1 FROM {lineage[p]}
    WHERE r.branch = {branch[p]} AND r.seq >= {first[p]} AND r.seq <= coalesce({last[p]}, r.seq)
  )
LEFT JOIN {schema}messages a ON a.tenant_id = r.tenant_id AND a.thread_id = r.thread_id AND a.branch = r.branch
  AND a.seq = r.seq
"""
_RUN_USAGE = """
CREATE VIEW {schema}run_usage AS
SELECT r.tenant_id, r.run_id, r.thread_id, t.user_id, r.agent, r.model, r.status, r.input_tokens, r.output_tokens,
  r.total_tokens, {cost} AS cost, {time[r.started_at]} AS started_at, {time[r.ended_at]} AS ended_at,
  {seconds} AS seconds
FROM {schema}runs r
JOIN {schema}threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
"""
_USAGE_BY_DAY = """
CREATE VIEW {schema}usage_by_day AS
SELECT d.tenant_id, d.day, d.user_id, d.agent, d.model, count(*) AS runs,
  CAST(sum(d.input_tokens) AS bigint) AS input_tokens, CAST(sum(d.output_tokens) AS bigint) AS output_tokens,
  CAST(sum(d.total_tokens) AS bigint) AS total_tokens, sum(d.cost) AS cost
FROM (
  SELECT r.tenant_id, {day[r.started_at]} AS day, t.user_id, r.agent, r.model, r.input_tokens,
    r.output_tokens, r.total_tokens, {cost} AS cost
  FROM {schema}runs r
  JOIN {schema}threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
) AS d
GROUP BY d.tenant_id, d.day, d.user_id, d.agent, d.model
"""
_SCORES = """
CREATE VIEW {schema}scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  {time[f.created_at]} AS created_at,
  coalesce(f.message_id, m.message_id) AS message_id, f.user_id, f.call_idx AS call_index
FROM (
  SELECT s.tenant_id, s.feedback_id, s.run_id, s.key, s.score, s.author, s.source, s.created_at, s.message_id,
    s.user_id, s.call_idx, s.retracted_at, s.thread_id, s.branch, s.seq,
    row_number() OVER (
      PARTITION BY s.tenant_id, s.run_id, s.branch, s.seq, s.call_idx, s.key, s.user_id
      ORDER BY s.created_at DESC, s.feedback_id DESC
    ) AS recency
  FROM {schema}feedback s
) AS f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
LEFT JOIN {schema}messages m ON m.tenant_id = f.tenant_id AND m.thread_id = f.thread_id AND m.branch = f.branch
  AND m.seq = f.seq
WHERE f.recency = 1 AND f.retracted_at IS NULL
"""
_TEXT = """coalesce({r}.text, (
    SELECT {join}(x, '') FROM (
      SELECT p.text AS x FROM {schema}message_parts p
      WHERE p.tenant_id = {r}.tenant_id AND p.thread_id = {r}.thread_id AND p.branch = {r}.branch AND p.seq = {r}.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  ))"""
_TEMPLATES = {
    "transcript": _TRANSCRIPT,
    "calls": _CALLS,
    "run_usage": _RUN_USAGE,
    "usage_by_day": _USAGE_BY_DAY,
    "scores": _SCORES,
}
OLD_VIEWS = {
    "transcript": (
        _TRANSCRIPT.replace(",\n  t.user_id, m.message_id, m.branch, m.state", "").replace("{time[", "{iso[")
    ),
    "scores": """
CREATE VIEW {schema}scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  {iso[f.created_at]} AS created_at
FROM {schema}feedback f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
""",
}

_SPELLING = {
    "sqlite": {
        "join": "group_concat",
        "cost": "CAST(r.cost AS REAL)",
        "seconds": "(r.ended_at - r.started_at) / 1000000.0",
        "lineage": "json_each(b.lineage) AS {r}",
        "branch": "json_extract({r}.value, '$[0]')",
        "first": "json_extract({r}.value, '$[1]')",
        "last": "json_extract({r}.value, '$[2]')",
        "time": """
    strftime('%Y-%m-%dT%H:%M:%S', ({r} - ({r} % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', ({r} % 1000000 + 1000000) % 1000000)""",
        "day": "strftime('%Y-%m-%d', ({r} - ({r} % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch')",
        "iso": """
    strftime('%Y-%m-%dT%H:%M:%S', ({r} - ({r} % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', ({r} % 1000000 + 1000000) % 1000000)""",
    },
    "postgresql": {
        "join": "string_agg",
        "cost": "r.cost",
        "seconds": "extract(epoch FROM r.ended_at - r.started_at)::float8",
        "lineage": "jsonb_array_elements(b.lineage::jsonb) AS {r}(value)",
        "branch": "({r}.value->>0)::int",
        "first": "({r}.value->>1)::bigint",
        "last": "({r}.value->>2)::bigint",
        "time": "{r}",
        "day": "({r} AT TIME ZONE 'UTC')::date",
        "iso": """
    to_char({r} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    },
}
_OF_A_ROW = ("lineage", "branch", "first", "last", "time", "day", "iso", "text")


class _OfRow(dict[str, str]):
    """The SQL of an expression over a row, for a template such as `{time[m.created_at]}`."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self._template = template

    def __missing__(self, row: str) -> str:
        return self._template.replace("{r}", row)
