-- Sent when a follower waits: one statement asks about all threads that are followed, four times a second.
BEGIN;

SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END, NULL
FROM threads t
LEFT JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread;

COMMIT;

PRAGMA data_version;

SELECT t.tenant_id, t.thread_id, t.active_branch, b.last_seq, b.stamp
FROM (
  SELECT json_extract(value, '$[0]') AS tenant_id, json_extract(value, '$[1]') AS thread_id
  FROM json_each(:followed)
) AS f
JOIN threads t ON t.tenant_id = f.tenant_id AND t.thread_id = f.thread_id
JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch;
