-- Sent when a draft takes the place of one that nobody writes any more.
BEGIN;

SELECT 1 FROM "chatledger".chatledger_version WHERE encrypted_at IS NOT NULL;

SELECT 1
FROM "chatledger".branches b
WHERE b.tenant_id = $1 AND b.thread_id = $2
  AND b.branch = coalesce(
    $3::int,
    (
      SELECT t.active_branch FROM "chatledger".threads t WHERE t.tenant_id = $1 AND t.thread_id = $2
    )
  ) FOR UPDATE;

SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
  EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
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

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3,
  open_calls = regexp_replace(
    $4::text, '"lease":[[][0-9]+', '"lease":['
    || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
  ), partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

DELETE FROM "chatledger".message_parts
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq = $4 AND idx >= $5;

DELETE FROM "chatledger".tool_calls
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq = $4 AND idx >= $5;

UPDATE "chatledger".messages
SET state = $1, violations = $2, name = $3, content_form = $4, text = $5, reasoning_form = $6,
  call_count = $7, is_error = $8, format = $9, residual = $10, response_metadata = $11, custom_data = $12
WHERE tenant_id = $13 AND thread_id = $14 AND branch = $15 AND seq = $16;

COMMIT;
