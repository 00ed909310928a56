-- Sent when an append is repeated with the same message ids. The first try fails at the unique index of ids,
-- so nothing of it stays. Then the ids are looked for, and the stored messages are read and compared.
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
),
  (
    $1::text, $2::text, $3::int, $22::text, $23::text, $24::text, $25::text, $26::text, $27::text, $28::int,
    $29::text, $30::boolean, $31::text, $32::text, $33::text, $34::text, $35::text, $36::bigint, $37::text,
    $38::text, $39::timestamptz
  ),
  (
    $1::text, $2::text, $3::int, $40::text, $41::text, $42::text, $43::text, $44::text, $45::text, $46::int,
    $47::text, $48::boolean, $49::text, $50::text, $51::text, $52::text, $53::text, $54::bigint, $55::text,
    $56::text, $57::timestamptz
  ),
  (
    $1::text, $2::text, $3::int, $58::text, $59::text, $60::text, $61::text, $62::text, $63::text, $64::int,
    $65::text, $66::boolean, $67::text, $68::text, $69::text, $70::text, $71::text, $72::bigint, $73::text,
    $74::text, $75::timestamptz
  ),
  (
    $1::text, $2::text, $3::int, $76::text, $77::text, $78::text, $79::text, $80::text, $81::text, $82::int,
    $83::text, $84::boolean, $85::text, $86::text, $87::text, $88::text, $89::text, $90::bigint, $91::text,
    $92::text, $93::timestamptz
  );

ROLLBACK;

BEGIN;

SELECT 1 FROM "chatledger".chatledger_version WHERE encrypted_at IS NOT NULL;

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
    SELECT 1 FROM "chatledger".tenants WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
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
