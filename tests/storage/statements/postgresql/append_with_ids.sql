-- Sent when an append brings its own message ids. They are not looked for: the unique index of ids refuses a
-- repeat.
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
    tenant_id, thread_id, branch, state, created_at, message_id, role, content_form, text, call_count,
    tool_call_id, seq
  )
  SELECT $6::text, $7::text, $8::int, $10::text, $11::timestamptz, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::text, $15::text, $16::int, $17::text, $18::bigint),
        ($19::text, $20::text, $21::text, $22::text, $23::int, $24::text, $25::bigint),
        ($26::text, $27::text, $28::text, $29::text, $30::int, $31::text, $32::bigint),
        ($33::text, $34::text, $35::text, $36::text, $37::int, $38::text, $39::bigint),
        ($40::text, $41::text, $42::text, $43::text, $44::int, $45::text, $46::bigint)
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, name, arguments_form, seq, idx, call_id, arguments
  )
  SELECT $6::text, $7::text, $8::int, $47::text, $48::text, u.*
  FROM tip,
    (
      VALUES ($49::bigint, $50::int, $51::text, $52::text), ($53::bigint, $54::int, $55::text, $56::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, $57::int, u.*
  FROM tip,
    (
      VALUES ($58::bigint, $59::bigint, $60::int), ($61::bigint, $62::bigint, $63::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;
