-- Sent when the result of a call is appended that was stored before.
BEGIN;

UPDATE "chatledger".branches
SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
  AND NOT EXISTS (
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
  )
RETURNING 1;

INSERT INTO "chatledger".messages (
  tenant_id, thread_id, branch, content_form, tool_call_id, state, created_at, message_id, role, text, seq
)
SELECT b.tenant_id, b.thread_id, b.branch, $1::text, $2::text, $3::text, $4::timestamptz, u.*
FROM "chatledger".branches AS b, unnest($5::text[], $6::text[], $7::text[], $8::bigint[]) AS u
WHERE b.tenant_id = $9 AND b.thread_id = $10 AND b.branch = $11;

INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
SELECT b.tenant_id, b.thread_id, b.branch, $1::int, u.*
FROM "chatledger".branches AS b, unnest($2::bigint[], $3::bigint[], $4::int[]) AS u
WHERE b.tenant_id = $5 AND b.thread_id = $6 AND b.branch = $7;

COMMIT;
