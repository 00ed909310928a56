-- Sent when `branches.list` reads the branches of a thread.
SELECT chatledger.branches.tenant_id, chatledger.branches.thread_id, chatledger.branches.branch,
  chatledger.branches.lineage, chatledger.branches.last_seq, chatledger.branches.stamp,
  chatledger.branches.last_role, chatledger.branches.open_calls, chatledger.branches.partial_seq,
  chatledger.branches.created_at, chatledger.branches.absent, chatledger.threads.active_branch
FROM chatledger.branches
JOIN chatledger.threads ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
  AND chatledger.branches.thread_id = chatledger.threads.thread_id
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C"
ORDER BY chatledger.branches.branch
LIMIT $3::INTEGER
OFFSET $4::INTEGER;
