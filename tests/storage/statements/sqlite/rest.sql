-- Sent when calls of these kinds have other arguments than those of the other files. Each statement stands
-- here once, in the order in which a run of all calls sends it first.
SELECT min(x.seq), max(x.seq), count(*)
FROM (
  SELECT seq
  FROM messages
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  ORDER BY seq ASC
  LIMIT :count
) AS x;

SELECT min(x.seq), max(x.seq), count(*)
FROM (
  SELECT seq
  FROM messages
  WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  ORDER BY seq DESC
  LIMIT :count
) AS x;

SELECT t.thread_id, t.user_id, t.title, t.metadata, t.rules, t.active_branch, t.created_at, t.active_at,
  t.kind, t.archived_at, t.revision, b.lineage, b.last_seq, b.absent, m.branch, m.seq,
  CASE
    substr(m.text, 1, 1)
    WHEN '' THEN substr(m.text, 1, 1201)
    WHEN '' THEN CASE WHEN length(m.text) <= 8192 THEN m.text END
    ELSE substr(m.text, 1, 200)
  END, p.idx,
  CASE
    substr(p.text, 1, 1)
    WHEN '' THEN substr(p.text, 1, 1201)
    WHEN '' THEN CASE WHEN length(p.text) <= 8192 THEN p.text END
    ELSE substr(p.text, 1, 200)
  END , 100 + coalesce(length(CAST(t.title AS BLOB)), 0) + coalesce(length(CAST(t.metadata AS BLOB)), 0), 0
FROM threads t
LEFT JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
LEFT JOIN messages m
  ON m.rowid = (
    SELECT found
    FROM (
      SELECT (
        SELECT m.rowid
        FROM messages m
        WHERE m.tenant_id = ? AND m.thread_id = t.thread_id
          AND m.branch = json_extract(b.lineage, json_each.fullkey || '[0]')
          AND m.seq BETWEEN max(json_extract(b.lineage, json_each.fullkey || '[1]'), b.last_seq - 49) AND min(
            coalesce(json_extract(b.lineage, json_each.fullkey || '[2]'), b.last_seq), b.last_seq
          ) AND m.role IN ('user', 'assistant')
          AND (
            CASE
              WHEN length(m.text) > 200 THEN true
              ELSE m.text <> '' AND m.text NOT LIKE '%:______________________________________=='
            END
            OR (
              m.content_form = 'parts'
              AND (
                SELECT p.idx
                FROM message_parts p
                WHERE p.tenant_id = ? AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
                  AND p.channel = 'content' AND p.kind = 'text'
                  AND CASE
                    WHEN length(p.text) > 200 THEN true
                    ELSE p.text <> '' AND p.text NOT LIKE '%:______________________________________=='
                  END
                ORDER BY p.idx
                LIMIT 1
              ) IS NOT NULL
            )
          )
        ORDER BY m.seq DESC
        LIMIT 1
      ) AS found
      FROM json_each(CASE WHEN json_valid(b.lineage) THEN b.lineage ELSE '[]' END)
      WHERE json_extract(b.lineage, json_each.fullkey || '[1]') <= b.last_seq
        AND coalesce(json_extract(b.lineage, json_each.fullkey || '[2]'), b.last_seq) > b.last_seq - 50
      ORDER BY json_each.key DESC
      LIMIT 50
    )
    WHERE found IS NOT NULL
    LIMIT 1
  )
LEFT JOIN message_parts p ON m.content_form = 'parts'
  AND p.rowid = (
    SELECT p.rowid
    FROM message_parts p
    WHERE p.tenant_id = ? AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
      AND p.channel = 'content' AND p.kind = 'text'
      AND CASE
        WHEN length(p.text) > 200 THEN true
        ELSE p.text <> '' AND p.text NOT LIKE '%:______________________________________=='
      END
    ORDER BY p.idx
    LIMIT 1
  )
WHERE t.tenant_id = ? AND t.user_id = ? AND t.thread_id = ?;

