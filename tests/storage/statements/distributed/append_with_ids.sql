-- Sent when an append brings its own message ids. They are not looked for: the unique index of ids refuses a
-- repeat.
BEGIN;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

INSERT INTO "chatledger".messages (
  tenant_id, thread_id, branch, state, created_at, message_id, role, content_form, text, call_count,
  tool_call_id, seq
)
VALUES (
  $1::text, $2::text, $3::int, $4::text, $5::timestamptz, $6::text, $7::text, $8::text, $9::text, $10::int,
  $11::text, $12::bigint
),
  (
    $1::text, $2::text, $3::int, $4::text, $5::timestamptz, $13::text, $14::text, $15::text, $16::text,
    $17::int, $18::text, $19::bigint
  ),
  (
    $1::text, $2::text, $3::int, $4::text, $5::timestamptz, $20::text, $21::text, $22::text, $23::text,
    $24::int, $25::text, $26::bigint
  ),
  (
    $1::text, $2::text, $3::int, $4::text, $5::timestamptz, $27::text, $28::text, $29::text, $30::text,
    $31::int, $32::text, $33::bigint
  ),
  (
    $1::text, $2::text, $3::int, $4::text, $5::timestamptz, $34::text, $35::text, $36::text, $37::text,
    $38::int, $39::text, $40::bigint
  );

INSERT INTO "chatledger".tool_calls (
  tenant_id, thread_id, branch, name, arguments_form, seq, idx, call_id, arguments
)
VALUES ($1::text, $2::text, $3::int, $4::text, $5::text, $6::bigint, $7::int, $8::text, $9::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $10::bigint, $11::int, $12::text, $13::text);

INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
VALUES ($1::text, $2::text, $3::int, $4::int, $5::bigint, $6::bigint, $7::int),
  ($1::text, $2::text, $3::int, $4::int, $8::bigint, $9::bigint, $10::int);

COMMIT;
