-- Sent when twenty messages are appended at once.
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
    unnest($12::text[], $13::text[], $14::text[], $15::text[], $16::int[], $17::text[], $18::bigint[]) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, name, arguments_form, seq, idx, call_id, arguments
  )
  SELECT $6::text, $7::text, $8::int, $19::text, $20::text, u.*
  FROM tip,
    (
      VALUES ($21::bigint, $22::int, $23::text, $24::text), ($25::bigint, $26::int, $27::text, $28::text),
        ($29::bigint, $30::int, $31::text, $32::text), ($33::bigint, $34::int, $35::text, $36::text),
        ($37::bigint, $38::int, $39::text, $40::text), ($41::bigint, $42::int, $43::text, $44::text),
        ($45::bigint, $46::int, $47::text, $48::text), ($49::bigint, $50::int, $51::text, $52::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, call_branch, seq, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, $53::int, u.*
  FROM tip,
    (
      VALUES ($54::bigint, $55::bigint, $56::int), ($57::bigint, $58::bigint, $59::int),
        ($60::bigint, $61::bigint, $62::int), ($63::bigint, $64::bigint, $65::int),
        ($66::bigint, $67::bigint, $68::int), ($69::bigint, $70::bigint, $71::int),
        ($72::bigint, $73::bigint, $74::int), ($75::bigint, $76::bigint, $77::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;
