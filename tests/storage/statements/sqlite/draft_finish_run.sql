-- Sent when a draft of a run ends with the usage that the provider reported: it is added to that of the run.
BEGIN IMMEDIATE;

SELECT 1
FROM tenants
WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
UNION ALL
SELECT 1
FROM chatledger_version
WHERE encrypted_at IS NOT NULL;

SELECT b.last_seq, b.last_role, b.open_calls, b.partial_seq, b.stamp, t.rules
FROM branches b
JOIN threads t ON t.tenant_id = b.tenant_id AND t.thread_id = b.thread_id
JOIN messages m ON m.tenant_id = b.tenant_id AND m.thread_id = b.thread_id AND m.branch = b.branch
  AND m.seq = b.partial_seq
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch = :branch AND b.partial_seq = :seq
  AND m.message_id = :message_id;

UPDATE branches
SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role, open_calls = :open_calls,
  partial_seq = :partial_seq
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND stamp = :stamp
  AND NOT EXISTS (
    SELECT 1
    FROM tenants
    WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM chatledger_version
    WHERE encrypted_at IS NOT NULL
  )
RETURNING 1;

UPDATE messages
SET state = :state, violations = :violations, name = :name, content_form = :content_form, text = :text,
  reasoning_form = :reasoning_form, call_count = :call_count, is_error = :is_error, format = :format,
  residual = :residual, response_metadata = :response_metadata, custom_data = :custom_data
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq;

UPDATE threads
SET active_at = :now
WHERE tenant_id = :tenant AND thread_id = :thread AND active_at < :stale
RETURNING 1;

SELECT main.runs.input_tokens, main.runs.output_tokens, main.runs.total_tokens, main.runs.usage_details,
  main.runs.cost
FROM main.runs
WHERE main.runs.tenant_id = ? AND main.runs.run_id = ? AND main.runs.status IN (?, ?);

UPDATE main.runs
SET input_tokens=?, output_tokens=?, total_tokens=?, usage_details=?, cost=?
WHERE main.runs.tenant_id = ? AND main.runs.run_id = ?;

COMMIT;
