"""Every table, index and constraint. No ORM: nothing loads by being touched.

`tenant_id` leads every key, unique constraint and foreign key, so that the same tables run on SQLite, on PostgreSQL,
hash-partitioned or distributed by tenant, and a row of one tenant cannot point at another's. Nothing is global: no
sequence, no identity, no trigger; ids and times are bound parameters. No table points back at a later one and every
foreign key is immediate, so rows can be inserted in the order of this file, one statement a table, and deleted in the
reverse order.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    UniqueConstraint,
    text,
)

from chatledger.storage.schema.columns import CodedText, ExactDecimal, JsonText, Key, Moment, Position

SCHEMA = "chatledger"
"""Our tables live beside other people's. On PostgreSQL the schema is written out in every statement, because a
transaction pooler forgets `search_path`; on SQLite the file is ours and names are bare."""

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)


def _tenant() -> Column[str]:
    return Column("tenant_id", Key, nullable=False)


def _thread() -> Column[str]:
    return Column("thread_id", Key, nullable=False)


def _one_of(column: str, *values: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in values)})", name=column)


# Cold: written when a thread is made or renamed, and at most once a second while it is written to (active_at).
threads = Table(
    "threads",
    metadata,
    _tenant(),
    _thread(),
    Column("user_id", Key),  # set when the thread is made, never cleared: an owner that can vanish protects nothing
    Column("title", CodedText),
    Column("metadata", JsonText),
    Column("rules", CodedText),
    Column("active_branch", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("active_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id"),
    _one_of("rules", "lenient", "strict", "ordered"),
    Index(None, "tenant_id", "user_id", "active_at", "thread_id"),  # a user's threads, newest activity first
    Index(None, "tenant_id", "active_at", "thread_id"),  # everybody's
)

# The tip of each branch: the one hot row, updated by every append. Room on the page, and no other index but one whose
# columns and predicate an append leaves as they are, keep the update HOT on PostgreSQL.
branches = Table(
    "branches",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("lineage", CodedText, nullable=False),  # [[branch, first seq, last seq or null], …], set at the fork
    Column("last_seq", Position, nullable=False),
    Column("stamp", BigInteger, nullable=False),  # random, new in every write of the row: guards the next one
    Column("last_role", CodedText),
    Column("open_calls", JsonText),  # what the rules know of calls without results; NULL when there is nothing to know
    Column("partial_seq", Position),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch"),
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    CheckConstraint("last_seq >= 0", name="last_seq"),
    Index(  # what is being written, or was left behind: few or none of all
        "branches_partial_idx",
        "tenant_id",
        "thread_id",
        "branch",
        postgresql_where=text("partial_seq IS NOT NULL"),
        sqlite_where=text("partial_seq IS NOT NULL"),
    ),
    postgresql_with={"fillfactor": 70},
)

# One execution of an agent each, named from outside; made by the first append that names it.
runs = Table(
    "runs",
    metadata,
    _tenant(),
    Column("run_id", Key, nullable=False),
    _thread(),
    Column("agent", CodedText),
    Column("model", CodedText),
    Column("status", CodedText, nullable=False),
    Column("input", JsonText),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("total_tokens", BigInteger),
    Column("usage_details", JsonText),
    Column("cost", ExactDecimal),
    Column("error", CodedText),
    Column("metadata", JsonText),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    PrimaryKeyConstraint("tenant_id", "run_id"),
    UniqueConstraint("tenant_id", "thread_id", "run_id"),  # what messages point at: a run belongs to one thread
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    _one_of("status", "running", "completed", "failed", "cancelled"),
)

# One row a message, written once. A lone text lives here, without a part row.
messages = Table(
    "messages",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("message_id", Key),
    Column("role", CodedText, nullable=False),
    Column("name", CodedText),
    Column("content_form", CodedText),  # NULL no content | str | text (a list of one plain text) | parts
    Column("text", CodedText),  # the content of the forms str and text
    Column("reasoning_form", CodedText),  # NULL no reasoning | str | parts; its rows are in message_parts
    Column("call_count", Integer),  # NULL no list of tool calls | how many rows it has in tool_calls
    Column("tool_call_id", CodedText),  # as the source said it; which call it answers is in tool_results
    Column("is_error", Boolean),
    Column("run_id", Key),
    Column("state", CodedText, nullable=False),
    Column("format", CodedText),
    Column("residual", JsonText),  # what only its own format understands
    Column("response_metadata", JsonText),
    Column("custom_data", JsonText),
    Column("violations", JsonText),  # the rules that lenient let it break
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch"], [branches.c.tenant_id, branches.c.thread_id, branches.c.branch]
    ),
    ForeignKeyConstraint(["tenant_id", "thread_id", "run_id"], [runs.c.tenant_id, runs.c.thread_id, runs.c.run_id]),
    CheckConstraint("seq >= 1", name="seq"),
    _one_of("content_form", "str", "text", "parts"),
    _one_of("reasoning_form", "str", "parts"),
    _one_of("state", "complete", "partial", "interrupted", "synthetic"),
)

# Partial, because they begin like the primary key: as full indexes PostgreSQL may take one of them for the check of a
# foreign key that points here, and read the whole thread for each inserted row. The check cannot imply the predicate;
# a look-up by value can.
Index(
    "messages_message_id_key",
    messages.c.tenant_id,
    messages.c.thread_id,
    messages.c.message_id,
    unique=True,
    postgresql_where=text("message_id IS NOT NULL"),
    sqlite_where=text("message_id IS NOT NULL"),
)
Index(
    "messages_run_id_idx",
    messages.c.tenant_id,
    messages.c.thread_id,
    messages.c.run_id,
    postgresql_where=text("run_id IS NOT NULL"),
    sqlite_where=text("run_id IS NOT NULL"),
)

# The parts of a content or a reasoning that is more than one text.
message_parts = Table(
    "message_parts",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", Integer, nullable=False),  # counts through both channels of the message
    Column("channel", CodedText, nullable=False),
    Column("kind", CodedText, nullable=False),
    Column("text", CodedText),
    Column("body", JsonText),  # every other field of the part
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    CheckConstraint("idx >= 0", name="idx"),
    _one_of("channel", "content", "reasoning"),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", SmallInteger().with_variant(Integer(), "sqlite"), nullable=False),
    Column("call_id", CodedText),  # not indexed: ids of 4,572 characters are real, and they repeat inside a thread
    Column("name", CodedText, nullable=False),
    Column("arguments", CodedText),  # verbatim
    Column("arguments_form", CodedText),  # NULL no arguments | str | object
    Column("extras", JsonText),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    CheckConstraint("idx >= 0", name="idx"),
    _one_of("arguments_form", "str", "object"),
)

# Which call a result answers. An orphan has no row here and keeps its tool_call_id.
tool_results = Table(
    "tool_results",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("call_branch", Integer, nullable=False),
    Column("call_seq", Position, nullable=False),
    Column("call_idx", SmallInteger().with_variant(Integer(), "sqlite"), nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq"),
    # One result per call and branch, whatever the process that wrote it believed. Partial for the reason above, though
    # no row is left out: the check for results of a deleted message took it, and read those of the whole thread.
    Index(
        "tool_results_call_key",
        "tenant_id",
        "thread_id",
        "call_branch",
        "call_seq",
        "call_idx",
        "branch",
        unique=True,
        postgresql_where=text("call_seq IS NOT NULL"),
        sqlite_where=text("call_seq IS NOT NULL"),
    ),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "call_branch", "call_seq", "call_idx"],
        [
            tool_calls.c.tenant_id,
            tool_calls.c.thread_id,
            tool_calls.c.branch,
            tool_calls.c.seq,
            tool_calls.c.idx,
        ],
        name="tool_results_call_fkey",
    ),
)

# Scores. Append-only: 4 → 5 → 4 stars is three rows.
feedback = Table(
    "feedback",
    metadata,
    _tenant(),
    Column("feedback_id", Key, nullable=False),
    Column("run_id", Key, nullable=False),
    Column("key", CodedText, nullable=False),
    Column("score", Float(53), nullable=False),
    Column("kwargs", JsonText, nullable=False),
    Column("author", CodedText),
    Column("source", CodedText),
    Column("thread_id", Key),  # with branch and seq: the one message that it is about
    Column("branch", Integer),
    Column("seq", Position),
    Column("idempotency_key", Key),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "feedback_id"),
    UniqueConstraint("tenant_id", "run_id", "idempotency_key"),
    ForeignKeyConstraint(["tenant_id", "run_id"], [runs.c.tenant_id, runs.c.run_id]),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    Index(None, "tenant_id", "created_at", "feedback_id"),  # the list, newest first
    Index(
        "feedback_message_idx",
        "tenant_id",
        "thread_id",
        "branch",
        "seq",
        postgresql_where=text("thread_id IS NOT NULL"),
        sqlite_where=text("thread_id IS NOT NULL"),
    ),
)

# Who may answer in a thread, with what the thread overrides of each. Replaced as a whole, in a transaction that holds
# the branch.
agents = Table(
    "agents",
    metadata,
    _tenant(),
    _thread(),
    Column("name", Key, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("definition", JsonText, nullable=False),
    Column("settings", JsonText),
    Column("is_default", Boolean, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "name"),
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    CheckConstraint("idx >= 0", name="idx"),
)

# What was added to a message, or to one of its calls, after both were committed: their own rows never change.
outputs = Table(
    "outputs",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", Integer, nullable=False),  # counts through the message's own and those of its calls
    # NULL an output of the message itself. No foreign key: it would need an index of its own for deleting calls.
    Column("call_idx", SmallInteger().with_variant(Integer(), "sqlite")),
    Column("nonce", CodedText, nullable=False),
    Column("mime_type", CodedText, nullable=False),
    Column("text", CodedText, nullable=False),
    Column("body", JsonText),  # every other field of the output
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    CheckConstraint("idx >= 0", name="idx"),
)

# What was erased. No id is kept: `subject` is a digest of it, and an index finds it for whoever knows the id.
erasures = Table(
    "erasures",
    metadata,
    _tenant(),
    Column("erasure_id", Key, nullable=False),
    Column("kind", CodedText, nullable=False),
    Column("subject", Key, nullable=False),
    Column("rows", JsonText, nullable=False),  # how many went, by table
    Column("scores", Integer, nullable=False),  # how many were kept
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "erasure_id"),
    _one_of("kind", "thread", "user", "tenant"),
    Index(None, "tenant_id", "kind", "subject"),
    Index(None, "tenant_id", "created_at", "erasure_id"),  # the list, newest first
)

# The scores of what was erased, where they were to be kept: numbers, and what they are statistics of.
kept_scores = Table(
    "kept_scores",
    metadata,
    _tenant(),
    Column("erasure_id", Key, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("key", CodedText, nullable=False),
    Column("score", Float(53), nullable=False),
    Column("agent", CodedText),
    Column("model", CodedText),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "erasure_id", "idx"),
    ForeignKeyConstraint(["tenant_id", "erasure_id"], [erasures.c.tenant_id, erasures.c.erasure_id]),
    CheckConstraint("idx >= 0", name="idx"),
)

INSERTION_ORDER = (
    threads,
    branches,
    runs,
    messages,
    message_parts,
    tool_calls,
    tool_results,
    feedback,
    agents,
    outputs,
    erasures,
    kept_scores,
)
