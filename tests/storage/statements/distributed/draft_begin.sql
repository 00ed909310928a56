-- Sent when a draft begins: it stores a partial message with its lease.
BEGIN;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3,
  open_calls = regexp_replace(
    $4::text, '"lease":[[][0-9]+', '"lease":['
    || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
  ), partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

INSERT INTO "chatledger".messages (
  tenant_id, thread_id, branch, message_id, role, name, content_form, text, reasoning_form, call_count,
  tool_call_id, is_error, run_id, format, residual, response_metadata, custom_data, seq, state, violations,
  created_at
)
VALUES (
  $1::text, $2::text, $3::int, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::int,
  $11::text, $12::boolean, $13::text, $14::text, $15::text, $16::text, $17::text, $18::bigint, $19::text,
  $20::text, $21::timestamptz
);

COMMIT;
