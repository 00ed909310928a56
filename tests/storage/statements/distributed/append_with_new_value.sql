-- Sent when a new value of the thread is written together with a message. It needs two statements in a
-- transaction: another one may just have deleted a value of that key, and the new one takes a higher version.
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
);

INSERT INTO "chatledger".kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE SET value = excluded.value,
  version = s.version + 1, updated_at = excluded.updated_at
RETURNING version;

UPDATE "chatledger".kv
SET version = (
  SELECT t.kv_version FROM "chatledger".tenants t WHERE t.tenant_id = $1
) + 1
WHERE tenant_id = $1 AND kind = $2 AND scope_id = $3 AND namespace = $4 AND key = $5
  AND version <= (
    SELECT t.kv_version FROM "chatledger".tenants t WHERE t.tenant_id = $1
  )
RETURNING version;

COMMIT;
