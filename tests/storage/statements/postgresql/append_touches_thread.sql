-- Sent when a message is appended more than a second after the last one: the time of the thread's last
-- activity moves too.
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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
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
        $12::text, $13::text, $14::text, $15::text, $16::text, $17::text, $18::int, $19::text, $20::boolean,
        $21::text, $22::text, $23::text, $24::text, $25::text, $26::bigint, $27::text, $28::text,
        $29::timestamptz
      )
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;
