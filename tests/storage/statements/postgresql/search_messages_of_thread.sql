-- Sent when `messages.search` looks for words in a thread of a user.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

SELECT chatledger.threads.thread_id, chatledger.threads.title, chatledger.threads.active_at,
  chatledger.threads.created_at, chatledger.threads.active_branch, chatledger.branches.lineage,
  chatledger.branches.last_seq
FROM chatledger.threads
LEFT OUTER JOIN chatledger.branches ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
  AND chatledger.branches.thread_id = chatledger.threads.thread_id
  AND chatledger.branches.branch = chatledger.threads.active_branch
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.user_id = $2::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $3::VARCHAR COLLATE "C";

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
