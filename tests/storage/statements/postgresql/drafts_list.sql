-- Sent when `drafts.list` asks for the messages that are being written.
SELECT chatledger.branches.tenant_id, chatledger.branches.thread_id, chatledger.branches.branch,
  chatledger.branches.lineage, chatledger.branches.last_seq, chatledger.branches.stamp,
  chatledger.branches.last_role, chatledger.branches.open_calls, chatledger.branches.partial_seq,
  chatledger.branches.created_at, chatledger.branches.absent,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS clock, chatledger.messages.message_id,
  chatledger.messages.run_id, chatledger.messages.created_at AS opened_at
FROM chatledger.branches
JOIN chatledger.messages ON chatledger.messages.tenant_id = chatledger.branches.tenant_id
  AND chatledger.messages.thread_id = chatledger.branches.thread_id
  AND chatledger.messages.branch = chatledger.branches.branch
  AND chatledger.messages.seq = chatledger.branches.partial_seq
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.branches.partial_seq IS NOT NULL;
