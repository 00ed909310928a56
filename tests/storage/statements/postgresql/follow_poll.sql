-- Sent when a follower waits: one statement asks about all threads that are followed, four times a second.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($1::int, t.active_branch)
WHERE t.tenant_id = $2 AND t.thread_id = $3;

COMMIT;

SELECT t.tenant_id, t.thread_id, t.active_branch, b.last_seq, b.stamp
FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS f (tenant_id, thread_id)
JOIN "chatledger".threads t ON t.tenant_id = f.tenant_id AND t.thread_id = f.thread_id
JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = t.active_branch;
