-- Sent when `messages.search` looks for words in all threads.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT sized.thread_id, sized.title, sized.active_at, sized.created_at, sized.active_branch, sized.lineage,
  sized.last_seq, sized.row_bytes, sized.rows_found
FROM (
  SELECT near.thread_id AS thread_id, near.title AS title, near.active_at AS active_at,
    near.created_at AS created_at, near.active_branch AS active_branch, near.lineage AS lineage,
    near.last_seq AS last_seq, coalesce(octet_length(near.lineage), $1::INTEGER)
    + coalesce(octet_length(near.title), $2::INTEGER) + $3::INTEGER AS row_bytes,
    sum(
      coalesce(octet_length(near.lineage), $1::INTEGER) + coalesce(octet_length(near.title), $2::INTEGER)
      + $3::INTEGER
    ) OVER (
      ORDER BY near.active_at DESC, near.thread_id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total, count(*) OVER () AS rows_found
  FROM (
    SELECT chatledger.threads.thread_id AS thread_id, chatledger.threads.title AS title,
      chatledger.threads.active_at AS active_at, chatledger.threads.created_at AS created_at,
      chatledger.threads.active_branch AS active_branch, chatledger.branches.lineage AS lineage,
      chatledger.branches.last_seq AS last_seq
    FROM chatledger.threads
    LEFT OUTER JOIN chatledger.branches ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
      AND chatledger.branches.thread_id = chatledger.threads.thread_id
      AND chatledger.branches.branch = chatledger.threads.active_branch
    WHERE chatledger.threads.tenant_id = $4::VARCHAR COLLATE "C"
    ORDER BY chatledger.threads.active_at DESC, chatledger.threads.thread_id DESC
    LIMIT $5::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $6::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.active_at DESC, sized.thread_id DESC;

SELECT thread_id, branch, seq, message_id, role, text, content_form, call_count, created_at, number, total
FROM (
  SELECT *, sum(bytes) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) AS total
  FROM (
    SELECT r.thread_id, r.branch, r.seq, r.message_id, r.role, r.text, r.content_form, r.call_count,
      r.created_at, g.number - 1 AS number, coalesce(octet_length(r.text), 0) AS bytes
    FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS g (
      thread_id, branch, first, last, number
    )
    CROSS JOIN LATERAL (
      SELECT *
      FROM "chatledger".messages r
      WHERE r.tenant_id = $5 AND r.thread_id = g.thread_id AND r.branch = g.branch
        AND r.seq BETWEEN g.first AND g.last
      OFFSET 0
    ) r
  ) AS found
) AS summed
WHERE total - bytes <= $6::bigint;

SELECT thread_id, branch, seq, idx, name, arguments, number, total
FROM (
  SELECT *, sum(bytes) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) AS total
  FROM (
    SELECT r.thread_id, r.branch, r.seq, r.idx, r.name, r.arguments, g.number - 1 AS number,
      coalesce(octet_length(r.arguments), 0) AS bytes
    FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS g (
      thread_id, branch, first, last, number
    )
    CROSS JOIN LATERAL (
      SELECT *
      FROM "chatledger".tool_calls r
      WHERE r.tenant_id = $5 AND r.thread_id = g.thread_id AND r.branch = g.branch
        AND r.seq BETWEEN g.first AND g.last
      OFFSET 0
    ) r
  ) AS found
) AS summed
WHERE total - bytes <= $6::bigint;

COMMIT;
