-- Sent when a draft writes reasoning and the beginning of a call.
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

-- Once for each row:
INSERT INTO message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET channel = excluded.channel,
  kind = excluded.kind, text = excluded.text, body = excluded.body;

-- Once for each row:
INSERT INTO tool_calls (tenant_id, thread_id, branch, seq, idx, name, arguments, arguments_form)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
  name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
  extras = excluded.extras;

COMMIT;
