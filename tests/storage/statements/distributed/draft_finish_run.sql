-- Sent when a draft of a run ends with the usage that the provider reported: it is added to that of the run.
BEGIN; SET LOCAL lock_timeout = 10000;

SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $1 AND encrypted_at IS NOT NULL;

SELECT 1 FROM "chatledger".chatledger_version WHERE encrypted_at IS NOT NULL;

SELECT 1 FROM "chatledger".chatledger_version WHERE encrypted_at IS NOT NULL;

SELECT b.last_seq, b.last_role, b.open_calls, b.partial_seq, b.stamp, t.rules
FROM "chatledger".branches b
JOIN "chatledger".threads t ON t.tenant_id = b.tenant_id AND t.thread_id = b.thread_id
JOIN "chatledger".messages m ON m.tenant_id = b.tenant_id AND m.thread_id = b.thread_id
  AND m.branch = b.branch AND m.seq = b.partial_seq
WHERE b.tenant_id = $1 AND b.thread_id = $2 AND b.branch = $3 AND b.partial_seq = $4 AND m.message_id = $5;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

UPDATE "chatledger".messages
SET state = $1, violations = $2, name = $3, content_form = $4, text = $5, reasoning_form = $6,
  call_count = $7, is_error = $8, format = $9, residual = $10, response_metadata = $11, custom_data = $12
WHERE tenant_id = $13 AND thread_id = $14 AND branch = $15 AND seq = $16;

UPDATE "chatledger".threads
SET active_at = $1
WHERE tenant_id = $2 AND thread_id = $3 AND active_at < $4
RETURNING 1;

SELECT chatledger.runs.input_tokens, chatledger.runs.output_tokens, chatledger.runs.total_tokens,
  chatledger.runs.usage_details, chatledger.runs.cost
FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $2::VARCHAR COLLATE "C"
  AND chatledger.runs.status IN ($3::VARCHAR, $4::VARCHAR) FOR UPDATE;

UPDATE chatledger.runs
SET input_tokens=$1::BIGINT, output_tokens=$2::BIGINT, total_tokens=$3::BIGINT, usage_details=$4::VARCHAR,
  cost=$5::NUMERIC
WHERE chatledger.runs.tenant_id = $6::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $7::VARCHAR COLLATE "C";

COMMIT;
