-- Sent when `messages.history` reads as many of the last turns as fit into a number of tokens.
BEGIN;

SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq
FROM threads t
LEFT JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread;

SELECT seq, sum(size)
FROM (
  SELECT seq, 400 + coalesce(length(CAST(text AS BLOB)), 0) + coalesce(length(CAST(residual AS BLOB)), 0)
    + coalesce(length(CAST(response_metadata AS BLOB)), 0) + coalesce(length(CAST(custom_data AS BLOB)), 0)
    + coalesce(length(CAST(violations AS BLOB)), 0) AS size
  FROM messages
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  UNION ALL
  SELECT seq, 400 + coalesce(length(CAST(text AS BLOB)), 0) + coalesce(length(CAST(body AS BLOB)), 0) AS size
  FROM message_parts
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  UNION ALL
  SELECT seq, 400 + coalesce(length(CAST(call_id AS BLOB)), 0) + coalesce(length(CAST(name AS BLOB)), 0)
    + coalesce(length(CAST(arguments AS BLOB)), 0) + coalesce(length(CAST(extras AS BLOB)), 0) AS size
  FROM tool_calls
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
) AS x
GROUP BY seq;

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

SELECT seq, sum(size)
FROM (
  SELECT seq, 400 + coalesce(length(CAST(text AS BLOB)), 0) + coalesce(length(CAST(residual AS BLOB)), 0)
    + coalesce(length(CAST(response_metadata AS BLOB)), 0) + coalesce(length(CAST(custom_data AS BLOB)), 0)
    + coalesce(length(CAST(violations AS BLOB)), 0) AS size
  FROM messages
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  UNION ALL
  SELECT seq, 400 + coalesce(length(CAST(text AS BLOB)), 0) + coalesce(length(CAST(body AS BLOB)), 0) AS size
  FROM message_parts
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  UNION ALL
  SELECT seq, 400 + coalesce(length(CAST(call_id AS BLOB)), 0) + coalesce(length(CAST(name AS BLOB)), 0)
    + coalesce(length(CAST(arguments AS BLOB)), 0) + coalesce(length(CAST(extras AS BLOB)), 0) AS size
  FROM tool_calls
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
) AS x
GROUP BY seq;

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
