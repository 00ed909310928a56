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
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($19::bigint, $20::int, $21::text, $22::text, $23::text, $24::text, $25::text),
        ($26::bigint, $27::int, $28::text, $29::text, $30::text, $31::text, $32::text),
        ($33::bigint, $34::int, $35::text, $36::text, $37::text, $38::text, $39::text),
        ($40::bigint, $41::int, $42::text, $43::text, $44::text, $45::text, $46::text),
        ($47::bigint, $48::int, $49::text, $50::text, $51::text, $52::text, $53::text),
        ($54::bigint, $55::int, $56::text, $57::text, $58::text, $59::text, $60::text),
        ($61::bigint, $62::int, $63::text, $64::text, $65::text, $66::text, $67::text),
        ($68::bigint, $69::int, $70::text, $71::text, $72::text, $73::text, $74::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($75::bigint, $76::int, $77::bigint, $78::int), ($79::bigint, $80::int, $81::bigint, $82::int),
        ($83::bigint, $84::int, $85::bigint, $86::int), ($87::bigint, $88::int, $89::bigint, $90::int),
        ($91::bigint, $92::int, $93::bigint, $94::int), ($95::bigint, $96::int, $97::bigint, $98::int),
        ($99::bigint, $100::int, $101::bigint, $102::int), ($103::bigint, $104::int, $105::bigint, $106::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;
