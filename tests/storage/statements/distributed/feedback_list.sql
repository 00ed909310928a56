-- Sent when `feedback.list` reads the current scores of a thread.
SELECT sized.feedback_id, sized.run_id, sized.key, sized.score, sized.kwargs, sized.author, sized.source,
  sized.created_at, sized.call_idx, sized.user_id, sized.retracted_at, sized.message_id, sized.row_bytes,
  sized.rows_found
FROM (
  SELECT near.feedback_id AS feedback_id, near.run_id AS run_id, near.key AS key, near.score AS score,
    near.kwargs AS kwargs, near.author AS author, near.source AS source, near.created_at AS created_at,
    near.call_idx AS call_idx, near.user_id AS user_id, near.retracted_at AS retracted_at,
    near.message_id AS message_id, coalesce(octet_length(near.source), $1::INTEGER)
    + coalesce(octet_length(near.author), $2::INTEGER) + coalesce(octet_length(near.kwargs), $3::INTEGER)
    + coalesce(octet_length(near.key), $4::INTEGER) + $5::INTEGER AS row_bytes,
    sum(
      coalesce(octet_length(near.source), $1::INTEGER) + coalesce(octet_length(near.author), $2::INTEGER)
      + coalesce(octet_length(near.kwargs), $3::INTEGER) + coalesce(octet_length(near.key), $4::INTEGER)
      + $5::INTEGER
    ) OVER (
      ORDER BY near.created_at DESC, near.feedback_id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total, count(*) OVER () AS rows_found
  FROM (
    SELECT anon_1.feedback_id AS feedback_id, anon_1.run_id AS run_id, anon_1.key AS key,
      anon_1.score AS score, anon_1.kwargs AS kwargs, anon_1.author AS author, anon_1.source AS source,
      anon_1.created_at AS created_at, anon_1.call_idx AS call_idx, anon_1.user_id AS user_id,
      anon_1.retracted_at AS retracted_at,
      coalesce(anon_1.message_id, chatledger.messages.message_id) AS message_id
    FROM (
      SELECT anon_2.tenant_id AS tenant_id, anon_2.feedback_id AS feedback_id, anon_2.run_id AS run_id,
        anon_2.key AS key, anon_2.score AS score, anon_2.kwargs AS kwargs, anon_2.author AS author,
        anon_2.source AS source, anon_2.thread_id AS thread_id, anon_2.branch AS branch, anon_2.seq AS seq,
        anon_2.idempotency_key AS idempotency_key, anon_2.created_at AS created_at,
        anon_2.message_id AS message_id, anon_2.call_idx AS call_idx, anon_2.user_id AS user_id,
        anon_2.retracted_at AS retracted_at
      FROM (
        SELECT chatledger.feedback.tenant_id AS tenant_id, chatledger.feedback.feedback_id AS feedback_id,
          chatledger.feedback.run_id AS run_id, chatledger.feedback.key AS key,
          chatledger.feedback.score AS score, chatledger.feedback.kwargs AS kwargs,
          chatledger.feedback.author AS author, chatledger.feedback.source AS source,
          chatledger.feedback.thread_id AS thread_id, chatledger.feedback.branch AS branch,
          chatledger.feedback.seq AS seq, chatledger.feedback.idempotency_key AS idempotency_key,
          chatledger.feedback.created_at AS created_at, chatledger.feedback.message_id AS message_id,
          chatledger.feedback.call_idx AS call_idx, chatledger.feedback.user_id AS user_id,
          chatledger.feedback.retracted_at AS retracted_at, chatledger.feedback.retracted_at AS retracted,
          row_number() OVER (
            PARTITION BY chatledger.feedback.run_id, chatledger.feedback.branch, chatledger.feedback.seq,
            chatledger.feedback.call_idx, chatledger.feedback.key, chatledger.feedback.user_id
            ORDER BY chatledger.feedback.created_at DESC, chatledger.feedback.feedback_id DESC
          ) AS recency
        FROM chatledger.feedback
        WHERE chatledger.feedback.tenant_id = $6::VARCHAR COLLATE "C"
          AND chatledger.feedback.run_id IN (
            SELECT chatledger.runs.run_id
            FROM chatledger.runs
            WHERE chatledger.runs.tenant_id = $7::VARCHAR COLLATE "C"
              AND chatledger.runs.tenant_id = $8::VARCHAR COLLATE "C"
              AND chatledger.runs.thread_id = $9::VARCHAR COLLATE "C"
          )
      ) AS anon_2
      WHERE anon_2.recency = $10::INTEGER AND anon_2.retracted IS NULL
    ) AS anon_1
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $11::VARCHAR COLLATE "C"
      AND anon_1.thread_id = chatledger.messages.thread_id AND anon_1.branch = chatledger.messages.branch
      AND anon_1.seq = chatledger.messages.seq
    ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
    LIMIT $12::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $13::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;
