-- Sent when an append names an earlier message that it replies to: it begins a new branch there.
SELECT (
  SELECT max(n.branch) FROM "chatledger".branches n WHERE n.tenant_id = $1 AND n.thread_id = $2
), t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL,
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
  AND b.branch = coalesce($3::int, t.active_branch) AND ($4::text IS NULL OR t.user_id = $4::text)
LEFT JOIN "chatledger".branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN LATERAL (
  SELECT one.*
  FROM unnest(CASE WHEN ($4::text IS NULL OR t.user_id = $4::text) THEN $5::text[] END) AS given (id),
    LATERAL (
      SELECT s.message_id, s.branch, s.seq
      FROM "chatledger".messages s
      WHERE s.tenant_id = $1::text AND s.thread_id = $2::text AND s.message_id = given.id
      LIMIT 1
    ) AS one
) AS m ON true
WHERE t.tenant_id = $1::text AND t.thread_id = $2::text;

WITH w AS (
  SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq,
    CASE
      WHEN $1::boolean THEN greatest(
        $2::bigint,
        least(
          $3::bigint,
          CASE WHEN NOT $4::boolean AND b.partial_seq = b.last_seq THEN b.last_seq - 1 ELSE b.last_seq END
        ) - $5::bigint + 1
      )
      ELSE $2::bigint
    END AS first,
    CASE
      WHEN NOT $4::boolean AND b.partial_seq = b.last_seq AND $3::bigint >= b.last_seq
        AND ($1::boolean OR $2::bigint + $5::bigint >= b.last_seq) THEN b.last_seq
      WHEN $1::boolean THEN least(
        $3::bigint,
        CASE WHEN NOT $4::boolean AND b.partial_seq = b.last_seq THEN b.last_seq - 1 ELSE b.last_seq END
      )
      WHEN $6::boolean
        AND least(
          $3::bigint,
          CASE WHEN NOT $4::boolean AND b.partial_seq = b.last_seq THEN b.last_seq - 1 ELSE b.last_seq END
        ) - coalesce(b.absent, 0) >= $2::bigint + $5::bigint THEN $2::bigint - 1
      ELSE least(
        least(
          $3::bigint,
          CASE WHEN NOT $4::boolean AND b.partial_seq = b.last_seq THEN b.last_seq - 1 ELSE b.last_seq END
        ), $2::bigint + $5::bigint - 1
      )
    END AS last
  FROM "chatledger".threads t
  LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
    AND b.branch = coalesce($7::int, t.active_branch)
  WHERE t.tenant_id = $8 AND t.thread_id = $9 AND ($10::text IS NULL OR t.user_id = $10::text)
  LIMIT 1
),
b AS (
  SELECT w.user_id, w.active_branch, w.branch, w.last_seq, w.lineage, w.stamp, w.absent, w.partial_seq,
    coalesce(
      (
        SELECT max(u.seq)
        FROM (
          SELECT (e.value->>0)::int AS branch, greatest((e.value->>1)::bigint, w.first) AS low,
            least(coalesce((e.value->>2)::bigint, w.last), w.last) AS high
          FROM json_array_elements(w.lineage::json) AS e (value)
          WHERE (e.value->>1)::bigint <= w.last AND coalesce((e.value->>2)::bigint, w.last) >= w.first
        ) s
        CROSS JOIN LATERAL (
          SELECT r.seq
          FROM "chatledger".messages r
          WHERE r.tenant_id = $8 AND r.thread_id = $9 AND r.branch = s.branch
            AND r.seq BETWEEN s.low AND s.high AND r.role = 'user' AND r.residual IS NULL
          ORDER BY r.seq DESC
          LIMIT 1
        ) u
      ), w.first
    ) AS first, w.last
  FROM w
) ,
s AS (
  SELECT (e.value->>0)::int AS branch, greatest((e.value->>1)::bigint, b.first) AS low,
    least(coalesce((e.value->>2)::bigint, b.last), b.last) AS high
  FROM b
  CROSS JOIN LATERAL json_array_elements(b.lineage::json) AS e (value)
  WHERE (e.value->>1)::bigint <= b.last AND coalesce((e.value->>2)::bigint, b.last) >= b.first
)
SELECT 0, b.branch, b.user_id, b.lineage, b.stamp::text, b.absent::text, b.partial_seq::text, b.last::text,
  b.active_branch, NULL::text, NULL::boolean, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text,
  b.last_seq, NULL::text, NULL::text, NULL::timestamptz
FROM b
UNION ALL
SELECT 1, m.branch, m.message_id, m.role, m.name, m.content_form, m.text, m.reasoning_form, m.call_count,
  m.tool_call_id, m.is_error, m.run_id, m.format, m.residual, m.response_metadata, m.custom_data, m.seq,
  m.state, m.violations, m.created_at
FROM s
CROSS JOIN LATERAL (
  SELECT *
  FROM "chatledger".messages r
  WHERE r.tenant_id = $8 AND r.thread_id = $9 AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high
  OFFSET 0
) m
UNION ALL
SELECT 2, p.branch, p.channel, p.kind, p.text, p.body, NULL::text, NULL::text, p.idx::int, NULL::text,
  NULL::boolean, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, p.seq, NULL::text, NULL::text,
  NULL::timestamptz
FROM s
CROSS JOIN LATERAL (
  SELECT *
  FROM "chatledger".message_parts r
  WHERE r.tenant_id = $8 AND r.thread_id = $9 AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high
  OFFSET 0
) p
UNION ALL
SELECT 3, c.branch, c.call_id, c.name, c.arguments, c.arguments_form, c.extras, NULL::text, c.idx::int,
  NULL::text, NULL::boolean, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, c.seq, NULL::text,
  NULL::text, NULL::timestamptz
FROM s
CROSS JOIN LATERAL (
  SELECT *
  FROM "chatledger".tool_calls r
  WHERE r.tenant_id = $8 AND r.thread_id = $9 AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high
  OFFSET 0
) c;

WITH source AS (
  SELECT 1
  FROM "chatledger".branches
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND stamp = $4 FOR UPDATE
),
held AS (
  UPDATE "chatledger".branches
  SET stamp = $5
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $6 AND EXISTS (SELECT FROM source)
  RETURNING 1
),
activated AS (
  UPDATE "chatledger".threads
  SET active_branch = $7, active_at = CASE WHEN active_at < $8 THEN $8 ELSE active_at END
  WHERE tenant_id = $1 AND thread_id = $2 AND active_branch = $6 AND EXISTS (SELECT FROM held)
  RETURNING 1
),
tip AS (
  INSERT INTO "chatledger".branches (
    tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, partial_seq, created_at,
    absent
  )
  SELECT $1::text, $2::text, $7::int, $9::text, $10::bigint, $11::bigint, $12::text, $13::text, $14::bigint,
    $8::timestamptz, $15::bigint
  FROM activated
  RETURNING 1
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, message_id, role, name, content_form, text, reasoning_form, call_count,
    tool_call_id, is_error, run_id, format, residual, response_metadata, custom_data, seq, state, violations,
    created_at
  )
  SELECT $1::text, $2::text, $7::int, u.*
  FROM tip,
    (
      VALUES (
        $16::text, $17::text, $18::text, $19::text, $20::text, $21::text, $22::int, $23::text, $24::boolean,
        $25::text, $26::text, $27::text, $28::text, $29::text, $30::bigint, $31::text, $32::text,
        $33::timestamptz
      )
    ) AS u
)
SELECT count(*), 0
FROM tip;
