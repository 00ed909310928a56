-- Sent when an append names a run that this process does not know: the run is created unless it exists.
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
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, status, started_at, run_id)
  SELECT $6::text, $7::text, $10::text, $11::timestamptz, u.*
  FROM tip, (VALUES ($12::text)) AS u
  ON CONFLICT DO NOTHING
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, content_form, run_id, state, created_at, message_id, role, text, seq
  )
  SELECT $6::text, $7::text, $8::int, $13::text, $14::text, $15::text, $16::timestamptz, u.*
  FROM tip,
    (
      VALUES ($17::text, $18::text, $19::text, $20::bigint), ($21::text, $22::text, $23::text, $24::bigint)
    ) AS u
)
SELECT count(*), 0
FROM tip;
