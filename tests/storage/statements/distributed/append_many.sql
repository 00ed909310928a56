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
SELECT b.tenant_id, b.thread_id, b.branch, $1::text, $2::text, u.*
FROM "chatledger".branches AS b, unnest($3::bigint[], $4::int[], $5::text[], $6::text[]) AS u
WHERE b.tenant_id = $7 AND b.thread_id = $8 AND b.branch = $9;

INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
SELECT b.tenant_id, b.thread_id, b.branch, $1::int, u.*
FROM "chatledger".branches AS b, unnest($2::bigint[], $3::bigint[], $4::int[]) AS u
WHERE b.tenant_id = $5 AND b.thread_id = $6 AND b.branch = $7;

COMMIT;
