-- Sent when values of the thread are written together with a message.
WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3, open_calls = $4, partial_seq = $5
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND stamp = $9
    AND NOT EXISTS (
      SELECT 1
      FROM "chatledger".tenants
      WHERE tenant_id = $6 AND encrypted_at IS NOT NULL
      UNION ALL
      SELECT 1
      FROM "chatledger".chatledger_version
      WHERE encrypted_at IS NOT NULL
    )
  RETURNING 1
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, message_id, role, name, content_form, text, reasoning_form, call_count,
    tool_call_id, is_error, run_id, format, residual, response_metadata, custom_data, seq, state, violations,
    created_at
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES (
        $14::text, $15::text, $16::text, $17::text, $18::text, $19::text, $20::int, $21::text, $22::boolean,
        $23::text, $24::text, $25::text, $26::text, $27::text, $28::bigint, $29::text, $30::text,
        $31::timestamptz
      )
    ) AS u
),
kv0 AS (
  INSERT INTO "chatledger".kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
  SELECT $6::text, 'thread', $7::text, '', $10::text, $11::text, $12::bigint, $13::timestamptz
  FROM tip
  ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE SET value = excluded.value,
    version = s.version + 1, updated_at = excluded.updated_at
  RETURNING version
)
SELECT count(*), 0
FROM tip;
