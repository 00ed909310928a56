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
  tenant_id, thread_id, branch, content_form, state, created_at, message_id, role, text, reasoning_form, seq
)
VALUES (
  $1::text, $2::text, $3::int, $4::text, $5::text, $6::timestamptz, $7::text, $8::text, $9::text, $10::text,
  $11::bigint
),
  (
    $1::text, $2::text, $3::int, $4::text, $5::text, $6::timestamptz, $12::text, $13::text, $14::text,
    $15::text, $16::bigint
  );

INSERT INTO "chatledger".message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::text, $7::text, $8::text);

COMMIT;
