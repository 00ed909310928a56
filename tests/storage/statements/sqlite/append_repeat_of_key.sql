-- Sent when an append is repeated with the same idempotency key. The first try fails at the unique index of
-- ids, so nothing of it stays. Then the ids made of the key are looked for, and the stored messages are read
-- and compared.
BEGIN IMMEDIATE;

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

ROLLBACK;

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

SELECT branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error,
  run_id, format, residual, response_metadata, custom_data, seq, state, violations, created_at
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
ORDER BY seq;

SELECT branch, seq, idx, channel, kind, text, body
FROM message_parts
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
ORDER BY seq, idx;

SELECT branch, seq, idx, call_id, name, arguments, arguments_form, extras
FROM tool_calls
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
ORDER BY seq, idx;

COMMIT;
