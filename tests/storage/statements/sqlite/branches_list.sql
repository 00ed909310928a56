-- Sent when `branches.list` reads the branches of a thread.
BEGIN;

SELECT main.branches.tenant_id, main.branches.thread_id, main.branches.branch, main.branches.lineage,
  main.branches.last_seq, main.branches.stamp, main.branches.last_role, main.branches.open_calls,
  main.branches.partial_seq, main.branches.created_at, main.branches.absent, main.threads.active_branch
FROM main.branches
JOIN main.threads ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ?
ORDER BY main.branches.branch
LIMIT ?
OFFSET ?;

COMMIT;
