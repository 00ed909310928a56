-- Sent when an append with `create=True` is the first of its thread.
WITH made AS (
  INSERT INTO "chatledger".threads (
    tenant_id, thread_id, user_id, title, metadata, rules, kind, created_at, active_at, active_branch
  )
  SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::timestamptz,
    $9::timestamptz, 0
  WHERE NOT EXISTS (
    SELECT 1
    FROM "chatledger".erasures e
    WHERE e.tenant_id = $1 AND e.kind = 'thread'
      AND e.subject IN (
        $10::text,
        (
          SELECT encode(
            sha256(
              decode(substr(k.tombstone_secret, 129), 'hex')
              || sha256(decode(substr(k.tombstone_secret, 1, 128), 'hex') || convert_to($10::text, 'UTF8'))
            ), 'hex'
          )
          FROM "chatledger".tenants k
          WHERE k.tenant_id = $1
        )
      )
  )
    AND NOT EXISTS (
      SELECT 1 FROM "chatledger".threads WHERE tenant_id = $1 AND thread_id = $2
    )
    AND NOT EXISTS (
      SELECT 1
      FROM "chatledger".tenants
      WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
      UNION ALL
      SELECT 1
      FROM "chatledger".chatledger_version
      WHERE encrypted_at IS NOT NULL
    )
  ON CONFLICT DO NOTHING
  RETURNING 1
),
tip AS (
  INSERT INTO "chatledger".branches (
    tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, partial_seq, created_at
  )
  SELECT $1::text, $2::text, $11::int, $12::text, $13::bigint, $14::bigint, $15::text, $16::text, $17::bigint,
    $8::timestamptz
  FROM made
  RETURNING 1
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, message_id, role, name, content_form, text, reasoning_form, call_count,
    tool_call_id, is_error, run_id, format, residual, response_metadata, custom_data, seq, state, violations,
    created_at
  )
  SELECT $1::text, $2::text, $11::int, u.*
  FROM tip,
    (
      VALUES (
        $20::text, $21::text, $22::text, $23::text, $24::text, $25::text, $26::int, $27::text, $28::boolean,
        $29::text, $30::text, $31::text, $32::text, $33::text, $34::bigint, $35::text, $36::text,
        $37::timestamptz
      )
    ) AS u
),
seen AS (
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
    AND b.branch = coalesce($18::int, t.active_branch) AND ($3::text IS NULL OR t.user_id = $3::text)
  LEFT JOIN "chatledger".branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id
    AND f.branch = 1
  LEFT JOIN LATERAL (
    SELECT one.*
    FROM unnest(CASE WHEN ($3::text IS NULL OR t.user_id = $3::text) THEN $19::text[] END) AS given (id),
      LATERAL (
        SELECT s.message_id, s.branch, s.seq
        FROM "chatledger".messages s
        WHERE s.tenant_id = $1::text AND s.thread_id = $2::text AND s.message_id = given.id
        LIMIT 1
      ) AS one
  ) AS m ON true
  WHERE t.tenant_id = $1::text AND t.thread_id = $2::text
)
SELECT (SELECT count(*) FROM tip), seen.*
FROM (SELECT 1) AS one
LEFT JOIN seen ON true;
