-- Sent when a message with reasoning is appended: its reasoning stands in rows of its own.
BEGIN;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
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
),
  (
    $1::text, $2::text, $3::int, $22::text, $23::text, $24::text, $25::text, $26::text, $27::text, $28::int,
    $29::text, $30::boolean, $31::text, $32::text, $33::text, $34::text, $35::text, $36::bigint, $37::text,
    $38::text, $39::timestamptz
  );

INSERT INTO "chatledger".message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text, body)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::text, $7::text, $8::text, $9::text);

COMMIT;
