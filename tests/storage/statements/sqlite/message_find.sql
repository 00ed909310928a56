-- Sent when `messages.find` looks for a message id in all threads.
BEGIN;

SELECT thread_id, branch, seq
FROM messages
WHERE tenant_id = :tenant AND message_id = :message_id
ORDER BY thread_id
LIMIT 100;

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
