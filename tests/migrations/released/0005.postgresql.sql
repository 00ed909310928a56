SET lock_timeout = 3000;

CREATE SCHEMA IF NOT EXISTS "chatledger";

BEGIN;

CREATE TABLE chatledger.chatledger_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT chatledger_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE chatledger.threads (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    user_id TEXT COLLATE "C", 
    title TEXT, 
    metadata TEXT, 
    rules TEXT, 
    active_branch INTEGER NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    active_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT threads_pkey PRIMARY KEY (tenant_id, thread_id), 
    CONSTRAINT threads_rules_check CHECK (rules IN ('lenient', 'strict', 'ordered'))
);

CREATE INDEX threads_tenant_id_user_id_active_at_thread_id_idx ON chatledger.threads (tenant_id, user_id, active_at, thread_id);

CREATE INDEX threads_tenant_id_active_at_thread_id_idx ON chatledger.threads (tenant_id, active_at, thread_id);

CREATE TABLE chatledger.branches (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    lineage TEXT NOT NULL, 
    last_seq BIGINT NOT NULL, 
    stamp BIGINT NOT NULL, 
    last_role TEXT, 
    open_calls TEXT, 
    partial_seq BIGINT, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT branches_pkey PRIMARY KEY (tenant_id, thread_id, branch), 
    CONSTRAINT branches_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES chatledger.threads (tenant_id, thread_id), 
    CONSTRAINT branches_last_seq_check CHECK (last_seq >= 0)
)
 WITH (fillfactor = 70);

CREATE TABLE chatledger.runs (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    run_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    agent TEXT, 
    model TEXT, 
    status TEXT NOT NULL, 
    input TEXT, 
    input_tokens BIGINT, 
    output_tokens BIGINT, 
    total_tokens BIGINT, 
    usage_details TEXT, 
    cost NUMERIC, 
    error TEXT, 
    metadata TEXT, 
    started_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    ended_at TIMESTAMP WITH TIME ZONE, 
    CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, run_id), 
    CONSTRAINT runs_tenant_id_thread_id_run_id_key UNIQUE (tenant_id, thread_id, run_id), 
    CONSTRAINT runs_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES chatledger.threads (tenant_id, thread_id), 
    CONSTRAINT runs_status_check CHECK (status IN ('running', 'completed', 'failed', 'cancelled'))
);

CREATE TABLE chatledger.messages (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    message_id TEXT COLLATE "C", 
    role TEXT NOT NULL, 
    name TEXT, 
    content_form TEXT, 
    text TEXT, 
    reasoning_form TEXT, 
    call_count INTEGER, 
    tool_call_id TEXT, 
    is_error BOOLEAN, 
    run_id TEXT COLLATE "C", 
    state TEXT NOT NULL, 
    format TEXT, 
    residual TEXT, 
    response_metadata TEXT, 
    custom_data TEXT, 
    violations TEXT, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
    CONSTRAINT messages_tenant_id_thread_id_branch_fkey FOREIGN KEY(tenant_id, thread_id, branch) REFERENCES chatledger.branches (tenant_id, thread_id, branch), 
    CONSTRAINT messages_tenant_id_thread_id_run_id_fkey FOREIGN KEY(tenant_id, thread_id, run_id) REFERENCES chatledger.runs (tenant_id, thread_id, run_id), 
    CONSTRAINT messages_seq_check CHECK (seq >= 1), 
    CONSTRAINT messages_content_form_check CHECK (content_form IN ('str', 'text', 'parts')), 
    CONSTRAINT messages_reasoning_form_check CHECK (reasoning_form IN ('str', 'parts')), 
    CONSTRAINT messages_state_check CHECK (state IN ('complete', 'partial', 'interrupted', 'synthetic'))
);

CREATE UNIQUE INDEX messages_message_id_key ON chatledger.messages (tenant_id, thread_id, message_id) WHERE message_id IS NOT NULL;