SELECT main.threads.thread_id, main.threads.title, main.threads.active_at, main.threads.created_at,
  main.threads.active_branch, main.branches.lineage, main.branches.last_seq,
  coalesce(length(CAST(main.branches.lineage AS BLOB)), ?)
  + coalesce(length(CAST(main.threads.title AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.threads
LEFT OUTER JOIN main.branches ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id AND main.branches.branch = main.threads.active_branch
WHERE main.threads.tenant_id = ? AND main.threads.user_id = ?
ORDER BY main.threads.active_at DESC, main.threads.thread_id DESC
LIMIT ?
OFFSET ?;

SELECT count(*) FROM threads t WHERE t.tenant_id = ? AND t.user_id = ? AND typeof(t.archived_at) <> 'integer';

SELECT count(CASE WHEN seq <= :at THEN 1 END), max(CASE WHEN seq <= :at THEN seq END), max(seq)
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last;

SELECT seq, call_branch, call_seq, call_idx
FROM tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, call_count, tool_call_id, run_id, seq,
  state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

SELECT run_id
FROM runs
WHERE tenant_id = :tenant AND thread_id <> :thread AND run_id IN (SELECT value FROM json_each(:runs));

SELECT main.threads.thread_id, main.threads.title, main.threads.active_at, main.threads.created_at,
  main.threads.active_branch, main.branches.lineage, main.branches.last_seq
FROM main.threads
LEFT OUTER JOIN main.branches ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id AND main.branches.branch = main.threads.active_branch
WHERE main.threads.tenant_id = ? AND main.threads.thread_id = ?;

SELECT b.branch, b.last_seq, b.lineage, b.stamp
FROM branches b
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch > :beyond
ORDER BY b.branch
LIMIT :most;

SELECT g.branch, g.low, g.high,
  (
    SELECT min(m.seq)
    FROM messages m
    WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.branch = g.branch
      AND m.seq BETWEEN g.low AND g.high
  )
FROM (
  SELECT json_extract(value, '$[0]') AS branch, json_extract(value, '$[1]') AS low,
    json_extract(value, '$[2]') AS high
  FROM json_each(:segments)
) AS g;

SELECT branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error,
  run_id, format, residual, response_metadata, custom_data, seq, state, violations, created_at
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch IN (SELECT value FROM json_each(:branches))
  AND seq IN (SELECT value FROM json_each(:seqs))
ORDER BY branch, seq;

SELECT branch, seq, idx, channel, kind, text, body
FROM message_parts
WHERE tenant_id = :tenant AND thread_id = :thread AND branch IN (SELECT value FROM json_each(:branches))
  AND seq IN (SELECT value FROM json_each(:seqs))
ORDER BY branch, seq, idx;

SELECT branch, seq, idx, call_id, name, arguments, arguments_form, extras
FROM tool_calls
WHERE tenant_id = :tenant AND thread_id = :thread AND branch IN (SELECT value FROM json_each(:branches))
  AND seq IN (SELECT value FROM json_each(:seqs))
ORDER BY branch, seq, idx;

SELECT max(seq)
FROM messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last;

SELECT main.branches.tenant_id, main.branches.thread_id, main.branches.branch, main.branches.lineage,
  main.branches.last_seq, main.branches.stamp, main.branches.last_role, main.branches.open_calls,
  main.branches.partial_seq, main.branches.created_at, main.branches.absent, main.threads.active_branch
FROM main.branches
JOIN main.threads ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ?
  AND main.branches.branch = main.threads.active_branch;

SELECT main.branches.tenant_id, main.branches.thread_id, main.branches.branch, main.branches.lineage,
  main.branches.last_seq, main.branches.stamp, main.branches.last_role, main.branches.open_calls,
  main.branches.partial_seq, main.branches.created_at, main.branches.absent, main.threads.active_branch
FROM main.branches
JOIN main.threads ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ? AND main.branches.branch = ?;

SELECT main.runs.thread_id FROM main.runs WHERE main.runs.tenant_id = ? AND main.runs.run_id = ?;

SELECT main.branches.branch
FROM main.branches
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ?
ORDER BY main.branches.branch;

SELECT main.runs.run_id
FROM main.runs
WHERE main.runs.tenant_id = ? AND main.runs.thread_id = ?
ORDER BY main.runs.run_id;

SELECT main.messages.seq
FROM main.messages, main.branches
WHERE main.messages.tenant_id = ? AND main.messages.thread_id = ? AND main.messages.run_id = ?
  AND main.branches.tenant_id = ? AND main.branches.thread_id = ?
  AND main.branches.branch = main.messages.branch AND main.branches.partial_seq = main.messages.seq
LIMIT ?
OFFSET ?;

SELECT main.tool_calls.idx
FROM main.tool_calls, main.messages
WHERE main.messages.tenant_id = ? AND main.messages.thread_id = ? AND main.messages.run_id = ?
  AND main.tool_calls.branch = main.messages.branch AND main.tool_calls.seq = main.messages.seq
  AND NOT (
    EXISTS (
      SELECT *
      FROM main.tool_results
      WHERE main.tool_results.call_branch = main.tool_calls.branch
        AND main.tool_results.call_seq = main.tool_calls.seq
        AND main.tool_results.call_idx = main.tool_calls.idx AND main.tool_results.tenant_id = ?
        AND main.tool_results.thread_id = ?
    )
  ) AND main.tool_calls.tenant_id = ? AND main.tool_calls.thread_id = ?
LIMIT ?
OFFSET ?;

UPDATE main.messages
SET run_id=?
WHERE main.messages.tenant_id = ? AND main.messages.thread_id = ? AND main.messages.run_id = ?;

UPDATE main.branches SET stamp=? WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ?;

DELETE FROM main.feedback WHERE main.feedback.tenant_id = ? AND main.feedback.run_id = ?;

DELETE FROM main.run_decisions
WHERE main.run_decisions.tenant_id = ? AND main.run_decisions.thread_id = ? AND main.run_decisions.run_id = ?;

DELETE FROM main.run_leases
WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id = ? AND main.run_leases.run_id = ?;

DELETE FROM main.runs WHERE main.runs.tenant_id = ? AND main.runs.run_id = ?;

SELECT main.runs.tenant_id, main.runs.run_id, main.runs.thread_id, main.runs.agent, main.runs.model,
  main.runs.status, main.runs.input, main.runs.input_tokens, main.runs.output_tokens, main.runs.total_tokens,
  main.runs.usage_details, main.runs.cost, main.runs.error, main.runs.metadata, main.runs.started_at,
  main.runs.ended_at
FROM main.runs
WHERE main.runs.tenant_id = ? AND main.runs.run_id = ?;

SELECT main.runs.tenant_id, main.runs.run_id, main.runs.thread_id, main.runs.agent, main.runs.model,
  main.runs.status, main.runs.input, main.runs.input_tokens, main.runs.output_tokens, main.runs.total_tokens,
  main.runs.usage_details, main.runs.cost, main.runs.error, main.runs.metadata, main.runs.started_at,
  main.runs.ended_at, coalesce(length(CAST(main.runs.metadata AS BLOB)), ?)
  + coalesce(length(CAST(main.runs.error AS BLOB)), ?)
  + coalesce(length(CAST(main.runs.usage_details AS BLOB)), ?)
  + coalesce(length(CAST(main.runs.input AS BLOB)), ?) + coalesce(length(CAST(main.runs.status AS BLOB)), ?)
  + coalesce(length(CAST(main.runs.model AS BLOB)), ?) + coalesce(length(CAST(main.runs.agent AS BLOB)), ?)
  + ? AS row_bytes, ? AS rows_found
FROM main.runs
WHERE main.runs.tenant_id = ? AND main.runs.thread_id = ?
ORDER BY main.runs.run_id
LIMIT ?
OFFSET ?;

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
  ) AS anon_2
  WHERE anon_2.recency = ? AND anon_2.retracted IS NULL
) AS anon_1
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ? AND anon_1.thread_id = main.messages.thread_id
  AND anon_1.branch = main.messages.branch AND anon_1.seq = main.messages.seq
ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
LIMIT ?
OFFSET ?;

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
    WHERE main.feedback.tenant_id = ? AND main.feedback.user_id = ? AND main.feedback.run_id IN (?)
  ) AS anon_2
  WHERE anon_2.recency = ? AND anon_2.retracted IS NULL
) AS anon_1
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ? AND anon_1.thread_id = main.messages.thread_id
  AND anon_1.branch = main.messages.branch AND anon_1.seq = main.messages.seq
ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
LIMIT ?
OFFSET ?;

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
    WHERE main.feedback.tenant_id = ? AND main.feedback."key" = ?
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

