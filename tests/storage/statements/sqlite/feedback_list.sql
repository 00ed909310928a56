-- Sent when `feedback.list` reads the current scores of a thread.
BEGIN;

SELECT anon_1.feedback_id, anon_1.run_id, anon_1."key", anon_1.score, anon_1.kwargs, anon_1.author,
  anon_1.source, anon_1.created_at, anon_1.call_idx, anon_1.user_id, anon_1.retracted_at,
  coalesce(anon_1.message_id, main.messages.message_id) AS message_id,
  coalesce(length(CAST(anon_1.source AS BLOB)), ?) + coalesce(length(CAST(anon_1.author AS BLOB)), ?)
  + coalesce(length(CAST(anon_1.kwargs AS BLOB)), ?) + coalesce(length(CAST(anon_1."key" AS BLOB)), ?)
  + ? AS row_bytes, ? AS rows_found
FROM (
  SELECT anon_2.tenant_id AS tenant_id, anon_2.feedback_id AS feedback_id, anon_2.run_id AS run_id,
    anon_2."key" AS "key", anon_2.score AS score, anon_2.kwargs AS kwargs, anon_2.author AS author,
    anon_2.source AS source, anon_2.thread_id AS thread_id, anon_2.branch AS branch, anon_2.seq AS seq,
    anon_2.idempotency_key AS idempotency_key, anon_2.created_at AS created_at,
    anon_2.message_id AS message_id, anon_2.call_idx AS call_idx, anon_2.user_id AS user_id,
    anon_2.retracted_at AS retracted_at
  FROM (
    SELECT main.feedback.tenant_id AS tenant_id, main.feedback.feedback_id AS feedback_id,
      main.feedback.run_id AS run_id, main.feedback."key" AS "key", main.feedback.score AS score,
      main.feedback.kwargs AS kwargs, main.feedback.author AS author, main.feedback.source AS source,
      main.feedback.thread_id AS thread_id, main.feedback.branch AS branch, main.feedback.seq AS seq,
      main.feedback.idempotency_key AS idempotency_key, main.feedback.created_at AS created_at,
      main.feedback.message_id AS message_id, main.feedback.call_idx AS call_idx,
      main.feedback.user_id AS user_id, main.feedback.retracted_at AS retracted_at,
      main.feedback.retracted_at AS retracted,
      row_number() OVER (
        PARTITION BY main.feedback.run_id, main.feedback.branch, main.feedback.seq, main.feedback.call_idx,
        main.feedback."key", main.feedback.user_id
        ORDER BY main.feedback.created_at DESC, main.feedback.feedback_id DESC
      ) AS recency
    FROM main.feedback
    WHERE main.feedback.tenant_id = ?
      AND main.feedback.run_id IN (
        SELECT main.runs.run_id
        FROM main.runs
        WHERE main.runs.tenant_id = ? AND main.runs.tenant_id = ? AND main.runs.thread_id = ?
      )
  ) AS anon_2
  WHERE anon_2.recency = ? AND anon_2.retracted IS NULL
) AS anon_1
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ? AND anon_1.thread_id = main.messages.thread_id
  AND anon_1.branch = main.messages.branch AND anon_1.seq = main.messages.seq
ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
LIMIT ?
OFFSET ?;

COMMIT;
