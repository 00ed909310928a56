-- Sent when `drafts.list` asks for the messages that are being written.
BEGIN;

SELECT main.branches.tenant_id, main.branches.thread_id, main.branches.branch, main.branches.lineage,
  main.branches.last_seq, main.branches.stamp, main.branches.last_role, main.branches.open_calls,
  main.branches.partial_seq, main.branches.created_at, main.branches.absent, NULL AS clock,
  main.messages.message_id, main.messages.run_id, main.messages.created_at AS opened_at
FROM main.branches
JOIN main.messages ON main.messages.tenant_id = main.branches.tenant_id
  AND main.messages.thread_id = main.branches.thread_id AND main.messages.branch = main.branches.branch
  AND main.messages.seq = main.branches.partial_seq
WHERE main.branches.tenant_id = ? AND main.branches.partial_seq IS NOT NULL;

COMMIT;
