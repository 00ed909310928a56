-- Sent when a draft takes the place of one that nobody writes any more.
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

DELETE FROM message_parts
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
  AND idx >= :message_parts_count;

DELETE FROM tool_calls
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
  AND idx >= :tool_calls_count;

UPDATE messages
SET state = :state, violations = :violations, name = :name, content_form = :content_form, text = :text,
  reasoning_form = :reasoning_form, call_count = :call_count, is_error = :is_error, format = :format,
  residual = :residual, response_metadata = :response_metadata, custom_data = :custom_data
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq;

COMMIT;
