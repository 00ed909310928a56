-- Sent when twenty messages are appended at once.
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
SELECT b.tenant_id, b.thread_id, b.branch, $1::text, $2::timestamptz, u.*
FROM "chatledger".branches AS b,
  unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::bigint[]) AS u
WHERE b.tenant_id = $10 AND b.thread_id = $11 AND b.branch = $12;

INSERT INTO "chatledger".tool_calls (
  tenant_id, thread_id, branch, name, arguments_form, seq, idx, call_id, arguments
)
VALUES ($1::text, $2::text, $3::int, $4::text, $5::text, $6::bigint, $7::int, $8::text, $9::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $10::bigint, $11::int, $12::text, $13::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $14::bigint, $15::int, $16::text, $17::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $18::bigint, $19::int, $20::text, $21::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $22::bigint, $23::int, $24::text, $25::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $26::bigint, $27::int, $28::text, $29::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $30::bigint, $31::int, $32::text, $33::text),
  ($1::text, $2::text, $3::int, $4::text, $5::text, $34::bigint, $35::int, $36::text, $37::text);

INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
VALUES ($1::text, $2::text, $3::int, $4::int, $5::bigint, $6::bigint, $7::int),
  ($1::text, $2::text, $3::int, $4::int, $8::bigint, $9::bigint, $10::int),
  ($1::text, $2::text, $3::int, $4::int, $11::bigint, $12::bigint, $13::int),
  ($1::text, $2::text, $3::int, $4::int, $14::bigint, $15::bigint, $16::int),
  ($1::text, $2::text, $3::int, $4::int, $17::bigint, $18::bigint, $19::int),
  ($1::text, $2::text, $3::int, $4::int, $20::bigint, $21::bigint, $22::int),
  ($1::text, $2::text, $3::int, $4::int, $23::bigint, $24::bigint, $25::int),
  ($1::text, $2::text, $3::int, $4::int, $26::bigint, $27::bigint, $28::int);

COMMIT;
