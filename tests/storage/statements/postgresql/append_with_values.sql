-- Sent when values of the thread that are stored already are written together with a message.
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
    AND (
      SELECT count(*)
      FROM "chatledger".kv
      WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key IN ($10)
    ) = 1
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
        $13::text, $14::text, $15::text, $16::text, $17::text, $18::text, $19::int, $20::text, $21::boolean,
        $22::text, $23::text, $24::text, $25::text, $26::text, $27::bigint, $28::text, $29::text,
        $30::timestamptz
      )
    ) AS u
),
kv0 AS (
  UPDATE "chatledger".kv
  SET value = $11, version = version + 1, updated_at = $12
  WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key = $10
    AND EXISTS (SELECT FROM tip)
  RETURNING 1
)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE count(*) / ((SELECT count(*) FROM kv0) = 1)::int END, 0
FROM tip;