SELECT main.feedback.feedback_id, main.feedback.run_id, main.feedback."key", main.feedback.score,
  main.feedback.kwargs, main.feedback.author, main.feedback.source, main.feedback.created_at,
  main.feedback.call_idx, main.feedback.user_id, main.feedback.retracted_at,
  coalesce(main.feedback.message_id, main.messages.message_id) AS message_id,
  coalesce(length(CAST(main.feedback.source AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.author AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.kwargs AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback."key" AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.feedback
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ?
  AND main.feedback.thread_id = main.messages.thread_id AND main.feedback.branch = main.messages.branch
  AND main.feedback.seq = main.messages.seq
WHERE main.feedback.tenant_id = ?
ORDER BY main.feedback.created_at DESC, main.feedback.feedback_id DESC
LIMIT ?
OFFSET ?;

SELECT main.feedback.feedback_id, main.feedback.run_id, main.feedback."key", main.feedback.score,
  main.feedback.kwargs, main.feedback.author, main.feedback.source, main.feedback.created_at,
  main.feedback.call_idx, main.feedback.user_id, main.feedback.retracted_at,
  coalesce(main.feedback.message_id, main.messages.message_id) AS message_id,
  coalesce(length(CAST(main.feedback.source AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.author AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.kwargs AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback."key" AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.feedback
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ?
  AND main.feedback.thread_id = main.messages.thread_id AND main.feedback.branch = main.messages.branch
  AND main.feedback.seq = main.messages.seq
WHERE main.feedback.tenant_id = ? AND main.feedback.run_id IN (?)
ORDER BY main.feedback.created_at DESC, main.feedback.feedback_id DESC
LIMIT ?
OFFSET ?;

SELECT main.feedback.feedback_id, main.feedback.run_id, main.feedback."key", main.feedback.score,
  main.feedback.kwargs, main.feedback.author, main.feedback.source, main.feedback.created_at,
  main.feedback.call_idx, main.feedback.user_id, main.feedback.retracted_at,
  coalesce(main.feedback.message_id, main.messages.message_id) AS message_id,
  coalesce(length(CAST(main.feedback.source AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.author AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback.kwargs AS BLOB)), ?)
  + coalesce(length(CAST(main.feedback."key" AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.feedback
LEFT OUTER JOIN main.messages ON main.messages.tenant_id = ?
  AND main.feedback.thread_id = main.messages.thread_id AND main.feedback.branch = main.messages.branch
  AND main.feedback.seq = main.messages.seq
WHERE main.feedback.tenant_id = ?
  AND main.feedback.run_id IN (
    SELECT main.runs.run_id
    FROM main.runs
    WHERE main.runs.tenant_id = ? AND main.runs.tenant_id = ? AND main.runs.thread_id = ?
  )
ORDER BY main.feedback.created_at DESC, main.feedback.feedback_id DESC
LIMIT ?
OFFSET ?;

-- Once for each row:
INSERT INTO messages (tenant_id, thread_id, branch, message_id, role, run_id, seq, state, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

SELECT main.runs.tenant_id, main.runs.run_id, main.runs.thread_id, main.runs.agent, main.runs.model,
  main.runs.status, main.runs.input, main.runs.input_tokens, main.runs.output_tokens, main.runs.total_tokens,
  main.runs.usage_details, main.runs.cost, main.runs.error, main.runs.metadata, main.runs.started_at,
  main.runs.ended_at, main.runs.question_id, main.runs.branch, main.runs.tools_of, main.runs.call_secret,
  main.runs.attempts, main.threads.user_id, main.run_leases.attempt AS lease_attempt,
  main.run_leases.worker_id AS lease_worker_id, main.run_leases.paused_at AS lease_paused_at
FROM main.runs
JOIN main.threads ON main.threads.tenant_id = main.runs.tenant_id
  AND main.threads.thread_id = main.runs.thread_id
LEFT OUTER JOIN main.run_leases ON main.run_leases.tenant_id = main.runs.tenant_id
  AND main.run_leases.thread_id = main.runs.thread_id AND main.run_leases.run_id = main.runs.run_id
WHERE main.runs.tenant_id = ? AND main.runs.run_id = ? AND main.runs.question_id IS NOT NULL;

SELECT main.runs.tenant_id, main.runs.run_id, main.runs.thread_id, main.runs.agent, main.runs.model,
  main.runs.status, main.runs.input, main.runs.input_tokens, main.runs.output_tokens, main.runs.total_tokens,
  main.runs.usage_details, main.runs.cost, main.runs.error, main.runs.metadata, main.runs.started_at,
  main.runs.ended_at, main.runs.question_id, main.runs.branch, main.runs.tools_of, main.runs.call_secret,
  main.runs.attempts, main.threads.user_id, main.run_leases.attempt AS lease_attempt,
  main.run_leases.worker_id AS lease_worker_id, main.run_leases.paused_at AS lease_paused_at
FROM main.runs
JOIN main.threads ON main.threads.tenant_id = main.runs.tenant_id
  AND main.threads.thread_id = main.runs.thread_id
LEFT OUTER JOIN main.run_leases ON main.run_leases.tenant_id = main.runs.tenant_id
  AND main.run_leases.thread_id = main.runs.thread_id AND main.run_leases.run_id = main.runs.run_id
WHERE main.runs.tenant_id = ? AND main.runs.thread_id = ? AND main.run_leases.attempt IS NOT NULL
  AND main.runs.question_id IS NOT NULL;

SELECT (
  SELECT count(*) AS count_1
  FROM (
    SELECT ? AS anon_2
    FROM main.run_leases
    WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id != ? AND main.run_leases.user_id = ?
    LIMIT ?
    OFFSET ?
  ) AS anon_1
) AS user_answers,
  (
    SELECT count(*) AS count_2
    FROM (
      SELECT ? AS anon_4
      FROM main.run_leases
      WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id != ?
      LIMIT ?
      OFFSET ?
    ) AS anon_3
  ) AS tenant_answers,
  (
    SELECT database_id FROM chatledger_version
  ) AS database_id;

SELECT branch, seq, idx, target_branch, target_seq, message_id, body, digest
FROM revisions
WHERE tenant_id = :tenant AND thread_id = :thread AND message_id IN (SELECT value FROM json_each(:ids))
ORDER BY created_at;

INSERT INTO main.runs (
  tenant_id, run_id, thread_id, agent, model, status, input, error, metadata, started_at, ended_at,
  question_id, branch, call_secret, attempts
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

INSERT INTO main.run_leases (
  tenant_id, thread_id, run_id, agent, attempt, worker_id, user_id, place, database_id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

SELECT (
  SELECT count(*) AS count_1
  FROM (
    SELECT ? AS anon_2
    FROM main.run_leases
    WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id != ? AND main.run_leases.user_id IS NULL
    LIMIT ?
    OFFSET ?
  ) AS anon_1
) AS user_answers,
  (
    SELECT count(*) AS count_2
    FROM (
      SELECT ? AS anon_4
      FROM main.run_leases
      WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id != ?
      LIMIT ?
      OFFSET ?
    ) AS anon_3
  ) AS tenant_answers,
  (
    SELECT database_id FROM chatledger_version
  ) AS database_id;

UPDATE main.branches
SET stamp=?
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ? AND main.branches.branch = ?;

DELETE FROM main.run_leases
WHERE main.run_leases.tenant_id = ? AND main.run_leases.thread_id = ? AND main.run_leases.run_id = ?
  AND main.run_leases.attempt = ? AND main.run_leases.worker_id = ? AND main.run_leases.paused_at IS NULL;

UPDATE main.runs SET status=?, error=?, ended_at=? WHERE main.runs.tenant_id = ? AND main.runs.run_id = ?;

SELECT main.threads.active_branch, main.threads.rules
FROM main.threads
WHERE main.threads.tenant_id = ? AND main.threads.thread_id = ?;

SELECT max(main.branches.branch) AS max_1
FROM main.branches
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ?;

INSERT INTO main.branches (
  tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, created_at, absent
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

UPDATE main.threads SET active_branch=? WHERE main.threads.tenant_id = ? AND main.threads.thread_id = ?;

SELECT main.workers.lease_until FROM main.workers WHERE main.workers.worker_id = ?;

SELECT ? AS anon_1;

SELECT seq, kind, count(*), min(target_branch), min(target_seq), min(message_id)
FROM revisions
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq > :after AND seq <= :last
GROUP BY seq, kind
ORDER BY seq
LIMIT :most;

SELECT main.branches.branch, main.branches.last_seq
FROM main.branches
WHERE main.branches.tenant_id = ? AND main.branches.thread_id = ? AND main.branches.branch IN (?)
ORDER BY main.branches.branch;

SELECT main.kv.kind, main.kv.scope_id, main.kv.namespace, main.kv."key", main.kv.version, main.kv.updated_at,
  main.kv.value AS value
FROM main.kv
WHERE main.kv.tenant_id = ? AND main.kv.kind = ? AND main.kv.scope_id = ? AND main.kv.namespace = ?
  AND main.kv."key" = ?;

SELECT main.kv.kind, main.kv.scope_id, main.kv.namespace, main.kv."key", main.kv.version, main.kv.updated_at,
  main.kv.value AS value, sized.row_bytes, sized.rows_found
FROM main.kv
JOIN (
  SELECT first.kind AS kind, first.scope_id AS scope_id, first.namespace AS namespace, first."key" AS "key",
    first.number AS number, first.row_bytes AS row_bytes,
    sum(first.row_bytes) OVER (
      ORDER BY first.number, first.kind, first.scope_id,
        first.namespace ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total, count(*) OVER (PARTITION BY first.kind, first.scope_id, first.namespace) AS rows_found
  FROM (
    SELECT near.kind AS kind, near.scope_id AS scope_id, near.namespace AS namespace, near."key" AS "key",
      near.number AS number, near.row_bytes AS row_bytes
    FROM (
      SELECT main.kv.kind AS kind, main.kv.scope_id AS scope_id, main.kv.namespace AS namespace,
        main.kv."key" AS "key",
        row_number() OVER (
          PARTITION BY main.kv.kind, main.kv.scope_id, main.kv.namespace ORDER BY main.kv."key"
        ) AS number, coalesce(length(CAST(main.kv.value AS BLOB)), ?) + ? AS row_bytes
      FROM main.kv
      WHERE main.kv.tenant_id = ? AND main.kv.kind = ? AND main.kv.namespace = ?
        AND main.kv.scope_id IN (?, ?)
    ) AS near
    WHERE near.number <= ?
  ) AS first
) AS sized ON main.kv.tenant_id = ? AND main.kv.kind = sized.kind AND main.kv.scope_id = sized.scope_id
  AND main.kv.namespace = sized.namespace AND main.kv."key" = sized."key"
WHERE sized.number <= ? AND (sized.total <= ? OR sized.number = ?)
ORDER BY main.kv."key";

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, call_count, run_id, seq, state,
  created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

UPDATE runs
SET status = 'cancelled', error = :run_error, ended_at = :now
WHERE tenant_id = :tenant AND run_id = :ended_run AND ended_at IS NULL;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, name, content_form, text, tool_call_id, is_error, run_id,
  seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, call_count, seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- Once for each row:
INSERT INTO tool_calls (tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
  name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
  extras = excluded.extras;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, tool_call_id, run_id, seq, state,
  created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, call_count, run_id, format, residual, seq,
  state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- Once for each row:
INSERT INTO message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET channel = excluded.channel,
  kind = excluded.kind, text = excluded.text, body = excluded.body;

ROLLBACK TO job;
