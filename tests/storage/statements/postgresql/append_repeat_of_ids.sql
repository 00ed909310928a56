-- Sent when an append is repeated with the same message ids. The first try fails at the unique index of ids,
-- so nothing of it stays. Then the ids are looked for, and the stored messages are read and compared.
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
        $10::text, $11::text, $12::text, $13::text, $14::text, $15::text, $16::int, $17::text, $18::boolean,
        $19::text, $20::text, $21::text, $22::text, $23::text, $24::bigint, $25::text, $26::text,
        $27::timestamptz
      ),
        (
          $28::text, $29::text, $30::text, $31::text, $32::text, $33::text, $34::int, $35::text, $36::boolean,
          $37::text, $38::text, $39::text, $40::text, $41::text, $42::bigint, $43::text, $44::text,
          $45::timestamptz
        ),
        (
          $46::text, $47::text, $48::text, $49::text, $50::text, $51::text, $52::int, $53::text, $54::boolean,
          $55::text, $56::text, $57::text, $58::text, $59::text, $60::bigint, $61::text, $62::text,
          $63::timestamptz
        ),
        (
          $64::text, $65::text, $66::text, $67::text, $68::text, $69::text, $70::int, $71::text, $72::boolean,
          $73::text, $74::text, $75::text, $76::text, $77::text, $78::bigint, $79::text, $80::text,
          $81::timestamptz
        ),
        (
          $82::text, $83::text, $84::text, $85::text, $86::text, $87::text, $88::int, $89::text, $90::boolean,
          $91::text, $92::text, $93::text, $94::text, $95::text, $96::bigint, $97::text, $98::text,
          $99::timestamptz
        )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($100::bigint, $101::int, $102::text, $103::text, $104::text, $105::text, $106::text),
        ($107::bigint, $108::int, $109::text, $110::text, $111::text, $112::text, $113::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($114::bigint, $115::int, $116::bigint, $117::int),
        ($118::bigint, $119::int, $120::bigint, $121::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;

BEGIN;

SELECT 1
FROM "chatledger".branches b
WHERE b.tenant_id = $1 AND b.thread_id = $2
  AND b.branch = coalesce(
    $3::int,
    (
      SELECT t.active_branch FROM "chatledger".threads t WHERE t.tenant_id = $1 AND t.thread_id = $2
    )
  ) FOR UPDATE;

SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
  EXISTS (
    SELECT 1
    FROM "chatledger".tenants
    WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM "chatledger".chatledger_version
    WHERE encrypted_at IS NOT NULL
  ), b.branch, b.lineage, b.stamp, b.absent, b.last_seq, b.last_role, b.open_calls, b.partial_seq,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, m.message_id, m.branch, m.seq
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($2::int, t.active_branch) AND ($3::text IS NULL OR t.user_id = $3::text)
LEFT JOIN "chatledger".branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN LATERAL (
  SELECT one.*
  FROM unnest(CASE WHEN ($3::text IS NULL OR t.user_id = $3::text) THEN $4::text[] END) AS given (id),
    LATERAL (
      SELECT s.message_id, s.branch, s.seq
      FROM "chatledger".messages s
      WHERE s.tenant_id = $1::text AND s.thread_id = $5::text AND s.message_id = given.id
      LIMIT 1
    ) AS one
) AS m ON true
WHERE t.tenant_id = $1::text AND t.thread_id = $5::text;

SELECT branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error,
  run_id, format, residual, response_metadata, custom_data, seq, state, violations, created_at
FROM "chatledger".messages
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq;

SELECT branch, seq, idx, channel, kind, text, body
FROM "chatledger".message_parts
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq, idx;

SELECT branch, seq, idx, call_id, name, arguments, arguments_form, extras
FROM "chatledger".tool_calls
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
ORDER BY seq, idx;

COMMIT;
