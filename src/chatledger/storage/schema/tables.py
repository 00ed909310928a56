"""Every table, index and constraint. There is no ORM, so no attribute access runs a query.

`tenant_id` leads every key, unique constraint and foreign key of all tables but `workers`. So the same tables run on
SQLite and on PostgreSQL, hash-partitioned or distributed by tenant, and a row of one tenant cannot point at another's.
Nothing is global: there is no sequence, no identity and no trigger; ids and times are bound parameters. No table points
at a later one and every foreign key is immediate. So rows can be inserted in the order of this file, with one statement
for each table, and deleted in the reverse order.
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
"""The tables may stand beside an application's own. On PostgreSQL every statement names the schema, because a
transaction pooler forgets `search_path`. On SQLite the names have no schema."""

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


# Rarely written: when a thread is created or updated, and at most once a second by appends (active_at).
threads = Table(
    "threads",
    metadata,
    _tenant(),
    _thread(),
    Column("user_id", Key),  # set when the thread is created, never cleared: an owner that can vanish protects nothing
    Column("title", CodedText),
    Column("metadata", JsonText(dict)),
    Column("rules", CodedText),
    Column("active_branch", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("active_at", Moment, nullable=False),
    Column("kind", Key),  # a word of the application's, such as the name of its app; lists can be of one kind
    Column("archived_at", Moment),
    Column("revision", Integer),  # the number of updates; NULL if there was none
    PrimaryKeyConstraint("tenant_id", "thread_id"),
    _one_of("rules", "lenient", "strict", "ordered"),
    Index(None, "tenant_id", "user_id", "active_at", "thread_id"),  # a user's threads, newest activity first
    Index(None, "tenant_id", "active_at", "thread_id"),  # all users' threads, newest activity first
    Index(None, "tenant_id", "user_id", "created_at", "thread_id"),  # the same in the order of creation
    Index(None, "tenant_id", "created_at", "thread_id"),
)

# The tip of each branch: the only row that every append updates. Two things keep the update HOT on PostgreSQL: free
# space on the page (fillfactor), and indexes whose columns and predicates an append does not change.
branches = Table(
    "branches",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("lineage", CodedText, nullable=False),  # [[branch, first seq, last seq or null], …], set at the fork
    Column("last_seq", Position, nullable=False),
    Column("stamp", BigInteger, nullable=False),  # random, renewed by every write of the row; guards the next write
    Column("last_role", CodedText),
    Column("open_calls", JsonText(dict)),  # the rules' state of calls without results; NULL if there is none
    Column("partial_seq", Position),
    Column("created_at", Moment, nullable=False),
    # The positions up to last_seq without a message: those of changes and of removed messages. NULL is 0, and says also
    # that no message of the thread was ever removed.
    Column("absent", Position),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch"),
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    CheckConstraint("last_seq >= 0", name="last_seq"),
    Index(  # only branches with a partial message, which are few or none
        "branches_partial_idx",
        "tenant_id",
        "thread_id",
        "branch",
        postgresql_where=text("partial_seq IS NOT NULL"),
        sqlite_where=text("partial_seq IS NOT NULL"),
    ),
    postgresql_with={"fillfactor": 70},
)

# Each run is one execution of an agent. An append that names a new run creates it.
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
    Column("usage_details", JsonText(dict)),
    Column("cost", ExactDecimal),
    Column("error", CodedText),
    Column("metadata", JsonText(dict)),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    # Of a durable run alone, NULL for any other:
    Column("question_id", Key),  # the message that it answers
    Column("branch", Integer),  # the branch on which it writes
    Column("tools_of", Key),  # the last message whose tools an attempt began
    Column("call_secret", CodedText),  # random; the keys of its calls derive from it, and nothing shows it
    Column("attempts", Integer),  # the attempts in a row that stored nothing
    PrimaryKeyConstraint("tenant_id", "run_id"),
    UniqueConstraint("tenant_id", "thread_id", "run_id"),  # messages point at it: a run belongs to one thread
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    _one_of("status", "running", "completed", "failed", "cancelled"),
)

# Who works on each open durable run. The transaction that ends the run deletes the row. It has ids and names, never
# content, and no time that a beat changes. A process of the release before does not know the tables that point at a run
# with ON DELETE CASCADE: it deletes threads and runs, and the database the rows here.
run_leases = Table(
    "run_leases",
    metadata,
    _tenant(),
    _thread(),
    Column("run_id", Key, nullable=False),
    Column("agent", Key, nullable=False),
    Column("attempt", Integer, nullable=False),  # 0: nobody took it up yet
    Column("worker_id", Key, nullable=False),  # of a row in workers; "" for nobody's
    Column("paused_at", Moment),
    Column("user_id", Key),  # of the thread
    Column("place", Integer),  # the open answers of the user when this one began: the least is taken up first
    Column("database_id", CodedText),  # where it began: a restored database does not go on with it
    PrimaryKeyConstraint("tenant_id", "thread_id", "run_id"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "run_id"],
        [runs.c.tenant_id, runs.c.thread_id, runs.c.run_id],
        ondelete="CASCADE",
    ),
    CheckConstraint("attempt >= 0", name="attempt"),
    Index("run_leases_user_idx", "tenant_id", "user_id", "thread_id"),
    Index(  # without the tenant: a worker looks for the runs of all tenants that are its own, or a dead worker's
        "run_leases_place_idx",
        "worker_id",
        "place",
        postgresql_where=text("paused_at IS NULL"),
        sqlite_where=text("paused_at IS NULL"),
    ),
    postgresql_with={"fillfactor": 70},
)

# The calls for which a paused run waits, and what was decided. The rows stay until the run or the thread goes. No
# foreign key points at the call: a retraction may delete it.
run_decisions = Table(
    "run_decisions",
    metadata,
    _tenant(),
    _thread(),
    Column("run_id", Key, nullable=False),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", SmallInteger().with_variant(Integer(), "sqlite"), nullable=False),  # of the call in tool_calls
    Column("revision", Integer),  # of the message, when the run paused
    Column("decision", CodedText),  # NULL: it still waits
    Column("reason", CodedText),  # why a person decided so
    Column("pending_reason", CodedText),  # why the tool waits
    Column("author", Key),  # the user who decided
    Column("decided_at", Moment),
    Column("begun_at", Moment),  # when an attempt began to run the approved call
    PrimaryKeyConstraint("tenant_id", "thread_id", "run_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "run_id"],
        [runs.c.tenant_id, runs.c.thread_id, runs.c.run_id],
        ondelete="CASCADE",
    ),
    CheckConstraint("idx >= 0", name="idx"),
    _one_of("decision", "approved", "refused", "result"),
    Index(  # a user's decisions, to erase who decided
        "run_decisions_author_idx",
        "tenant_id",
        "author",
        postgresql_where=text("author IS NOT NULL"),
        sqlite_where=text("author IS NOT NULL"),
    ),
)

# The processes that run agents: one row each, of all tenants. Nobody but the process itself writes its row, alone in a
# transaction, so nothing can delay it. A plain table on PostgreSQL that is distributed or has row-level security.
workers = Table(
    "workers",
    metadata,
    Column("worker_id", Key, nullable=False),
    Column("lease_until", Moment, nullable=False),  # by the database's clock
    PrimaryKeyConstraint("worker_id"),
    postgresql_with={"fillfactor": 70},
)

# One row for each message. A lone text stands here, without a row in message_parts. Only a redaction or a revision
# changes a committed row, and only a retraction, a pop or a rewind deletes one; `revisions` records each of them.
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
    Column("call_count", Integer),  # NULL no list of tool calls | the number of its rows in tool_calls
    Column("tool_call_id", CodedText),  # as the source gave it; tool_results names the call that it answers
    Column("is_error", Boolean),
    Column("run_id", Key),
    Column("state", CodedText, nullable=False),
    Column("format", CodedText),
    Column("residual", JsonText),  # fields that only the message's own format understands
    Column("response_metadata", JsonText(dict)),
    Column("custom_data", JsonText(dict)),
    Column("violations", JsonText(list)),  # the rules that lenient let it break
    Column("created_at", Moment, nullable=False),
    Column("revision", Integer),  # how often its words were revised; NULL if never
    Column("digest", CodedText),  # of the words that a redaction removed, so that a repeat of the append is known
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

# Partial indexes, because they begin like the primary key. PostgreSQL might use a full index for the check of a foreign
# key that points here, and read the whole thread for each inserted row. The check does not imply the predicate; a
# lookup by value does. The thread comes last in the first one, so that an id is found in all threads of a tenant.
Index(
    "messages_message_id_key",
    messages.c.tenant_id,
    messages.c.message_id,
    messages.c.thread_id,
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
    Column("idx", Integer, nullable=False),  # one numbering for both channels of the message
    Column("channel", CodedText, nullable=False),
    Column("kind", CodedText, nullable=False),
    Column("text", CodedText),
    Column("body", JsonText(dict)),  # every other field of the part
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
    Column("extras", JsonText(dict)),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    CheckConstraint("idx >= 0", name="idx"),
    _one_of("arguments_form", "str", "object"),
)

# The call that each result answers. An orphan (a result without a call) has no row here and keeps its tool_call_id.
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
    # Not unique: a branch that gave a result up keeps its rows while a fork shares them, and may answer the call again.
    # The stamp of the branch guards that a path has one result of a call. Partial for the reason above, though it
    # leaves out no row: as a full index, the check for results of a deleted message used it, and read all results of
    # the thread.
    Index(
        "tool_results_call_idx",
        "tenant_id",
        "thread_id",
        "call_branch",
        "call_seq",
        "call_idx",
        "branch",
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

# Scores. 4 → 5 → 4 stars is three rows; the latest one of a target, key and user counts.
feedback = Table(
    "feedback",
    metadata,
    _tenant(),
    Column("feedback_id", Key, nullable=False),
    Column("run_id", Key, nullable=False),
    Column("key", CodedText, nullable=False),
    Column("score", Float(53), nullable=False),
    Column("kwargs", JsonText(dict), nullable=False),
    Column("author", CodedText),
    Column("source", CodedText),
    Column("thread_id", Key),  # with branch and seq: the message that the score is about, if it is about one
    Column("branch", Integer),
    Column("seq", Position),
    Column("idempotency_key", Key),
    Column("created_at", Moment, nullable=False),
    Column("message_id", Key),  # of the target, which may have been retracted since; so no foreign key points at it
    Column("call_idx", SmallInteger().with_variant(Integer(), "sqlite")),  # the call of the message, if it is about one
    Column("user_id", Key),  # the user whose score it is
    Column("retracted_at", Moment),
    PrimaryKeyConstraint("tenant_id", "feedback_id"),
    UniqueConstraint("tenant_id", "run_id", "idempotency_key"),
    ForeignKeyConstraint(["tenant_id", "run_id"], [runs.c.tenant_id, runs.c.run_id]),
    Index(None, "tenant_id", "created_at", "feedback_id"),  # the list, newest first
    Index(  # a user's scores, to erase them
        "feedback_user_idx",
        "tenant_id",
        "user_id",
        postgresql_where=text("user_id IS NOT NULL"),
        sqlite_where=text("user_id IS NOT NULL"),
    ),
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

# The agents that may answer in a thread, with the settings that the thread overrides. The list is replaced as a whole,
# in a transaction that locks the thread.
agents = Table(
    "agents",
    metadata,
    _tenant(),
    _thread(),
    Column("name", Key, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("definition", JsonText(dict), nullable=False),
    Column("settings", JsonText(dict)),
    Column("is_default", Boolean, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "name"),
    ForeignKeyConstraint(["tenant_id", "thread_id"], [threads.c.tenant_id, threads.c.thread_id]),
    CheckConstraint("idx >= 0", name="idx"),
)

# Outputs that were added to a message, or to one of its calls, after its commit. The message's own rows never change.
outputs = Table(
    "outputs",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", Integer, nullable=False),  # one numbering for the message's own outputs and those of its calls
    # NULL for an output of the message itself. No foreign key: deleting calls would need an index for it.
    Column("call_idx", SmallInteger().with_variant(Integer(), "sqlite")),
    Column("nonce", CodedText, nullable=False),
    Column("mime_type", CodedText, nullable=False),
    Column("text", CodedText, nullable=False),
    Column("body", JsonText(dict)),  # every other field of the output
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch", "seq"],
        [messages.c.tenant_id, messages.c.thread_id, messages.c.branch, messages.c.seq],
    ),
    CheckConstraint("idx >= 0", name="idx"),
)

# The changes of stored messages: revised, retracted or popped. Each change takes the next position of its branch,
# (branch, seq) here, and may be about several messages (idx). The target may stand on another branch, which stored its
# row. No foreign key points at it, because a retracted message has no row.
revisions = Table(
    "revisions",
    metadata,
    _tenant(),
    _thread(),
    Column("branch", Integer, nullable=False),
    Column("seq", Position, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("kind", CodedText, nullable=False),
    Column("target_branch", Integer, nullable=False),
    Column("target_seq", Position, nullable=False),
    Column("message_id", Key),
    Column("body", JsonText(dict)),  # the whole message as it was before; NULL once redacted, or if another row has it
    Column("digest", CodedText),  # of the words that a redaction removed from the body
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "thread_id", "branch", "seq", "idx"),
    ForeignKeyConstraint(
        ["tenant_id", "thread_id", "branch"], [branches.c.tenant_id, branches.c.thread_id, branches.c.branch]
    ),
    CheckConstraint("idx >= 0", name="idx"),
    _one_of("kind", "revised", "retracted", "popped"),
    Index(
        "revisions_message_id_idx",
        "tenant_id",
        "thread_id",
        "message_id",
        postgresql_where=text("message_id IS NOT NULL"),
        sqlite_where=text("message_id IS NOT NULL"),
    ),
)

# The state that applications and frameworks keep beside the messages: of the tenant, of a user or of a thread. There is
# no foreign key, which would need a column and an index of its own for threads.
kv = Table(
    "kv",
    metadata,
    _tenant(),
    Column("kind", CodedText, nullable=False),
    Column("scope_id", Key, nullable=False),  # the user or the thread; "" for the tenant
    Column("namespace", Key, nullable=False),  # "" for none
    Column("key", Key, nullable=False),
    Column("value", JsonText, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "kind", "scope_id", "namespace", "key"),
    _one_of("kind", "tenant", "user", "thread"),
    CheckConstraint("version >= 1", name="version"),
    postgresql_with={"fillfactor": 70},
)

# The facts about a tenant as a whole. A tenant without a row is not encrypted.
tenants = Table(
    "tenants",
    metadata,
    _tenant(),
    Column("encrypted_at", Moment),  # since then only ledgers with keys write for the tenant
    Column("digest_secret", CodedText),  # keys the digests of content that is gone
    Column("tombstone_secret", CodedText),  # keys the tombstones; always in clear, because erasing needs no keys
    Column("kv_version", BigInteger),  # the highest version of all values that were deleted
    PrimaryKeyConstraint("tenant_id"),
)

# Tombstones of erased threads, users and tenants. They keep no id: `subject` is a digest of it, and an index finds the
# tombstone for a caller that knows the id.
erasures = Table(
    "erasures",
    metadata,
    _tenant(),
    Column("erasure_id", Key, nullable=False),
    Column("kind", CodedText, nullable=False),
    Column("subject", Key, nullable=False),
    Column("rows", JsonText(dict), nullable=False),  # the number of deleted rows, by table
    Column("scores", Integer, nullable=False),  # the number of scores that were kept
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "erasure_id"),
    _one_of("kind", "thread", "user", "tenant"),
    Index(None, "tenant_id", "kind", "subject"),
    Index(None, "tenant_id", "created_at", "erasure_id"),  # the list, newest first
)

# The scores of erased threads, if the caller kept them: numbers, and the agent and model that they are about.
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
    run_leases,
    run_decisions,
    messages,
    message_parts,
    tool_calls,
    tool_results,
    feedback,
    agents,
    outputs,
    revisions,
    kv,
    tenants,
    erasures,
    kept_scores,
)
"""The tables with rows of tenants: all but `workers`."""
