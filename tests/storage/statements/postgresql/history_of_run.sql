-- Sent when `messages.history` reads the messages of a run.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($1::int, t.active_branch)
WHERE t.tenant_id = $2 AND t.thread_id = $3;

SELECT min(seq), max(seq) FROM "chatledger".messages WHERE tenant_id = $1 AND thread_id = $2 AND run_id = $3;

SELECT branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error,
  run_id, format, residual, response_metadata, custom_data, seq, state, violations, created_at
FROM "chatledger".messages
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq;

SELECT branch, seq, idx, channel, kind, text, body
FROM "chatledger".message_parts
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq, idx;

SELECT branch, seq, idx, call_id, name, arguments, arguments_form, extras
FROM "chatledger".tool_calls
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq, idx;

COMMIT;
