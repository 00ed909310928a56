-- Sent when `messages.follow(deltas=True)` begins: it looks for the newest run of the branch, and at its
-- status.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($1::int, t.active_branch)
WHERE t.tenant_id = $2 AND t.thread_id = $3;

SELECT run_id
FROM "chatledger".messages
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq >= $4 AND seq <= $5 AND run_id IS NOT NULL
ORDER BY seq DESC
LIMIT 1;

SELECT r.tenant_id, r.run_id, CASE WHEN l.paused_at IS NULL THEN r.status ELSE 'paused' END
FROM unnest((SELECT $1::text[])) AS f (run_id)
JOIN "chatledger".runs r ON r.tenant_id = $2 AND r.run_id = f.run_id
LEFT JOIN "chatledger".run_leases l ON l.tenant_id = r.tenant_id AND l.thread_id = r.thread_id
  AND l.run_id = r.run_id;

COMMIT;
