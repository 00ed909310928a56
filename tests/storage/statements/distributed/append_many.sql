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
  tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::text, $7::text, $8::text, $9::text, $10::text),
  ($1::text, $2::text, $3::int, $11::bigint, $12::int, $13::text, $14::text, $15::text, $16::text, $17::text),
  ($1::text, $2::text, $3::int, $18::bigint, $19::int, $20::text, $21::text, $22::text, $23::text, $24::text),
  ($1::text, $2::text, $3::int, $25::bigint, $26::int, $27::text, $28::text, $29::text, $30::text, $31::text),
  ($1::text, $2::text, $3::int, $32::bigint, $33::int, $34::text, $35::text, $36::text, $37::text, $38::text),
  ($1::text, $2::text, $3::int, $39::bigint, $40::int, $41::text, $42::text, $43::text, $44::text, $45::text),
  ($1::text, $2::text, $3::int, $46::bigint, $47::int, $48::text, $49::text, $50::text, $51::text, $52::text),
  ($1::text, $2::text, $3::int, $53::bigint, $54::int, $55::text, $56::text, $57::text, $58::text, $59::text);

INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
VALUES ($1::text, $2::text, $3::int, $4::bigint, $5::int, $6::bigint, $7::int),
  ($1::text, $2::text, $3::int, $8::bigint, $9::int, $10::bigint, $11::int),
  ($1::text, $2::text, $3::int, $12::bigint, $13::int, $14::bigint, $15::int),
  ($1::text, $2::text, $3::int, $16::bigint, $17::int, $18::bigint, $19::int),
  ($1::text, $2::text, $3::int, $20::bigint, $21::int, $22::bigint, $23::int),
  ($1::text, $2::text, $3::int, $24::bigint, $25::int, $26::bigint, $27::int),
  ($1::text, $2::text, $3::int, $28::bigint, $29::int, $30::bigint, $31::int),
  ($1::text, $2::text, $3::int, $32::bigint, $33::int, $34::bigint, $35::int);

COMMIT;
