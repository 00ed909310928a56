-- Sent when `threads.list` reads the page behind a cursor.
WITH near AS MATERIALIZED (
  SELECT t.*, 100 + coalesce(octet_length(t.title), 0) + coalesce(octet_length(t.metadata), 0) AS row_bytes
  FROM "chatledger".threads t
  WHERE t.tenant_id = $1::VARCHAR COLLATE "C" AND t.archived_at IS NULL
    AND (t.active_at, t.thread_id) < (
      $2::TIMESTAMP WITH TIME ZONE, $3::VARCHAR COLLATE "C"
    )
  ORDER BY t.active_at DESC, t.thread_id DESC
  LIMIT $4::INTEGER
),
sized AS (
  SELECT t.*,
    sum(row_bytes) OVER (ORDER BY t.active_at DESC, t.thread_id DESC ROWS UNBOUNDED PRECEDING) AS total,
    count(*) OVER () AS rows_found
  FROM near t
),
page AS MATERIALIZED (
  SELECT * FROM sized t WHERE t.total <= 8388608 OR t.total = t.row_bytes
)
SELECT t.thread_id, t.user_id, t.title, t.metadata, t.rules, t.active_branch, t.created_at, t.active_at,
  t.kind, t.archived_at, t.revision, b.lineage, b.last_seq, b.absent, m.branch, m.seq,
  CASE
    substr(m.text, 1, 1)
    WHEN '' THEN substr(m.text, 1, 1201)
    WHEN '' THEN CASE WHEN octet_length(m.text) <= 8192 THEN m.text END
    ELSE substr(m.text, 1, 200)
  END, p.idx,
  CASE
    substr(p.text, 1, 1)
    WHEN '' THEN substr(p.text, 1, 1201)
    WHEN '' THEN CASE WHEN octet_length(p.text) <= 8192 THEN p.text END
    ELSE substr(p.text, 1, 200)
  END , t.row_bytes, t.rows_found
FROM page t
LEFT JOIN LATERAL (
  SELECT *
  FROM "chatledger".branches b
  WHERE b.tenant_id = $1::VARCHAR COLLATE "C" AND b.thread_id = t.thread_id AND b.branch = t.active_branch
  LIMIT 1
) b ON true
LEFT JOIN LATERAL (
  SELECT m.*
  FROM (
    SELECT (e.value->>0)::int AS branch, greatest((e.value->>1)::bigint, b.last_seq - 49) AS low,
      least(coalesce((e.value->>2)::bigint, b.last_seq), b.last_seq) AS high
    FROM json_array_elements(
      CASE
        WHEN b.lineage ~ '^[[][[][0-9]{1,9},[0-9]{1,18},([0-9]{1,18}|null)[]](,[[][0-9]{1,9},[0-9]{1,18},([0-9]{1,18}|null)[]])*[]]$' THEN b.lineage::json
      END
    ) AS e (value)
    WHERE (e.value->>1)::bigint <= b.last_seq
      AND coalesce((e.value->>2)::bigint, b.last_seq) > b.last_seq - 50
  ) s
  CROSS JOIN LATERAL (
    SELECT m.*
    FROM "chatledger".messages m
    WHERE m.tenant_id = $1::VARCHAR COLLATE "C" AND m.thread_id = t.thread_id AND m.branch = s.branch
      AND m.seq BETWEEN s.low AND s.high AND m.role IN ('user', 'assistant')
      AND (
        CASE
          WHEN octet_length(m.text) > 200 THEN true
          ELSE m.text <> '' AND m.text NOT LIKE '%:______________________________________=='
        END
        OR (
          m.content_form = 'parts'
          AND (
            SELECT p.idx
            FROM "chatledger".message_parts p
            WHERE p.tenant_id = $1::VARCHAR COLLATE "C" AND p.thread_id = m.thread_id AND p.branch = m.branch
              AND p.seq = m.seq AND p.channel = 'content' AND p.kind = 'text'
              AND CASE
                WHEN octet_length(p.text) > 200 THEN true
                ELSE p.text <> '' AND p.text NOT LIKE '%:______________________________________=='
              END
            ORDER BY p.idx
            LIMIT 1
          ) IS NOT NULL
        )
      )
    ORDER BY m.seq DESC
    LIMIT 1
  ) m
  ORDER BY m.seq DESC
  LIMIT 1
) m ON true
LEFT JOIN LATERAL (
  SELECT p.idx, p.text
  FROM "chatledger".message_parts p
  WHERE p.tenant_id = $1::VARCHAR COLLATE "C" AND p.thread_id = m.thread_id AND p.branch = m.branch
    AND p.seq = m.seq AND p.channel = 'content' AND p.kind = 'text'
    AND CASE
      WHEN octet_length(p.text) > 200 THEN true
      ELSE p.text <> '' AND p.text NOT LIKE '%:______________________________________=='
    END
  ORDER BY p.idx
  LIMIT 1
) p ON m.content_form = 'parts'
ORDER BY t.active_at DESC, t.thread_id DESC;
