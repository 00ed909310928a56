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

INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('acme', 'empty', NULL, NULL, NULL, NULL, '0', '2026-11-22 06:35:20.710665+00', '2026-11-22 06:35:20.710665+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('acme', 'odd', NULL, NULL, NULL, 'lenient', '0', '2026-11-22 06:35:20.69803+00', '2026-11-22 06:35:20.69803+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('acme', 'open', NULL, NULL, NULL, NULL, '0', '2026-11-22 06:35:20.714959+00', '2026-11-22 06:35:20.714959+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('acme', 'weather', 'user:42/x', 'Wetter in Tōkyō', E'{"b":100.0,"a":[null,"\\u0000"]}', NULL, '1', '2026-11-22 06:35:20.6128+00', '2026-11-22 06:35:20.6128+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('default', 'empty', NULL, NULL, NULL, NULL, '0', '2026-11-22 06:35:20.551835+00', '2026-11-22 06:35:20.551835+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('default', 'odd', NULL, NULL, NULL, 'lenient', '0', '2026-11-22 06:35:20.526786+00', '2026-11-22 06:35:20.526786+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('default', 'open', NULL, NULL, NULL, NULL, '0', '2026-11-22 06:35:20.556151+00', '2026-11-22 06:35:20.556151+00');
INSERT INTO chatledger.threads ("tenant_id", "thread_id", "user_id", "title", "metadata", "rules", "active_branch", "created_at", "active_at") VALUES ('default', 'weather', 'user:42/x', 'Wetter in Tōkyō', E'{"b":100.0,"a":[null,"\\u0000"]}', NULL, '1', '2026-11-22 06:35:20.425938+00', '2026-11-22 06:35:20.425938+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('acme', 'empty', '0', '[[0,1,null]]', '0', '9005122506767336050', NULL, NULL, NULL, '2026-11-22 06:35:20.710665+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('acme', 'odd', '0', '[[0,1,null]]', '2', '1809392112005707387', 'user', NULL, NULL, '2026-11-22 06:35:20.69803+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('acme', 'open', '0', '[[0,1,null]]', '2', '7503023664693607920', 'assistant', '{"calls":[[0,2,0,"call_0","f"]]}', NULL, '2026-11-22 06:35:20.714959+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('acme', 'weather', '0', '[[0,1,null]]', '12', '1672819866729335254', 'assistant', NULL, NULL, '2026-11-22 06:35:20.6128+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('acme', 'weather', '1', '[[0,1,6],[1,7,null]]', '7', '2107192910994224309', 'assistant', '{"partial":{"lease":[1795329320694792,10.0]}}', '7', '2026-11-22 06:35:20.692603+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('default', 'empty', '0', '[[0,1,null]]', '0', '1082675004728253096', NULL, NULL, NULL, '2026-11-22 06:35:20.551835+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('default', 'odd', '0', '[[0,1,null]]', '2', '2096533772505886590', 'user', NULL, NULL, '2026-11-22 06:35:20.526786+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('default', 'open', '0', '[[0,1,null]]', '2', '7667162244003527269', 'assistant', '{"calls":[[0,2,0,"call_0","f"]]}', NULL, '2026-11-22 06:35:20.556151+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('default', 'weather', '0', '[[0,1,null]]', '12', '897725371695657462', 'assistant', NULL, NULL, '2026-11-22 06:35:20.425938+00');
INSERT INTO chatledger.branches ("tenant_id", "thread_id", "branch", "lineage", "last_seq", "stamp", "last_role", "open_calls", "partial_seq", "created_at") VALUES ('default', 'weather', '1', '[[0,1,6],[1,7,null]]', '7', '7232596846093245620', 'assistant', '{"partial":{"lease":[1795329320521838,10.0]}}', '7', '2026-11-22 06:35:20.517677+00');
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('acme', 'run 7', 'weather', 'forecaster', 'm-1', 'failed', '{"q":1}', '12', '3', '15', '{"cached":2}', '0.000000000000000000010', E'out of \\ud800 quota', '{}', '2026-11-22 06:35:20.627745+00', '2026-11-22 06:35:20.648959+00');
INSERT INTO chatledger.runs ("tenant_id", "run_id", "thread_id", "agent", "model", "status", "input", "input_tokens", "output_tokens", "total_tokens", "usage_details", "cost", "error", "metadata", "started_at", "ended_at") VALUES ('default', 'run 7', 'weather', 'forecaster', 'm-1', 'failed', '{"q":1}', '12', '3', '15', '{"cached":2}', '0.000000000000000000010', E'out of \\ud800 quota', '{}', '2026-11-22 06:35:20.447269+00', '2026-11-22 06:35:20.484948+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'odd', '0', '1', 'o1', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'nowhere', NULL, NULL, 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]', '2026-11-22 06:35:20.702939+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'odd', '0', '2', 'o2', 'user', NULL, 'str', '', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.702939+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'open', '0', '1', '820220be-753b-8e97-b1b5-2ebc4c130221', 'user', NULL, 'str', 'f?', NULL, NULL, NULL, NULL, NULL, 'complete', 'openai-chat', NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.719514+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'open', '0', '2', '7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd', 'assistant', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, 'complete', 'openai-chat', '{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}', NULL, NULL, '[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]', '2026-11-22 06:35:20.719514+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '1', 'w0', 'user', NULL, 'str', 'What is the weather in Tokyo and in Lima?', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.639371+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '10', 'r4', 'tool', 'g', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '11', 'r5', 'assistant', NULL, 'parts', NULL, 'parts', NULL, NULL, NULL, NULL, 'complete', NULL, NULL, '{"finish":"stop"}', '{"k":"v"}', NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '12', 'r6', 'assistant', NULL, 'text', 'lone', NULL, NULL, NULL, NULL, NULL, 'interrupted', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '2', 'w1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.639371+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '3', 'w2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.639371+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '4', 'w3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.639371+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '5', 'w4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.639371+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '6', 'r0', 'user', 'ada', 'parts', NULL, NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '7', 'r1', 'assistant', NULL, 'parts', NULL, 'str', '3', NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2024-02-29 23:59:59.123456+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '8', 'r2', 'tool', NULL, 'str', 'no', NULL, NULL, 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'true', NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '0', '9', 'r3', 'tool', 'f', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.641964+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('acme', 'weather', '1', '7', 'w-other', 'assistant', NULL, 'str', 'Or: 21 °C.', NULL, NULL, NULL, NULL, NULL, 'partial', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.694792+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'odd', '0', '1', 'o1', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'nowhere', NULL, NULL, 'complete', NULL, NULL, NULL, NULL, '[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]', '2026-11-22 06:35:20.532483+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'odd', '0', '2', 'o2', 'user', NULL, 'str', '', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.532483+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'open', '0', '1', '820220be-753b-8e97-b1b5-2ebc4c130221', 'user', NULL, 'str', 'f?', NULL, NULL, NULL, NULL, NULL, 'complete', 'openai-chat', NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.560699+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'open', '0', '2', '7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd', 'assistant', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, 'complete', 'openai-chat', '{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}', NULL, NULL, '[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]', '2026-11-22 06:35:20.560699+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '1', 'w0', 'user', NULL, 'str', 'What is the weather in Tokyo and in Lima?', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.454865+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '10', 'r4', 'tool', 'g', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '11', 'r5', 'assistant', NULL, 'parts', NULL, 'parts', NULL, NULL, NULL, NULL, 'complete', NULL, NULL, '{"finish":"stop"}', '{"k":"v"}', NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '12', 'r6', 'assistant', NULL, 'text', 'lone', NULL, NULL, NULL, NULL, NULL, 'interrupted', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '2', 'w1', 'assistant', NULL, NULL, NULL, NULL, '2', NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.454865+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '3', 'w2', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_1', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.454865+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '4', 'w3', 'tool', NULL, 'str', 'sunny', NULL, NULL, 'call_0', NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.454865+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '5', 'w4', 'assistant', NULL, 'str', 'It is sunny in both.', NULL, NULL, NULL, NULL, 'run 7', 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.454865+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '6', 'r0', 'user', 'ada', 'parts', NULL, NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '7', 'r1', 'assistant', NULL, 'parts', NULL, 'str', '3', NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2024-02-29 23:59:59.123456+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '8', 'r2', 'tool', NULL, 'str', 'no', NULL, NULL, 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'true', NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '0', '9', 'r3', 'tool', 'f', 'str', 'sunny', NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.471039+00');
INSERT INTO chatledger.messages ("tenant_id", "thread_id", "branch", "seq", "message_id", "role", "name", "content_form", "text", "reasoning_form", "call_count", "tool_call_id", "is_error", "run_id", "state", "format", "residual", "response_metadata", "custom_data", "violations", "created_at") VALUES ('default', 'weather', '1', '7', 'w-other', 'assistant', NULL, 'str', 'Or: 21 °C.', NULL, NULL, NULL, NULL, NULL, 'partial', NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.521838+00');
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
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'open', '0', '2', '0', 'call_0', 'f', '{', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '2', '0', 'call_0', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '2', '1', 'call_1', 'weather', '{"city": "Lima"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '0', NULL, 'f', '{"z":-0.0}', 'object', '{"x":1}');
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('acme', 'weather', '0', '7', '2', NULL, 'g', NULL, NULL, NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'open', '0', '2', '0', 'call_0', 'f', '{', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '2', '0', 'call_0', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '2', '1', 'call_1', 'weather', '{"city": "Lima"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '0', NULL, 'f', '{"z":-0.0}', 'object', '{"x":1}');
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'weather', '{"city": "Tokyo"}', 'str', NULL);
INSERT INTO chatledger.tool_calls ("tenant_id", "thread_id", "branch", "seq", "idx", "call_id", "name", "arguments", "arguments_form", "extras") VALUES ('default', 'weather', '0', '7', '2', NULL, 'g', NULL, NULL, NULL);
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '10', '0', '7', '2');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '8', '0', '7', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('acme', 'weather', '0', '9', '0', '7', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '10', '0', '7', '2');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '3', '0', '2', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '4', '0', '2', '0');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '8', '0', '7', '1');
INSERT INTO chatledger.tool_results ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx") VALUES ('default', 'weather', '0', '9', '0', '7', '0');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at") VALUES ('acme', '01a201f7-66d9-7843-8377-d0601466db0f', 'run 7', 'thumbs', '-1.5', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.665679+00');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at") VALUES ('acme', '32469f96-d648-80fd-a2c5-2d9ae21cd226', 'run 7', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'weather', '0', '5', 'click-1', '2026-11-22 06:35:20.650824+00');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at") VALUES ('default', '01a201f7-6635-761f-b8f0-0adb480e9126', 'run 7', 'thumbs', '-1.5', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 06:35:20.501577+00');
INSERT INTO chatledger.feedback ("tenant_id", "feedback_id", "run_id", "key", "score", "kwargs", "author", "source", "thread_id", "branch", "seq", "idempotency_key", "created_at") VALUES ('default', '32469f96-d648-80fd-a2c5-2d9ae21cd226', 'run 7', 'stars', '4', '{"why":"fast"}', 'ada', 'ui', 'weather', '0', '5', 'click-1', '2026-11-22 06:35:20.487753+00');
INSERT INTO chatledger.agents ("tenant_id", "thread_id", "name", "idx", "definition", "settings", "is_default") VALUES ('acme', 'odd', 'sky', '0', '{"models":["m-1"]}', '{"temperature":0.5}', 'true');
INSERT INTO chatledger.agents ("tenant_id", "thread_id", "name", "idx", "definition", "settings", "is_default") VALUES ('default', 'odd', 'sky', '0', '{"models":["m-1"]}', '{"temperature":0.5}', 'true');
INSERT INTO chatledger.outputs ("tenant_id", "thread_id", "branch", "seq", "idx", "call_idx", "nonce", "mime_type", "text", "body", "created_at") VALUES ('acme', 'odd', '0', '2', '0', '0', 'n1', 'text/plain', E'\\u0000', '{"lang":"sh"}', '2026-11-22 06:35:20.705174+00');
INSERT INTO chatledger.outputs ("tenant_id", "thread_id", "branch", "seq", "idx", "call_idx", "nonce", "mime_type", "text", "body", "created_at") VALUES ('default', 'odd', '0', '2', '0', '0', 'n1', 'text/plain', E'\\u0000', '{"lang":"sh"}', '2026-11-22 06:35:20.53687+00');
INSERT INTO chatledger.erasures ("tenant_id", "erasure_id", "kind", "subject", "rows", "scores", "created_at") VALUES ('acme', '01a201f7-6727-73e1-b7db-e54a668edf40', 'thread', '22e9e744-18ab-8939-8fb9-c99caa8cd31b', '{"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}', '1', '2026-11-22 06:35:20.743917+00');
INSERT INTO chatledger.erasures ("tenant_id", "erasure_id", "kind", "subject", "rows", "scores", "created_at") VALUES ('default', '01a201f7-669b-7593-9d65-6e62135812a5', 'thread', '22e9e744-18ab-8939-8fb9-c99caa8cd31b', '{"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}', '1', '2026-11-22 06:35:20.603735+00');
INSERT INTO chatledger.kept_scores ("tenant_id", "erasure_id", "idx", "key", "score", "agent", "model", "created_at") VALUES ('acme', '01a201f7-6727-73e1-b7db-e54a668edf40', '0', 'stars', '2', 'forecaster', 'm-1', '2026-11-22 06:35:20.728788+00');
INSERT INTO chatledger.kept_scores ("tenant_id", "erasure_id", "idx", "key", "score", "agent", "model", "created_at") VALUES ('default', '01a201f7-669b-7593-9d65-6e62135812a5', '0', 'stars', '2', 'forecaster', 'm-1', '2026-11-22 06:35:20.569791+00');
