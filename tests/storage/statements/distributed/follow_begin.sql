-- Sent when `messages.follow` begins at a mark behind which the thread has changed: it reads these changes.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
FROM "chatledger".threads t
LEFT JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
  AND b.branch = coalesce($1::int, t.active_branch)
WHERE t.tenant_id = $2 AND t.thread_id = $3;

WITH b AS (
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

COMMIT;
