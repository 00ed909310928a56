-- Sent when a new value of the thread is written together with a message. It needs two statements in a
-- transaction: another one may just have deleted a value of that key, and the new one takes a higher version.
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
    AND (
      SELECT count(*)
      FROM "chatledger".kv
      WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key IN ($10)
    ) = 1
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
        $13::text, $14::text, $15::text, $16::text, $17::text, $18::text, $19::int, $20::text, $21::boolean,
        $22::text, $23::text, $24::text, $25::text, $26::text, $27::bigint, $28::text, $29::text,
        $30::timestamptz
      )
    ) AS u
),
kv0 AS (
  UPDATE "chatledger".kv
  SET value = $11, version = version + 1, updated_at = $12
  WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key = $10
    AND EXISTS (SELECT FROM tip)
  RETURNING 1
)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE count(*) / ((SELECT count(*) FROM kv0) = 1)::int END, 0
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

INSERT INTO "chatledger".kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE SET value = excluded.value,
  version = s.version + 1, updated_at = excluded.updated_at
RETURNING version;

UPDATE "chatledger".kv
SET version = (
  SELECT t.kv_version FROM "chatledger".tenants t WHERE t.tenant_id = $1
) + 1
WHERE tenant_id = $1 AND kind = $2 AND scope_id = $3 AND namespace = $4 AND key = $5
  AND version <= (
    SELECT t.kv_version FROM "chatledger".tenants t WHERE t.tenant_id = $1
  )
RETURNING version;

COMMIT;
