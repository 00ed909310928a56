SELECT anon_1.feedback_id, anon_1.run_id, anon_1.key, anon_1.score, anon_1.kwargs, anon_1.author, anon_1.source,
  anon_1.created_at, anon_1.call_idx, anon_1.user_id, anon_1.retracted_at, coalesce(anon_1.message_id,
  chatledger.messages.message_id) AS message_id
FROM (SELECT anon_2.tenant_id AS tenant_id, anon_2.feedback_id AS feedback_id, anon_2.run_id AS run_id, anon_2.key
  AS key, anon_2.score AS score, anon_2.kwargs AS kwargs, anon_2.author AS author, anon_2.source AS source,
  anon_2.thread_id AS thread_id, anon_2.branch AS branch, anon_2.seq AS seq, anon_2.idempotency_key AS
  idempotency_key, anon_2.created_at AS created_at, anon_2.message_id AS message_id, anon_2.call_idx AS call_idx,
  anon_2.user_id AS user_id, anon_2.retracted_at AS retracted_at
FROM (SELECT chatledger.feedback.tenant_id AS tenant_id, chatledger.feedback.feedback_id AS feedback_id,
  chatledger.feedback.run_id AS run_id, chatledger.feedback.key AS key, chatledger.feedback.score AS score,
  chatledger.feedback.kwargs AS kwargs, chatledger.feedback.author AS author, chatledger.feedback.source AS source,
  chatledger.feedback.thread_id AS thread_id, chatledger.feedback.branch AS branch, chatledger.feedback.seq AS seq,
  chatledger.feedback.idempotency_key AS idempotency_key, chatledger.feedback.created_at AS created_at,
  chatledger.feedback.message_id AS message_id, chatledger.feedback.call_idx AS call_idx,
  chatledger.feedback.user_id AS user_id, chatledger.feedback.retracted_at AS retracted_at,
  chatledger.feedback.retracted_at AS retracted, row_number() OVER (PARTITION BY chatledger.feedback.run_id,
  chatledger.feedback.branch, chatledger.feedback.seq, chatledger.feedback.call_idx, chatledger.feedback.key,
  chatledger.feedback.user_id
ORDER BY chatledger.feedback.created_at DESC, chatledger.feedback.feedback_id DESC) AS recency
FROM chatledger.feedback
WHERE chatledger.feedback.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.feedback.run_id IN (SELECT
  chatledger.runs.run_id
FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $2::VARCHAR COLLATE "C" AND chatledger.runs.thread_id IN (SELECT
  chatledger.threads.thread_id
FROM chatledger.threads
WHERE chatledger.threads.tenant_id = $3::VARCHAR COLLATE "C" AND chatledger.threads.user_id = $4::VARCHAR COLLATE
  "C"))) AS anon_2
WHERE anon_2.recency = $5::INTEGER AND anon_2.retracted IS NULL) AS anon_1
LEFT OUTER JOIN chatledger.messages ON anon_1.tenant_id = chatledger.messages.tenant_id AND anon_1.thread_id =
  chatledger.messages.thread_id AND anon_1.branch = chatledger.messages.branch AND anon_1.seq =
  chatledger.messages.seq
ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC LIMIT $6::INTEGER
