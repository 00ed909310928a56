-- Sent when a draft ends: it writes the rest, and its message is complete.
BEGIN IMMEDIATE;

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

COMMIT;
