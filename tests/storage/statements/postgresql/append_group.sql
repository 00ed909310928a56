-- Sent when messages are appended to several threads at once. The first goes ahead; others wait for it and go
-- together.
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
      )
    ) AS u
)
SELECT count(*), 0
FROM tip;

WITH lock_limit AS MATERIALIZED (
  SELECT set_config('lock_timeout', '50ms', true)
),
given AS (
  SELECT *
  FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) WITH ORDINALITY AS g (
    thread, branch, stamp, new_stamp, last_seq, last_role, open_calls, number
  )
  WHERE true
    AND NOT EXISTS (
      SELECT 1
      FROM "chatledger".tenants
      WHERE tenant_id = $8 AND encrypted_at IS NOT NULL
      UNION ALL
      SELECT 1
      FROM "chatledger".chatledger_version
      WHERE encrypted_at IS NOT NULL
    )
),
free AS MATERIALIZED (
  SELECT g.*, b.ctid AS place
  FROM lock_limit, given g,
    LATERAL (
      SELECT o.ctid
      FROM "chatledger".branches o
      WHERE o.tenant_id = $8 AND o.thread_id = g.thread AND o.branch = g.branch
        AND o.stamp = g.stamp FOR NO KEY UPDATE SKIP LOCKED
    ) AS b
),
tip AS (
  UPDATE "chatledger".branches b
  SET stamp = f.new_stamp, last_seq = f.last_seq, last_role = f.last_role, open_calls = f.open_calls
  FROM free f
  WHERE b.tenant_id = $8 AND b.ctid = f.place
  RETURNING f.number, b.thread_id, b.branch
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, content_form, state, message_id, role, text, seq, created_at
  )
  SELECT $8::text, tip.thread_id, tip.branch, $9::text, $10::text, u.message_id, u.role, u.text, u.seq,
    u.created_at
  FROM tip
  JOIN unnest($11::bigint[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::timestamptz[]) AS u (
    number, message_id, role, text, seq, created_at
  ) USING (number)
)
SELECT number, true
FROM tip
UNION ALL
SELECT g.number, false
FROM given g
WHERE g.number NOT IN (SELECT number FROM tip)
  AND EXISTS (
    SELECT
    FROM "chatledger".branches o
    WHERE o.tenant_id = $8 AND o.thread_id = g.thread AND o.branch = g.branch AND o.stamp = g.stamp
  );
