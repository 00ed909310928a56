-- Sent when an append with `create=True` is the first of its thread.
BEGIN IMMEDIATE;

SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
  EXISTS (
    SELECT 1
    FROM tenants
    WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM chatledger_version
    WHERE encrypted_at IS NOT NULL
  ), b.branch, b.lineage, b.stamp, b.absent, b.last_seq, b.last_role, b.open_calls, b.partial_seq, NULL,
  m.message_id, m.branch, m.seq
FROM threads t
LEFT JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce(:branch, t.active_branch) AND (:user IS NULL OR t.user_id = :user)
LEFT JOIN branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id
  AND m.message_id IN (
    SELECT value FROM json_each(CASE WHEN (:user IS NULL OR t.user_id = :user) THEN :ids END)
  )
WHERE t.tenant_id = :tenant AND t.thread_id = :thread;

INSERT INTO threads (
  tenant_id, thread_id, user_id, title, metadata, rules, kind, created_at, active_at, active_branch
)
VALUES (:tenant, :thread, :user, :title, :metadata, :rules, :kind, :created, :now, 0)
ON CONFLICT DO NOTHING
RETURNING 1;

INSERT INTO branches (
  tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, partial_seq, created_at
)
VALUES (
  :tenant, :thread, :branch, :lineage, :last_seq, :new_stamp, :last_role, :open_calls, :partial_seq, :created
)
RETURNING 1;

SELECT 1
FROM tenants
WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
UNION ALL
SELECT 1
FROM chatledger_version
WHERE encrypted_at IS NOT NULL;

SELECT subject, NULL
FROM erasures
WHERE tenant_id = :tenant AND kind = 'thread' AND subject IN (SELECT value FROM json_each(:subjects))
UNION ALL
SELECT NULL, tombstone_secret
FROM tenants
WHERE tenant_id = :tenant AND tombstone_secret IS NOT NULL;

UPDATE branches
SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role, open_calls = :open_calls,
  partial_seq = :partial_seq
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND stamp = :stamp
  AND NOT EXISTS (
    SELECT 1
    FROM tenants
    WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM chatledger_version
    WHERE encrypted_at IS NOT NULL
  )
RETURNING 1;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

COMMIT;
