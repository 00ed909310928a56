-- Sent when a message that was stored as partial is appended again, complete.
SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
  EXISTS (
    SELECT 1
    FROM "chatledger".tenants
    WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM "chatledger".chatledger_version
    WHERE encrypted_at IS NOT NULL
  ), b.branch, b.lineage, b.stamp, b.absent, b.last_seq, b.last_role, b.open_calls, b.partial_seq,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, m.message_id, m.branch, m.seq
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($2::int, t.active_branch) AND ($3::text IS NULL OR t.user_id = $3::text)
LEFT JOIN "chatledger".branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN LATERAL (
  SELECT one.*
  FROM unnest(CASE WHEN ($3::text IS NULL OR t.user_id = $3::text) THEN $4::text[] END) AS given (id),
    LATERAL (
      SELECT s.message_id, s.branch, s.seq
      FROM "chatledger".messages s
      WHERE s.tenant_id = $1::text AND s.thread_id = $5::text AND s.message_id = given.id
      LIMIT 1
    ) AS one
) AS m ON true
WHERE t.tenant_id = $1::text AND t.thread_id = $5::text;

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

WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
    AND NOT EXISTS (
      SELECT 1
      FROM "chatledger".tenants
      WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
      UNION ALL
      SELECT 1
      FROM "chatledger".chatledger_version
      WHERE encrypted_at IS NOT NULL
    )
  RETURNING 1
),
message_parts_gone AS (
  DELETE FROM "chatledger".message_parts
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND idx >= $11
    AND EXISTS (SELECT FROM tip)
),
tool_calls_gone AS (
  DELETE FROM "chatledger".tool_calls
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND idx >= $12
    AND EXISTS (SELECT FROM tip)
),
message AS (
  UPDATE "chatledger".messages
  SET state = $13, violations = $14, name = $15, content_form = $16, text = $17, reasoning_form = $18,
    call_count = $19, is_error = $20, format = $21, residual = $22, response_metadata = $23, custom_data = $24
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND EXISTS (SELECT FROM tip)
),
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $25
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $26 AND EXISTS (SELECT FROM tip)
  RETURNING 1
)
SELECT count(*)
FROM tip;
