-- Sent when `messages.follow(deltas=True)` begins: it looks for the newest run of the branch, and at its
-- status.
BEGIN;

SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END, NULL
FROM threads t
LEFT JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread;

SELECT run_id
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq >= :first AND seq <= :last
  AND run_id IS NOT NULL
ORDER BY seq DESC
LIMIT 1;

SELECT r.tenant_id, r.run_id, CASE WHEN l.paused_at IS NULL THEN r.status ELSE 'paused' END
FROM (
  SELECT json_extract(value, '$[0]') AS tenant_id, json_extract(value, '$[1]') AS run_id
  FROM json_each(:followed)
) AS f
JOIN runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
LEFT JOIN run_leases l ON l.tenant_id = r.tenant_id AND l.thread_id = r.thread_id AND l.run_id = r.run_id;

COMMIT;
