-- Sent when an append names an earlier message that it replies to: it begins a new branch there.
BEGIN IMMEDIATE;

SELECT (
  SELECT max(n.branch) FROM branches n WHERE n.tenant_id = :tenant AND n.thread_id = :thread
), t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
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

SELECT seq
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user' AND (residual IS NULL OR (residual NOT LIKE :continues AND residual NOT LIKE :marked))
ORDER BY seq DESC
LIMIT :count;

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

SELECT 1
FROM branches
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :source AND stamp = :stamp;

UPDATE threads
SET active_branch = :branch, active_at = CASE WHEN active_at < :now THEN :now ELSE active_at END
WHERE tenant_id = :tenant AND thread_id = :thread AND active_branch = :left
RETURNING 1;

UPDATE branches
SET stamp = :left_stamp
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :left
RETURNING 1;

INSERT INTO branches (
  tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, partial_seq, created_at,
  absent
)
VALUES (
  :tenant, :thread, :branch, :lineage, :last_seq, :new_stamp, :last_role, :open_calls, :partial_seq, :now,
  :absent
)
RETURNING 1;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

COMMIT;
