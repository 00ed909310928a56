-- Sent when a draft writes reasoning and the beginning of a call.
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

UPDATE "chatledger".messages
SET state = $1, violations = $2, name = $3, content_form = $4, text = $5, reasoning_form = $6,
  call_count = $7, is_error = $8, format = $9, residual = $10, response_metadata = $11, custom_data = $12
WHERE tenant_id = $13 AND thread_id = $14 AND branch = $15 AND seq = $16;

INSERT INTO "chatledger".message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text, body)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::text, $7::text, $8::text, $9::text)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET channel = excluded.channel,
  kind = excluded.kind, text = excluded.text, body = excluded.body;

INSERT INTO "chatledger".tool_calls (
  tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::text, $7::text, $8::text, $9::text, $10::text)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
  name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
  extras = excluded.extras;

COMMIT;
