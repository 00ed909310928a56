-- Sent when a draft writes what it was fed since its last write, here text.
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
)
SELECT count(*)
FROM tip;
