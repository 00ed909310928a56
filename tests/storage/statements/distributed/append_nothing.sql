-- Sent when an empty batch is appended: it reads the version of the branch.
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

COMMIT;
