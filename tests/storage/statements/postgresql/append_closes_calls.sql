-- Sent when a question comes while a call is open: a result is written for the call before it.
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
    tenant_id, thread_id, branch, content_form, created_at, message_id, role, name, text, tool_call_id,
    is_error, seq, state
  )
  SELECT $6::text, $7::text, $8::int, $10::text, $11::timestamptz, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::text, $15::text, $16::text, $17::boolean, $18::bigint, $19::text),
        ($20::text, $21::text, $22::text, $23::text, $24::text, $25::boolean, $26::bigint, $27::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, $28::int, u.*
  FROM tip,
    (
      VALUES ($29::bigint, $30::bigint, $31::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;
