-- Sent when a draft writes reasoning and the beginning of a call.
WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3,
    open_calls = regexp_replace(
      $4::text, '"lease":[[][0-9]+', '"lease":['
      || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ), partial_seq = $5
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
message AS (
  UPDATE "chatledger".messages
  SET state = $10, violations = $11, name = $12, content_form = $13, text = $14, reasoning_form = $15,
    call_count = $16, is_error = $17, format = $18, residual = $19, response_metadata = $20, custom_data = $21
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $22 AND EXISTS (SELECT FROM tip)
),
message_parts AS (
  INSERT INTO "chatledger".message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text, body)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($23::bigint, $24::int, $25::text, $26::text, $27::text, $28::text)
    ) AS u
  ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET channel = excluded.channel,
    kind = excluded.kind, text = excluded.text, body = excluded.body
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($29::bigint, $30::int, $31::text, $32::text, $33::text, $34::text, $35::text)
    ) AS u
  ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
    name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
    extras = excluded.extras
)
SELECT count(*)
FROM tip;