CREATE INDEX messages_run_id_idx ON chatledger.messages (tenant_id, thread_id, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE chatledger.message_parts (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    idx INTEGER NOT NULL, 
    channel TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    text TEXT, 
    body TEXT, 
    CONSTRAINT message_parts_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
    CONSTRAINT message_parts_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES chatledger.messages (tenant_id, thread_id, branch, seq), 
    CONSTRAINT message_parts_idx_check CHECK (idx >= 0), 
    CONSTRAINT message_parts_channel_check CHECK (channel IN ('content', 'reasoning'))
);

CREATE TABLE chatledger.tool_calls (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    idx SMALLINT NOT NULL, 
    call_id TEXT, 
    name TEXT NOT NULL, 
    arguments TEXT, 
    arguments_form TEXT, 
    extras TEXT, 
    CONSTRAINT tool_calls_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
    CONSTRAINT tool_calls_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES chatledger.messages (tenant_id, thread_id, branch, seq), 
    CONSTRAINT tool_calls_idx_check CHECK (idx >= 0), 
    CONSTRAINT tool_calls_arguments_form_check CHECK (arguments_form IN ('str', 'object'))
);

CREATE TABLE chatledger.tool_results (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    call_branch INTEGER NOT NULL, 
    call_seq BIGINT NOT NULL, 
    call_idx SMALLINT NOT NULL, 
    CONSTRAINT tool_results_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
    CONSTRAINT tool_results_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES chatledger.messages (tenant_id, thread_id, branch, seq), 
    CONSTRAINT tool_results_call_fkey FOREIGN KEY(tenant_id, thread_id, call_branch, call_seq, call_idx) REFERENCES chatledger.tool_calls (tenant_id, thread_id, branch, seq, idx)
);

CREATE UNIQUE INDEX tool_results_call_key ON chatledger.tool_results (tenant_id, thread_id, call_branch, call_seq, call_idx, branch) WHERE call_seq IS NOT NULL;

CREATE TABLE chatledger.feedback (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    feedback_id TEXT COLLATE "C" NOT NULL, 
    run_id TEXT COLLATE "C" NOT NULL, 
    key TEXT NOT NULL, 
    score FLOAT(53) NOT NULL, 
    kwargs TEXT NOT NULL, 
    author TEXT, 
    source TEXT, 
    thread_id TEXT COLLATE "C", 
    branch INTEGER, 
    seq BIGINT, 
    idempotency_key TEXT COLLATE "C", 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT feedback_pkey PRIMARY KEY (tenant_id, feedback_id), 
    CONSTRAINT feedback_tenant_id_run_id_idempotency_key_key UNIQUE (tenant_id, run_id, idempotency_key), 
    CONSTRAINT feedback_tenant_id_run_id_fkey FOREIGN KEY(tenant_id, run_id) REFERENCES chatledger.runs (tenant_id, run_id), 
    CONSTRAINT feedback_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES chatledger.messages (tenant_id, thread_id, branch, seq)
);

CREATE INDEX feedback_tenant_id_created_at_feedback_id_idx ON chatledger.feedback (tenant_id, created_at, feedback_id);

CREATE INDEX feedback_message_idx ON chatledger.feedback (tenant_id, thread_id, branch, seq) WHERE thread_id IS NOT NULL;

CREATE VIEW "chatledger".transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT string_agg(x, '') FROM (
      SELECT p.text AS x FROM "chatledger".message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT string_agg(x, ', ') FROM (
      SELECT c.name AS x FROM "chatledger".tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, 
    to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at
FROM "chatledger".threads t
JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN jsonb_array_elements(b.lineage::jsonb) AS l(value)
JOIN "chatledger".messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = (l.value->>0)::int
  AND m.seq >= (l.value->>1)::bigint AND m.seq <= coalesce((l.value->>2)::bigint, m.seq);

CREATE VIEW "chatledger".scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  
    to_char(f.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at
FROM "chatledger".feedback f
JOIN "chatledger".runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id;

INSERT INTO chatledger.chatledger_version (version_num) VALUES ('0001') RETURNING chatledger.chatledger_version.version_num;

COMMIT;

BEGIN;

-- Running upgrade 0001 -> 0002

CREATE TABLE chatledger.agents (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    name TEXT COLLATE "C" NOT NULL, 
    idx INTEGER NOT NULL, 
    definition TEXT NOT NULL, 
    settings TEXT, 
    is_default BOOLEAN NOT NULL, 
    CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, thread_id, name), 
    CONSTRAINT agents_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES chatledger.threads (tenant_id, thread_id), 
    CONSTRAINT agents_idx_check CHECK (idx >= 0)
);

CREATE TABLE chatledger.outputs (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    idx INTEGER NOT NULL, 
    call_idx SMALLINT, 
    nonce TEXT NOT NULL, 
    mime_type TEXT NOT NULL, 
    text TEXT NOT NULL, 
    body TEXT, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT outputs_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
    CONSTRAINT outputs_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES chatledger.messages (tenant_id, thread_id, branch, seq), 
    CONSTRAINT outputs_idx_check CHECK (idx >= 0)
);

UPDATE chatledger.chatledger_version SET version_num='0002' WHERE chatledger.chatledger_version.version_num = '0001';

COMMIT;

BEGIN;

-- Running upgrade 0002 -> 0003

CREATE TABLE chatledger.erasures (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    erasure_id TEXT COLLATE "C" NOT NULL, 
    kind TEXT NOT NULL, 
    subject TEXT COLLATE "C" NOT NULL, 
    rows TEXT NOT NULL, 
    scores INTEGER NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT erasures_pkey PRIMARY KEY (tenant_id, erasure_id), 
    CONSTRAINT erasures_kind_check CHECK (kind IN ('thread', 'user', 'tenant'))
);

CREATE INDEX erasures_tenant_id_kind_subject_idx ON chatledger.erasures (tenant_id, kind, subject);

CREATE INDEX erasures_tenant_id_created_at_erasure_id_idx ON chatledger.erasures (tenant_id, created_at, erasure_id);

CREATE TABLE chatledger.kept_scores (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    erasure_id TEXT COLLATE "C" NOT NULL, 
    idx INTEGER NOT NULL, 
    key TEXT NOT NULL, 
    score FLOAT(53) NOT NULL, 
    agent TEXT, 
    model TEXT, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT kept_scores_pkey PRIMARY KEY (tenant_id, erasure_id, idx), 
    CONSTRAINT kept_scores_tenant_id_erasure_id_fkey FOREIGN KEY(tenant_id, erasure_id) REFERENCES chatledger.erasures (tenant_id, erasure_id), 
    CONSTRAINT kept_scores_idx_check CHECK (idx >= 0)
);

UPDATE chatledger.chatledger_version SET version_num='0003' WHERE chatledger.chatledger_version.version_num = '0002';

COMMIT;

BEGIN;

-- Running upgrade 0003 -> 0004

COMMIT;

DROP INDEX CONCURRENTLY IF EXISTS chatledger.branches_partial_idx;

CREATE INDEX CONCURRENTLY IF NOT EXISTS branches_partial_idx ON chatledger.branches (tenant_id, thread_id, branch) WHERE partial_seq IS NOT NULL;

BEGIN;

UPDATE chatledger.chatledger_version SET version_num='0004' WHERE chatledger.chatledger_version.version_num = '0003';

COMMIT;

BEGIN;

-- Running upgrade 0004 -> 0005

COMMIT;

ALTER TABLE "chatledger".feedback ADD COLUMN IF NOT EXISTS user_id text COLLATE "C";

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".threads_tenant_id_user_id_created_at_thread_id_idx;

CREATE INDEX CONCURRENTLY IF NOT EXISTS threads_tenant_id_user_id_created_at_thread_id_idx ON "chatledger".threads (tenant_id, user_id, created_at, thread_id);

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".threads_tenant_id_created_at_thread_id_idx;

CREATE INDEX CONCURRENTLY IF NOT EXISTS threads_tenant_id_created_at_thread_id_idx ON "chatledger".threads (tenant_id, created_at, thread_id);

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".messages_message_id_key_new;

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS messages_message_id_key_new ON "chatledger".messages (tenant_id, message_id, thread_id) WHERE message_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".tool_results_call_idx;

CREATE INDEX CONCURRENTLY IF NOT EXISTS tool_results_call_idx ON "chatledger".tool_results (tenant_id, thread_id, call_branch, call_seq, call_idx, branch) WHERE call_seq IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".feedback_user_idx;

CREATE INDEX CONCURRENTLY IF NOT EXISTS feedback_user_idx ON "chatledger".feedback (tenant_id, user_id) WHERE user_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".messages_message_id_key;

DROP INDEX CONCURRENTLY IF EXISTS "chatledger".tool_results_call_key;

BEGIN;

ALTER TABLE chatledger.branches ADD COLUMN IF NOT EXISTS absent BIGINT;

ALTER TABLE chatledger.threads ADD COLUMN IF NOT EXISTS kind TEXT COLLATE "C";

ALTER TABLE chatledger.threads ADD COLUMN IF NOT EXISTS archived_at TIMESTAMP WITH TIME ZONE;

ALTER TABLE chatledger.threads ADD COLUMN IF NOT EXISTS revision INTEGER;

ALTER TABLE chatledger.messages ADD COLUMN IF NOT EXISTS revision INTEGER;

ALTER TABLE chatledger.messages ADD COLUMN IF NOT EXISTS digest TEXT;

ALTER TABLE chatledger.feedback ADD COLUMN IF NOT EXISTS message_id TEXT COLLATE "C";

ALTER TABLE chatledger.feedback ADD COLUMN IF NOT EXISTS call_idx SMALLINT;

ALTER TABLE chatledger.feedback ADD COLUMN IF NOT EXISTS user_id TEXT COLLATE "C";

ALTER TABLE chatledger.feedback ADD COLUMN IF NOT EXISTS retracted_at TIMESTAMP WITH TIME ZONE;

ALTER TABLE chatledger.feedback DROP CONSTRAINT feedback_tenant_id_thread_id_branch_seq_fkey;

ALTER INDEX "chatledger".messages_message_id_key_new RENAME TO messages_message_id_key;

CREATE TABLE chatledger.revisions (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    thread_id TEXT COLLATE "C" NOT NULL, 
    branch INTEGER NOT NULL, 
    seq BIGINT NOT NULL, 
    idx INTEGER NOT NULL, 
    kind TEXT NOT NULL, 
    target_branch INTEGER NOT NULL, 
    target_seq BIGINT NOT NULL, 
    message_id TEXT COLLATE "C", 
    body TEXT, 
    digest TEXT, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT revisions_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
    CONSTRAINT revisions_tenant_id_thread_id_branch_fkey FOREIGN KEY(tenant_id, thread_id, branch) REFERENCES chatledger.branches (tenant_id, thread_id, branch), 
    CONSTRAINT revisions_idx_check CHECK (idx >= 0), 
    CONSTRAINT revisions_kind_check CHECK (kind IN ('revised', 'retracted', 'popped'))
);

CREATE INDEX revisions_message_id_idx ON chatledger.revisions (tenant_id, thread_id, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE chatledger.kv (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    kind TEXT NOT NULL, 
    scope_id TEXT COLLATE "C" NOT NULL, 
    namespace TEXT COLLATE "C" NOT NULL, 
    key TEXT COLLATE "C" NOT NULL, 
    value TEXT NOT NULL, 
    version BIGINT NOT NULL, 
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT kv_pkey PRIMARY KEY (tenant_id, kind, scope_id, namespace, key), 
    CONSTRAINT kv_kind_check CHECK (kind IN ('tenant', 'user', 'thread')), 
    CONSTRAINT kv_version_check CHECK (version >= 1)
)
 WITH (fillfactor = 70);

CREATE TABLE chatledger.tenants (
    tenant_id TEXT COLLATE "C" NOT NULL, 
    encrypted_at TIMESTAMP WITH TIME ZONE, 
    CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id)
);

DO $replace$
DECLARE grants text;
BEGIN
  SELECT string_agg(format('GRANT %%s ON "chatledger".transcript TO %%s%%s', privilege_type,
    CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '; ')
  INTO grants FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = '"chatledger".transcript'::regclass;
  DROP VIEW "chatledger".transcript;
  CREATE VIEW "chatledger".transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT string_agg(x, '') FROM (
      SELECT p.text AS x FROM "chatledger".message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT string_agg(x, ', ') FROM (
      SELECT c.name AS x FROM "chatledger".tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, m.created_at AS created_at,
  t.user_id, m.message_id, m.branch, m.state
FROM "chatledger".threads t
JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN jsonb_array_elements(b.lineage::jsonb) AS l(value)
JOIN "chatledger".messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = (l.value->>0)::int
  AND m.seq >= (l.value->>1)::bigint AND m.seq <= coalesce((l.value->>2)::bigint, m.seq);
  IF grants IS NOT NULL THEN EXECUTE grants; END IF;
END $replace$;

CREATE VIEW "chatledger".calls AS
SELECT c.tenant_id, c.thread_id, c.branch, c.seq, c.idx, m.message_id, c.call_id, c.name, c.arguments,
  a.seq AS result_seq,
  coalesce(a.text, (
    SELECT string_agg(x, '') FROM (
      SELECT p.text AS x FROM "chatledger".message_parts p
      WHERE p.tenant_id = a.tenant_id AND p.thread_id = a.thread_id AND p.branch = a.branch AND p.seq = a.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS result,
  a.is_error, m.created_at AS called_at, a.created_at AS answered_at
FROM "chatledger".threads t
JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN jsonb_array_elements(b.lineage::jsonb) AS l(value)
JOIN "chatledger".tool_calls c ON c.tenant_id = t.tenant_id AND c.thread_id = t.thread_id AND c.branch = (l.value->>0)::int
  AND c.seq >= (l.value->>1)::bigint AND c.seq <= coalesce((l.value->>2)::bigint, c.seq)
JOIN "chatledger".messages m ON m.tenant_id = c.tenant_id AND m.thread_id = c.thread_id AND m.branch = c.branch
  AND m.seq = c.seq
LEFT JOIN "chatledger".tool_results r ON r.tenant_id = c.tenant_id AND r.thread_id = c.thread_id
  AND r.call_branch = c.branch AND r.call_seq = c.seq AND r.call_idx = c.idx
  AND EXISTS (
    SELECT 1 FROM jsonb_array_elements(b.lineage::jsonb) AS p(value)
    WHERE r.branch = (p.value->>0)::int AND r.seq >= (p.value->>1)::bigint AND r.seq <= coalesce((p.value->>2)::bigint, r.seq)
  )
LEFT JOIN "chatledger".messages a ON a.tenant_id = r.tenant_id AND a.thread_id = r.thread_id AND a.branch = r.branch
  AND a.seq = r.seq;

CREATE VIEW "chatledger".run_usage AS
SELECT r.tenant_id, r.run_id, r.thread_id, t.user_id, r.agent, r.model, r.status, r.input_tokens, r.output_tokens,
  r.total_tokens, r.cost AS cost, r.started_at AS started_at, r.ended_at AS ended_at,
  extract(epoch FROM r.ended_at - r.started_at)::float8 AS seconds
FROM "chatledger".runs r
JOIN "chatledger".threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id;

CREATE VIEW "chatledger".usage_by_day AS
SELECT d.tenant_id, d.day, d.user_id, d.agent, d.model, count(*) AS runs,
  CAST(sum(d.input_tokens) AS bigint) AS input_tokens, CAST(sum(d.output_tokens) AS bigint) AS output_tokens,
  CAST(sum(d.total_tokens) AS bigint) AS total_tokens, sum(d.cost) AS cost
FROM (
  SELECT r.tenant_id, (r.started_at AT TIME ZONE 'UTC')::date AS day, t.user_id, r.agent, r.model, r.input_tokens,
    r.output_tokens, r.total_tokens, r.cost AS cost
  FROM "chatledger".runs r
  JOIN "chatledger".threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
) AS d
GROUP BY d.tenant_id, d.day, d.user_id, d.agent, d.model;

DO $replace$
DECLARE grants text;
BEGIN
  SELECT string_agg(format('GRANT %%s ON "chatledger".scores TO %%s%%s', privilege_type,
    CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '; ')
  INTO grants FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = '"chatledger".scores'::regclass;
  DROP VIEW "chatledger".scores;
  CREATE VIEW "chatledger".scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  f.created_at AS created_at,
  coalesce(f.message_id, m.message_id) AS message_id, f.user_id, f.call_idx AS call_index
FROM (
  SELECT s.tenant_id, s.feedback_id, s.run_id, s.key, s.score, s.author, s.source, s.created_at, s.message_id,
    s.user_id, s.call_idx, s.retracted_at, s.thread_id, s.branch, s.seq,
    row_number() OVER (
      PARTITION BY s.tenant_id, s.run_id, s.branch, s.seq, s.call_idx, s.key, s.user_id
      ORDER BY s.created_at DESC, s.feedback_id DESC
    ) AS recency
  FROM "chatledger".feedback s
) AS f
JOIN "chatledger".runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
LEFT JOIN "chatledger".messages m ON m.tenant_id = f.tenant_id AND m.thread_id = f.thread_id AND m.branch = f.branch
  AND m.seq = f.seq
WHERE f.recency = 1 AND f.retracted_at IS NULL;
  IF grants IS NOT NULL THEN EXECUTE grants; END IF;
END $replace$;

UPDATE chatledger.chatledger_version SET version_num='0005' WHERE chatledger.chatledger_version.version_num = '0004';

COMMIT;

INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('acme', 'changed', 'user:42/x', 'Changed', NULL, 'lenient', '0', '2026-11-23 03:02:03.852867+00', '2026-11-23 03:02:03.852867+00', 'sky', '2026-11-23 03:02:04.144916+00', '1');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('acme', 'empty', NULL, NULL, NULL, NULL, '0', '2026-11-23 03:02:03.845298+00', '2026-11-23 03:02:03.845298+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('acme', 'odd', NULL, NULL, NULL, 'lenient', '0', '2026-11-23 03:02:03.838807+00', '2026-11-23 03:02:03.838807+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('acme', 'open', NULL, NULL, NULL, NULL, '0', '2026-11-23 03:02:03.849208+00', '2026-11-23 03:02:03.849208+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('acme', 'weather', 'user:42/x', 'Wetter in Tōkyō', E'{"b":100.0,"a":[null,"\\u0000"]}', NULL, '1', '2026-11-23 03:02:03.807194+00', '2026-11-23 03:02:03.807194+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('default', 'changed', 'user:42/x', 'Changed', NULL, 'lenient', '0', '2026-11-23 03:02:03.32719+00', '2026-11-23 03:02:03.32719+00', 'sky', '2026-11-23 03:02:03.730766+00', '1');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('default', 'empty', NULL, NULL, NULL, NULL, '0', '2026-11-23 03:02:03.3161+00', '2026-11-23 03:02:03.3161+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('default', 'odd', NULL, NULL, NULL, 'lenient', '0', '2026-11-23 03:02:03.258151+00', '2026-11-23 03:02:03.258151+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('default', 'open', NULL, NULL, NULL, NULL, '0', '2026-11-23 03:02:03.324001+00', '2026-11-23 03:02:03.324001+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('default', 'weather', 'user:42/x', 'Wetter in Tōkyō', E'{"b":100.0,"a":[null,"\\u0000"]}', NULL, '1', '2026-11-23 03:02:02.991283+00', '2026-11-23 03:02:02.991283+00', NULL, NULL, NULL);
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at", "kind", "archived_at", "revision") VALUES ('sealed', 'sealed', NULL, '1:1:U5HV5JjnzRK+KqRvnuh5vhiv+YBzMdiHCYc/UxjSIiH6Jw==', NULL, NULL, '0', '2026-11-23 03:02:02.880753+00', '2026-11-23 03:02:02.880753+00', NULL, NULL, NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'changed', '0', '[[0,1,null]]', '11', '7407960740577676789', 'assistant', NULL, NULL, '2026-11-23 03:02:03.852867+00', '6');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'empty', '0', '[[0,1,null]]', '0', '8088398507450456507', NULL, NULL, NULL, '2026-11-23 03:02:03.845298+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'odd', '0', '[[0,1,null]]', '2', '7904837480207322607', 'user', NULL, NULL, '2026-11-23 03:02:03.838807+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'open', '0', '[[0,1,null]]', '2', '4429193437677793983', 'assistant', '{"calls":[[0,2,0,"call_0","f"]]}', NULL, '2026-11-23 03:02:03.849208+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'weather', '0', '[[0,1,null]]', '12', '4856231638206154768', 'assistant', NULL, NULL, '2026-11-23 03:02:03.807194+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('acme', 'weather', '1', '[[0,1,6],[1,7,null]]', '7', '97817321791689916', 'assistant', '{"partial":{"lease":[1795402923836013,10.0,null]}}', '7', '2026-11-23 03:02:03.834619+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'changed', '0', '[[0,1,null]]', '11', '1872440625441860017', 'assistant', NULL, NULL, '2026-11-23 03:02:03.32719+00', '6');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'empty', '0', '[[0,1,null]]', '0', '6682724922129613525', NULL, NULL, NULL, '2026-11-23 03:02:03.3161+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'odd', '0', '[[0,1,null]]', '2', '4667575794981410758', 'user', NULL, NULL, '2026-11-23 03:02:03.258151+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'open', '0', '[[0,1,null]]', '2', '5595413237940944915', 'assistant', '{"calls":[[0,2,0,"call_0","f"]]}', NULL, '2026-11-23 03:02:03.324001+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'weather', '0', '[[0,1,null]]', '12', '1238289827967322288', 'assistant', NULL, NULL, '2026-11-23 03:02:02.991283+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('default', 'weather', '1', '[[0,1,6],[1,7,null]]', '7', '1034132561414175803', 'assistant', '{"partial":{"lease":[1795402923237453,10.0,null]}}', '7', '2026-11-23 03:02:03.229856+00', NULL);
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at", "absent") VALUES ('sealed', 'sealed', '0', '[[0,1,null]]', '0', '4071632140650177146', NULL, NULL, NULL, '2026-11-23 03:02:02.880753+00', NULL);
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('acme', 'run 7', 'weather', 'forecaster', 'm-1', 'failed', '{"q":1}', '12', '3', '15', '{"cached":2}', '0.000000000000000000010', E'out of \\ud800 quota', '{}', '2026-11-23 03:02:03.808428+00', '2026-11-23 03:02:03.817414+00');
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('acme', 'run 9', 'changed', NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.857356+00', NULL);
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('default', 'run 7', 'weather', 'forecaster', 'm-1', 'failed', '{"q":1}', '12', '3', '15', '{"cached":2}', '0.000000000000000000010', E'out of \\ud800 quota', '{}', '2026-11-23 03:02:03.00533+00', '2026-11-23 03:02:03.095858+00');
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('default', 'run 9', 'changed', NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.351887+00', NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'changed', '0', '1', 'c0', 'user', NULL, 'str', '[redacted]', NULL, NULL, NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R11","detail":"redacted 2026-11-23T03:02:03+00:00"}]', '2026-11-23 03:02:03.857356+00', '1', 'scrypt-14-8-1:df12c9bd7652e036c04f8770c63a137060f8e6abe7bd8365770a7d38ca478270');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'changed', '0', '2', 'c1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.857356+00', '1', NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'changed', '0', '3', 'c2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.857356+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'changed', '0', '4', 'c3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.857356+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'changed', '0', '5', 'c4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.857356+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'odd', '0', '1', 'o1', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'nowhere', NULL, NULL, 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]', '2026-11-23 03:02:03.839635+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'odd', '0', '2', 'o2', 'user', NULL, 'str', '', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.839635+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'open', '0', '1', '820220be-753b-8e97-b1b5-2ebc4c130221', 'user', NULL, 'str', 'f?', NULL, NULL, NULL, NULL, NULL, 'complete', 'openai-chat', NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.851625+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'open', '0', '2', '7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd', 'assistant', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, 'complete', 'openai-chat', '{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}', NULL, NULL, '[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]', '2026-11-23 03:02:03.851625+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '1', 'w0', 'user', NULL, 'str', 'What is the weather in Tokyo and in Lima?', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.811585+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '10', 'r4', 'tool', 'g', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '11', 'r5', 'assistant', NULL, 'parts', NULL, 'parts', NULL, NULL, NULL, NULL, 'complete', NULL, NULL, '{"finish":"stop"}', '{"k":"v"}', NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '12', 'r6', 'assistant', NULL, 'text', 'lone', NULL, NULL, NULL, NULL, NULL, 'interrupted', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '2', 'w1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.811585+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '3', 'w2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.811585+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '4', 'w3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.811585+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '5', 'w4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.811585+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '6', 'r0', 'user', 'ada', 'parts', NULL, NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '7', 'r1', 'assistant', NULL, 'parts', NULL, 'str', '3', NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2024-02-29 23:59:59.123456+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '8', 'r2', 'tool', NULL, 'str', 'no', NULL, NULL, 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'true', NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '0', '9', 'r3', 'tool', 'f', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.813202+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('acme', 'weather', '1', '7', 'w-other', 'assistant', NULL, 'str', 'Or: 21 °C.', NULL, NULL, NULL, NULL, NULL, 'partial', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.836013+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'changed', '0', '1', 'c0', 'user', NULL, 'str', '[redacted]', NULL, NULL, NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R11","detail":"redacted 2026-11-23T03:02:03+00:00"}]', '2026-11-23 03:02:03.351887+00', '1', 'scrypt-14-8-1:48c6dc3985ef2b2be5965f2e5804622de1761c7517eba972c5cd46a14f459da6');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'changed', '0', '2', 'c1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.351887+00', '1', NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'changed', '0', '3', 'c2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.351887+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'changed', '0', '4', 'c3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.351887+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'changed', '0', '5', 'c4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 9', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.351887+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'odd', '0', '1', 'o1', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'nowhere', NULL, NULL, 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]', '2026-11-23 03:02:03.263163+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'odd', '0', '2', 'o2', 'user', NULL, 'str', '', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.263163+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'open', '0', '1', '820220be-753b-8e97-b1b5-2ebc4c130221', 'user', NULL, 'str', 'f?', NULL, NULL, NULL, NULL, NULL, 'complete', 'openai-chat', NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.325583+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'open', '0', '2', '7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd', 'assistant', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, 'complete', 'openai-chat', '{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}', NULL, NULL, '[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]', '2026-11-23 03:02:03.325583+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '1', 'w0', 'user', NULL, 'str', 'What is the weather in Tokyo and in Lima?', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.021367+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '10', 'r4', 'tool', 'g', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '11', 'r5', 'assistant', NULL, 'parts', NULL, 'parts', NULL, NULL, NULL, NULL, 'complete', NULL, NULL, '{"finish":"stop"}', '{"k":"v"}', NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '12', 'r6', 'assistant', NULL, 'text', 'lone', NULL, NULL, NULL, NULL, NULL, 'interrupted', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '2', 'w1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.021367+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '3', 'w2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.021367+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '4', 'w3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.021367+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '5', 'w4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.021367+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '6', 'r0', 'user', 'ada', 'parts', NULL, NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '7', 'r1', 'assistant', NULL, 'parts', NULL, 'str', '3', NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2024-02-29 23:59:59.123456+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '8', 'r2', 'tool', NULL, 'str', 'no', NULL, NULL, 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'true', NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '0', '9', 'r3', 'tool', 'f', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.055457+00', NULL, NULL);
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at", "revision", "digest") VALUES ('default', 'weather', '1', '7', 'w-other', 'assistant', NULL, 'str', 'Or: 21 °C.', NULL, NULL, NULL, NULL, NULL, 'partial', NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.237453+00', NULL, NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '11', '0', 'content', 'opaque', NULL, '{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '11', '1', 'content', 'text', ' marked', NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '11', '2', 'reasoning', 'think', 'so', '{"signature":"s"}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '6', '0', 'content', 'text', 'see', NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '6', '1', 'content', 'image', NULL, '{"url":"https://example.org/a.png"}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('acme', 'weather', '0', '7', '0', 'reasoning', 'text', 'hm', NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '11', '0', 'content', 'opaque', NULL, '{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '11', '1', 'content', 'text', ' marked', NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '11', '2', 'reasoning', 'think', 'so', '{"signature":"s"}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '6', '0', 'content', 'text', 'see', NULL);
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '6', '1', 'content', 'image', NULL, '{"url":"https://example.org/a.png"}');
INSERT INTO chatledger.message_parts ("tenant_id", "thread_id", "branch", "seq", "idx", "channel", "kind", "text", "body") VALUES ('default', 'weather', '0', '7', '0', 'reasoning', 'text', 'hm', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'changed', '0', '2', '0', 'call_0', 'weather', '{"city":"Oslo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'changed', '0', '2', '1', 'call_1', 'weather', '{"city":"Bergen"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'open', '0', '2', '0', 'call_0', 'f', '{', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '2', '0', 'call_0', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '2', '1', 'call_1', 'weather', '{"city": "Lima"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '0', NULL, 'f', '{"z":-0.0}', 'object', '{"x":1}');
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '2', NULL, 'g', NULL, NULL, NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'changed', '0', '2', '0', 'call_0', 'weather', '{"city":"Oslo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'changed', '0', '2', '1', 'call_1', 'weather', '{"city":"Bergen"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'open', '0', '2', '0', 'call_0', 'f', '{', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '2', '0', 'call_0', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '2', '1', 'call_1', 'weather', '{"city": "Lima"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '0', NULL, 'f', '{"z":-0.0}', 'object', '{"x":1}');
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '2', NULL, 'g', NULL, NULL, NULL);
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'changed', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'changed', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '10', '0', '7', '2');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '8', '0', '7', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '9', '0', '7', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'changed', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'changed', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '10', '0', '7', '2');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '8', '0', '7', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '9', '0', '7', '0');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('acme', '01a2065a-7f32-77d0-8532-c8e231f088b7', 'run 7', 'thumbs', '-1.5', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.826317+00', NULL, NULL, NULL, NULL);
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('acme', '01a2065a-8063-7c1a-8760-6c09e18197d8', 'run 9', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'changed', '0', '2', NULL, '2026-11-23 03:02:04.131309+00', 'c1', '0', 'ada', NULL);
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('acme', '01a2065a-8067-7470-b3b9-e1f66457e30d', 'run 9', 'thumbs', '1', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:04.135447+00', NULL, NULL, 'ada', '2026-11-23 03:02:04.139229+00');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('acme', '32469f96-d648-80fd-a2c5-2d9ae21cd226', 'run 7', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'weather', '0', '5', 'click-1', '2026-11-23 03:02:03.81832+00', 'w4', NULL, NULL, NULL);
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('default', '01a2065a-7ca3-77e3-88bc-69bdc127222b', 'run 7', 'thumbs', '-1.5', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.171197+00', NULL, NULL, NULL, NULL);
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('default', '01a2065a-7eb0-7881-aa6f-df3182949406', 'run 9', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'changed', '0', '2', NULL, '2026-11-23 03:02:03.696941+00', 'c1', '0', 'ada', NULL);
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('default', '01a2065a-7ebb-7de5-bdff-9d1e99c74a35', 'run 9', 'thumbs', '1', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 03:02:03.707459+00', NULL, NULL, 'ada', '2026-11-23 03:02:03.718133+00');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at", "message_id", "call_idx", "user_id", "retracted_at") VALUES ('default', '32469f96-d648-80fd-a2c5-2d9ae21cd226', 'run 7', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'weather', '0', '5', 'click-1', '2026-11-23 03:02:03.115111+00', 'w4', NULL, NULL, NULL);
INSERT INTO chatledger.agents ("tenant_id", "thread_id", "name", "idx", "definition", "settings", "is_default") VALUES ('acme', 'odd', 'sky', '0', '{"models":["m-1"]}', '{"temperature":0.5}', 'true');
INSERT INTO chatledger.agents ("tenant_id", "thread_id", "name", "idx", "definition", "settings", "is_default") VALUES ('default', 'odd', 'sky', '0', '{"models":["m-1"]}', '{"temperature":0.5}', 'true');
INSERT INTO chatledger.outputs ("tenant_id", "thread_id", "branch", "seq", "idx", "call_idx", "nonce", "mime_type", "text", "body", "created_at") VALUES ('acme', 'odd', '0', '2', '0', '0', 'n1', 'text/plain', E'\\u0000', '{"lang":"sh"}', '2026-11-23 03:02:03.841203+00');
INSERT INTO chatledger.outputs ("tenant_id", "thread_id", "branch", "seq", "idx", "call_idx", "nonce", "mime_type", "text", "body", "created_at") VALUES ('default', 'odd', '0', '2', '0', '0', 'n1', 'text/plain', E'\\u0000', '{"lang":"sh"}', '2026-11-23 03:02:03.279167+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('acme', 'changed', '0', '10', '0', 'popped', '0', '9', 'c6', '{"message":{"message_id":"c6","role":"assistant","content_form":"str","text":"Yes.","seq":9,"state":"complete","created_at":1795402924104496},"parts":[],"calls":[]}', NULL, '2026-11-23 03:02:04.110994+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('acme', 'changed', '0', '11', '0', 'retracted', '0', '8', 'c5', '{"message":{"message_id":"c5","role":"user","content_form":"str","text":"No.","seq":8,"state":"complete","created_at":1795402924104496},"parts":[],"calls":[]}', NULL, '2026-11-23 03:02:04.123725+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('acme', 'changed', '0', '6', '0', 'revised', '0', '1', 'c0', NULL, 'scrypt-14-8-1:dbc6897a4f57d5d2f70dcef22627f24c386e768dce5e334360f43b2c8fe36c2c', '2026-11-23 03:02:03.861616+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('acme', 'changed', '0', '7', '0', 'revised', '0', '2', 'c1', E'{"message":{"message_id":"c1","role":"assistant","call_count":2,"run_id":"run 9","seq":2,"state":"complete","created_at":1795402923857356},"parts":[],"calls":[[0,"call_0","weather","{\\"city\\": \\"Tokyo\\"}","str",null],[1,"call_1","weather","{\\"city\\": \\"Lima\\"}","str",null]]}', NULL, '2026-11-23 03:02:03.876187+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('default', 'changed', '0', '10', '0', 'popped', '0', '9', 'c6', '{"message":{"message_id":"c6","role":"assistant","content_form":"str","text":"Yes.","seq":9,"state":"complete","created_at":1795402923650825},"parts":[],"calls":[]}', NULL, '2026-11-23 03:02:03.659982+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('default', 'changed', '0', '11', '0', 'retracted', '0', '8', 'c5', '{"message":{"message_id":"c5","role":"user","content_form":"str","text":"No.","seq":8,"state":"complete","created_at":1795402923650825},"parts":[],"calls":[]}', NULL, '2026-11-23 03:02:03.684075+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('default', 'changed', '0', '6', '0', 'revised', '0', '1', 'c0', NULL, 'scrypt-14-8-1:1700d6accbd16a02b1e3e2a148db7c1ce34ec2ccefd5ef20456d6b88e597654b', '2026-11-23 03:02:03.367198+00');
INSERT INTO chatledger.revisions ("tenant_id", "thread_id", "branch", "seq", "idx", "kind", "target_branch", "target_seq", "message_id", "body", "digest", "created_at") VALUES ('default', 'changed', '0', '7', '0', 'revised', '0', '2', 'c1', E'{"message":{"message_id":"c1","role":"assistant","call_count":2,"run_id":"run 9","seq":2,"state":"complete","created_at":1795402923351887},"parts":[],"calls":[[0,"call_0","weather","{\\"city\\": \\"Tokyo\\"}","str",null],[1,"call_1","weather","{\\"city\\": \\"Lima\\"}","str",null]]}', NULL, '2026-11-23 03:02:03.394073+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('acme', 'tenant', '', '', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402924150608', '2026-11-23 03:02:04.150608+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('acme', 'thread', 'changed', '', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402924152843', '2026-11-23 03:02:04.152843+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('acme', 'thread', 'changed', '', 'step', '1', '1795402923857356', '2026-11-23 03:02:03.857356+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('acme', 'user', 'ada', 'settings', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402924151512', '2026-11-23 03:02:04.151512+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('default', 'tenant', '', '', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402923740790', '2026-11-23 03:02:03.74079+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('default', 'thread', 'changed', '', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402923745694', '2026-11-23 03:02:03.745694+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('default', 'thread', 'changed', '', 'step', '1', '1795402923351887', '2026-11-23 03:02:03.351887+00');
INSERT INTO chatledger.kv ("tenant_id", "kind", "scope_id", "namespace", "key", "value", "version", "updated_at") VALUES ('default', 'user', 'ada', 'settings', 'state', E'{"z":[1.0,null],"a":"\\u0000"}', '1795402923741857', '2026-11-23 03:02:03.741857+00');
INSERT INTO chatledger.tenants ("tenant_id", "encrypted_at") VALUES ('sealed', '2026-11-23 03:02:02.895316+00');
INSERT INTO chatledger.erasures ("tenant_id", "erasure_id", "kind", "subject", "rows", "scores", "created_at") VALUES ('acme', '01a2065a-80ab-7c5c-83a7-0814b2484b25', 'thread', '22e9e744-18ab-8939-8fb9-c99caa8cd31b', '{"kv":0,"revisions":0,"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}', '1', '2026-11-23 03:02:04.203175+00');
INSERT INTO chatledger.erasures ("tenant_id", "erasure_id", "kind", "subject", "rows", "scores", "created_at") VALUES ('default', '01a2065a-7f1b-79fc-a0d3-b6ed8dd4dd81', 'thread', '22e9e744-18ab-8939-8fb9-c99caa8cd31b', '{"kv":0,"revisions":0,"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}', '1', '2026-11-23 03:02:03.803992+00');
INSERT INTO chatledger.kept_scores ("tenant_id", "erasure_id", "idx", "key", "score", "agent", "model", "created_at") VALUES ('acme', '01a2065a-80ab-7c5c-83a7-0814b2484b25', '0', 'stars', '2', 'forecaster', 'm-1', '2026-11-23 03:02:04.159072+00');
INSERT INTO chatledger.kept_scores ("tenant_id", "erasure_id", "idx", "key", "score", "agent", "model", "created_at") VALUES ('default', '01a2065a-7f1b-79fc-a0d3-b6ed8dd4dd81', '0', 'stars', '2', 'forecaster', 'm-1', '2026-11-23 03:02:03.755248+00');
