-- Sent when an append interrupts the message that another draft is writing.
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

SELECT r.run_id
FROM "chatledger".messages m
JOIN "chatledger".runs r ON r.tenant_id = m.tenant_id AND r.run_id = m.run_id
WHERE m.tenant_id = $1 AND m.thread_id = $2 AND m.branch = $3 AND m.seq = $4 AND r.ended_at IS NULL;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

UPDATE "chatledger".threads
SET active_at = $1
WHERE tenant_id = $2 AND thread_id = $3 AND active_at < $4
RETURNING 1;

UPDATE "chatledger".messages
SET state = 'interrupted'
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq = $4;

INSERT INTO "chatledger".messages (
  tenant_id, thread_id, branch, message_id, role, name, content_form, text, reasoning_form, call_count,
  tool_call_id, is_error, run_id, format, residual, response_metadata, custom_data, seq, state, violations,
  created_at
)
VALUES (
  $1::text, $2::text, $3::int, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::int,
  $11::text, $12::boolean, $13::text, $14::text, $15::text, $16::text, $17::text, $18::bigint, $19::text,
  $20::text, $21::timestamptz
);

COMMIT;
