-- Sent when `messages.history` reads as many of the last turns as fit into a number of tokens.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($1::int, t.active_branch)
WHERE t.tenant_id = $2 AND t.thread_id = $3;

SELECT seq, sum(size)
FROM (
  SELECT seq, 400 + coalesce(octet_length(text), 0) + coalesce(octet_length(residual), 0)
    + coalesce(octet_length(response_metadata), 0) + coalesce(octet_length(custom_data), 0)
    + coalesce(octet_length(violations), 0) AS size
  FROM "chatledger".messages
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  UNION ALL
  SELECT seq, 400 + coalesce(octet_length(text), 0) + coalesce(octet_length(body), 0) AS size
  FROM "chatledger".message_parts
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  UNION ALL
  SELECT seq, 400 + coalesce(octet_length(call_id), 0) + coalesce(octet_length(name), 0)
    + coalesce(octet_length(arguments), 0) + coalesce(octet_length(extras), 0) AS size
  FROM "chatledger".tool_calls
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
) AS x
GROUP BY seq;

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

SELECT seq, sum(size)
FROM (
  SELECT seq, 400 + coalesce(octet_length(text), 0) + coalesce(octet_length(residual), 0)
    + coalesce(octet_length(response_metadata), 0) + coalesce(octet_length(custom_data), 0)
    + coalesce(octet_length(violations), 0) AS size
  FROM "chatledger".messages
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  UNION ALL
  SELECT seq, 400 + coalesce(octet_length(text), 0) + coalesce(octet_length(body), 0) AS size
  FROM "chatledger".message_parts
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  UNION ALL
  SELECT seq, 400 + coalesce(octet_length(call_id), 0) + coalesce(octet_length(name), 0)
    + coalesce(octet_length(arguments), 0) + coalesce(octet_length(extras), 0) AS size
  FROM "chatledger".tool_calls
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
) AS x
GROUP BY seq;

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
