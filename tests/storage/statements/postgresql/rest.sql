-- Sent when calls of these kinds have other arguments than those of the other files. Each statement stands
-- here once, in the order in which a run of all calls sends it first.
WITH near AS MATERIALIZED (
  SELECT t.*, 100 + coalesce(octet_length(t.title), 0) + coalesce(octet_length(t.metadata), 0) AS row_bytes
  FROM "chatledger".threads t
  WHERE t.tenant_id = $1::VARCHAR COLLATE "C" AND t.user_id = $2::VARCHAR COLLATE "C"
    AND t.thread_id = $3::VARCHAR COLLATE "C"
),
sized AS (
  SELECT t.*, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total, count(*) OVER () AS rows_found
  FROM near t
),
page AS MATERIALIZED (SELECT * FROM sized t WHERE true)
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
) p ON m.content_form = 'parts';

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
      AND chatledger.threads.user_id = $5::VARCHAR COLLATE "C"
    ORDER BY chatledger.threads.active_at DESC, chatledger.threads.thread_id DESC
    LIMIT $6::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $7::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.active_at DESC, sized.thread_id DESC;

SELECT count(*)
FROM "chatledger".threads t
WHERE t.tenant_id = $1::VARCHAR COLLATE "C" AND t.user_id = $2::VARCHAR COLLATE "C" AND t.archived_at IS NULL;

SELECT branch, seq, idx, target_branch, target_seq, message_id, body, digest
FROM "chatledger".revisions
WHERE tenant_id = $1 AND thread_id = $2 AND message_id = ANY($3::text[])
ORDER BY created_at;

SELECT count(CASE WHEN seq <= $1 THEN 1 END), max(CASE WHEN seq <= $1 THEN seq END), max(seq)
FROM "chatledger".messages
WHERE tenant_id = $2 AND thread_id = $3 AND branch = $4 AND seq BETWEEN $5 AND $6;

SELECT seq, call_branch, call_seq, call_idx
FROM "chatledger".tool_results
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5;

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
      ),
        (
          $34::text, $35::text, $36::text, $37::text, $38::text, $39::text, $40::int, $41::text, $42::boolean,
          $43::text, $44::text, $45::text, $46::text, $47::text, $48::bigint, $49::text, $50::text,
          $51::timestamptz
        ),
        (
          $52::text, $53::text, $54::text, $55::text, $56::text, $57::text, $58::int, $59::text, $60::boolean,
          $61::text, $62::text, $63::text, $64::text, $65::text, $66::bigint, $67::text, $68::text,
          $69::timestamptz
        ),
        (
          $70::text, $71::text, $72::text, $73::text, $74::text, $75::text, $76::int, $77::text, $78::boolean,
          $79::text, $80::text, $81::text, $82::text, $83::text, $84::bigint, $85::text, $86::text,
          $87::timestamptz
        ),
        (
          $88::text, $89::text, $90::text, $91::text, $92::text, $93::text, $94::int, $95::text, $96::boolean,
          $97::text, $98::text, $99::text, $100::text, $101::text, $102::bigint, $103::text, $104::text,
          $105::timestamptz
        )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $1::text, $2::text, $7::int, u.*
  FROM tip,
    (
      VALUES ($106::bigint, $107::int, $108::text, $109::text, $110::text, $111::text, $112::text),
        ($113::bigint, $114::int, $115::text, $116::text, $117::text, $118::text, $119::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $1::text, $2::text, $7::int, u.*
  FROM tip,
    (
      VALUES ($120::bigint, $121::int, $122::bigint, $123::int),
        ($124::bigint, $125::int, $126::bigint, $127::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;

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
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($10::text, $11::text, $12::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $13::text, $14::text, $15::text, $16::text, $17::text, $18::text, $19::int, $20::text, $21::boolean,
        $22::text, $23::text, $24::text, $25::text, $26::text, $27::bigint, $28::text, $29::text,
        $30::timestamptz
      ),
        (
          $31::text, $32::text, $33::text, $34::text, $35::text, $36::text, $37::int, $38::text, $39::boolean,
          $40::text, $41::text, $42::text, $43::text, $44::text, $45::bigint, $46::text, $47::text,
          $48::timestamptz
        ),
        (
          $49::text, $50::text, $51::text, $52::text, $53::text, $54::text, $55::int, $56::text, $57::boolean,
          $58::text, $59::text, $60::text, $61::text, $62::text, $63::bigint, $64::text, $65::text,
          $66::timestamptz
        ),
        (
          $67::text, $68::text, $69::text, $70::text, $71::text, $72::text, $73::int, $74::text, $75::boolean,
          $76::text, $77::text, $78::text, $79::text, $80::text, $81::bigint, $82::text, $83::text,
          $84::timestamptz
        ),
        (
          $85::text, $86::text, $87::text, $88::text, $89::text, $90::text, $91::int, $92::text, $93::boolean,
          $94::text, $95::text, $96::text, $97::text, $98::text, $99::bigint, $100::text, $101::text,
          $102::timestamptz
        )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($103::bigint, $104::int, $105::text, $106::text, $107::text, $108::text, $109::text),
        ($110::bigint, $111::int, $112::text, $113::text, $114::text, $115::text, $116::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($117::bigint, $118::int, $119::bigint, $120::int),
        ($121::bigint, $122::int, $123::bigint, $124::int)
    ) AS u
)
SELECT count(*), 0
FROM tip;

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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $15::text, $16::text, $17::text, $18::text, $19::text, $20::text, $21::int, $22::text, $23::boolean,
        $24::text, $25::text, $26::text, $27::text, $28::text, $29::bigint, $30::text, $31::text,
        $32::timestamptz
      ),
        (
          $33::text, $34::text, $35::text, $36::text, $37::text, $38::text, $39::int, $40::text, $41::boolean,
          $42::text, $43::text, $44::text, $45::text, $46::text, $47::bigint, $48::text, $49::text,
          $50::timestamptz
        ),
        (
          $51::text, $52::text, $53::text, $54::text, $55::text, $56::text, $57::int, $58::text, $59::boolean,
          $60::text, $61::text, $62::text, $63::text, $64::text, $65::bigint, $66::text, $67::text,
          $68::timestamptz
        ),
        (
          $69::text, $70::text, $71::text, $72::text, $73::text, $74::text, $75::int, $76::text, $77::boolean,
          $78::text, $79::text, $80::text, $81::text, $82::text, $83::bigint, $84::text, $85::text,
          $86::timestamptz
        ),
        (
          $87::text, $88::text, $89::text, $90::text, $91::text, $92::text, $93::int, $94::text, $95::boolean,
          $96::text, $97::text, $98::text, $99::text, $100::text, $101::bigint, $102::text, $103::text,
          $104::timestamptz
        )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($105::bigint, $106::int, $107::text, $108::text, $109::text, $110::text, $111::text),
        ($112::bigint, $113::int, $114::text, $115::text, $116::text, $117::text, $118::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($119::bigint, $120::int, $121::bigint, $122::int),
        ($123::bigint, $124::int, $125::bigint, $126::int)
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

ROLLBACK;

SELECT chatledger.threads.thread_id, chatledger.threads.title, chatledger.threads.active_at,
  chatledger.threads.created_at, chatledger.threads.active_branch, chatledger.branches.lineage,
  chatledger.branches.last_seq
FROM chatledger.threads
LEFT OUTER JOIN chatledger.branches ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
  AND chatledger.branches.thread_id = chatledger.threads.thread_id
  AND chatledger.branches.branch = chatledger.threads.active_branch
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $2::VARCHAR COLLATE "C";

SELECT b.branch, b.last_seq, b.lineage, b.stamp
FROM "chatledger".branches b
WHERE b.tenant_id = $1 AND b.thread_id = $2 AND b.branch > $3
ORDER BY b.branch
LIMIT $4;

SELECT g.branch, g.low, g.high,
  (
    SELECT min(m.seq)
    FROM "chatledger".messages m
    WHERE m.tenant_id = $1 AND m.thread_id = $2 AND m.branch = g.branch AND m.seq BETWEEN g.low AND g.high
  )
FROM unnest($3::int[], $4::bigint[], $5::bigint[]) AS g (branch, low, high);

SELECT branch, message_id, role, name, content_form, text, reasoning_form, call_count, tool_call_id, is_error,
  run_id, format, residual, response_metadata, custom_data, seq, state, violations, created_at
FROM "chatledger".messages
WHERE tenant_id = $1 AND thread_id = $2 AND branch = ANY($3::int[]) AND seq = ANY($4::bigint[])
ORDER BY branch, seq;

SELECT branch, seq, idx, channel, kind, text, body
FROM "chatledger".message_parts
WHERE tenant_id = $1 AND thread_id = $2 AND branch = ANY($3::int[]) AND seq = ANY($4::bigint[])
ORDER BY branch, seq, idx;

SELECT branch, seq, idx, call_id, name, arguments, arguments_form, extras
FROM "chatledger".tool_calls
WHERE tenant_id = $1 AND thread_id = $2 AND branch = ANY($3::int[]) AND seq = ANY($4::bigint[])
ORDER BY branch, seq, idx;

SELECT max(seq)
FROM "chatledger".messages
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5;

SELECT chatledger.branches.tenant_id, chatledger.branches.thread_id, chatledger.branches.branch,
  chatledger.branches.lineage, chatledger.branches.last_seq, chatledger.branches.stamp,
  chatledger.branches.last_role, chatledger.branches.open_calls, chatledger.branches.partial_seq,
  chatledger.branches.created_at, chatledger.branches.absent, chatledger.threads.active_branch
FROM chatledger.branches
JOIN chatledger.threads ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
  AND chatledger.branches.thread_id = chatledger.threads.thread_id
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.branches.branch = chatledger.threads.active_branch;

SELECT chatledger.branches.tenant_id, chatledger.branches.thread_id, chatledger.branches.branch,
  chatledger.branches.lineage, chatledger.branches.last_seq, chatledger.branches.stamp,
  chatledger.branches.last_role, chatledger.branches.open_calls, chatledger.branches.partial_seq,
  chatledger.branches.created_at, chatledger.branches.absent, chatledger.threads.active_branch
FROM chatledger.branches
JOIN chatledger.threads ON chatledger.branches.tenant_id = chatledger.threads.tenant_id
  AND chatledger.branches.thread_id = chatledger.threads.thread_id
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C" AND chatledger.branches.branch = $3::INTEGER;

SELECT chatledger.runs.thread_id
FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $2::VARCHAR COLLATE "C";

SELECT chatledger.branches.branch
FROM chatledger.branches
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C"
ORDER BY chatledger.branches.branch FOR UPDATE;

SELECT chatledger.threads.thread_id
FROM chatledger.threads
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $2::VARCHAR COLLATE "C" FOR UPDATE;

SELECT chatledger.runs.run_id
FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.runs.thread_id = $2::VARCHAR COLLATE "C"
ORDER BY chatledger.runs.run_id FOR UPDATE;

SELECT chatledger.messages.seq
FROM chatledger.messages, chatledger.branches
WHERE chatledger.messages.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.messages.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.messages.run_id = $3::VARCHAR COLLATE "C"
  AND chatledger.branches.tenant_id = $4::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $5::VARCHAR COLLATE "C"
  AND chatledger.branches.branch = chatledger.messages.branch
  AND chatledger.branches.partial_seq = chatledger.messages.seq
LIMIT $6::INTEGER;

SELECT chatledger.tool_calls.idx
FROM chatledger.tool_calls, chatledger.messages
WHERE chatledger.messages.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.messages.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.messages.run_id = $3::VARCHAR COLLATE "C"
  AND chatledger.tool_calls.branch = chatledger.messages.branch
  AND chatledger.tool_calls.seq = chatledger.messages.seq
  AND NOT (
    EXISTS (
      SELECT *
      FROM chatledger.tool_results
      WHERE chatledger.tool_results.call_branch = chatledger.tool_calls.branch
        AND chatledger.tool_results.call_seq = chatledger.tool_calls.seq
        AND chatledger.tool_results.call_idx = chatledger.tool_calls.idx
        AND chatledger.tool_results.tenant_id = $4::VARCHAR COLLATE "C"
        AND chatledger.tool_results.thread_id = $5::VARCHAR COLLATE "C"
    )
  ) AND chatledger.tool_calls.tenant_id = $6::VARCHAR COLLATE "C"
  AND chatledger.tool_calls.thread_id = $7::VARCHAR COLLATE "C"
LIMIT $8::INTEGER;

UPDATE chatledger.messages
SET run_id=$1::VARCHAR COLLATE "C"
WHERE chatledger.messages.tenant_id = $2::VARCHAR COLLATE "C"
  AND chatledger.messages.thread_id = $3::VARCHAR COLLATE "C"
  AND chatledger.messages.run_id = $4::VARCHAR COLLATE "C";

UPDATE chatledger.branches
SET stamp=$1::BIGINT
WHERE chatledger.branches.tenant_id = $2::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $3::VARCHAR COLLATE "C";

DELETE FROM chatledger.feedback
WHERE chatledger.feedback.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.feedback.run_id = $2::VARCHAR COLLATE "C";

DELETE FROM chatledger.run_decisions
WHERE chatledger.run_decisions.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.run_decisions.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.run_decisions.run_id = $3::VARCHAR COLLATE "C";

DELETE FROM chatledger.run_leases
WHERE chatledger.run_leases.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.run_leases.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.run_leases.run_id = $3::VARCHAR COLLATE "C";

DELETE FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $2::VARCHAR COLLATE "C";

SELECT chatledger.runs.tenant_id, chatledger.runs.run_id, chatledger.runs.thread_id, chatledger.runs.agent,
  chatledger.runs.model, chatledger.runs.status, chatledger.runs.input, chatledger.runs.input_tokens,
  chatledger.runs.output_tokens, chatledger.runs.total_tokens, chatledger.runs.usage_details,
  chatledger.runs.cost, chatledger.runs.error, chatledger.runs.metadata, chatledger.runs.started_at,
  chatledger.runs.ended_at
FROM chatledger.runs
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $2::VARCHAR COLLATE "C";

SELECT sized.tenant_id, sized.run_id, sized.thread_id, sized.agent, sized.model, sized.status, sized.input,
  sized.input_tokens, sized.output_tokens, sized.total_tokens, sized.usage_details, sized.cost, sized.error,
  sized.metadata, sized.started_at, sized.ended_at, sized.row_bytes, sized.rows_found
FROM (
  SELECT near.tenant_id AS tenant_id, near.run_id AS run_id, near.thread_id AS thread_id, near.agent AS agent,
    near.model AS model, near.status AS status, near.input AS input, near.input_tokens AS input_tokens,
    near.output_tokens AS output_tokens, near.total_tokens AS total_tokens,
    near.usage_details AS usage_details, near.cost AS cost, near.error AS error, near.metadata AS metadata,
    near.started_at AS started_at, near.ended_at AS ended_at,
    coalesce(octet_length(near.metadata), $1::INTEGER) + coalesce(octet_length(near.error), $2::INTEGER)
    + coalesce(octet_length(near.usage_details), $3::INTEGER)
    + coalesce(octet_length(near.input), $4::INTEGER) + coalesce(octet_length(near.status), $5::INTEGER)
    + coalesce(octet_length(near.model), $6::INTEGER) + coalesce(octet_length(near.agent), $7::INTEGER)
    + $8::INTEGER AS row_bytes,
    sum(
      coalesce(octet_length(near.metadata), $1::INTEGER) + coalesce(octet_length(near.error), $2::INTEGER)
      + coalesce(octet_length(near.usage_details), $3::INTEGER)
      + coalesce(octet_length(near.input), $4::INTEGER) + coalesce(octet_length(near.status), $5::INTEGER)
      + coalesce(octet_length(near.model), $6::INTEGER) + coalesce(octet_length(near.agent), $7::INTEGER)
      + $8::INTEGER
    ) OVER (ORDER BY near.run_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total,
    count(*) OVER () AS rows_found
  FROM (
    SELECT chatledger.runs.tenant_id AS tenant_id, chatledger.runs.run_id AS run_id,
      chatledger.runs.thread_id AS thread_id, chatledger.runs.agent AS agent, chatledger.runs.model AS model,
      chatledger.runs.status AS status, chatledger.runs.input AS input,
      chatledger.runs.input_tokens AS input_tokens, chatledger.runs.output_tokens AS output_tokens,
      chatledger.runs.total_tokens AS total_tokens, chatledger.runs.usage_details AS usage_details,
      chatledger.runs.cost AS cost, chatledger.runs.error AS error, chatledger.runs.metadata AS metadata,
      chatledger.runs.started_at AS started_at, chatledger.runs.ended_at AS ended_at
    FROM chatledger.runs
    WHERE chatledger.runs.tenant_id = $9::VARCHAR COLLATE "C"
      AND chatledger.runs.thread_id = $10::VARCHAR COLLATE "C"
    ORDER BY chatledger.runs.run_id
    LIMIT $11::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $12::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.run_id;

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
      ) AS anon_2
      WHERE anon_2.recency = $7::INTEGER AND anon_2.retracted IS NULL
    ) AS anon_1
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $8::VARCHAR COLLATE "C"
      AND anon_1.thread_id = chatledger.messages.thread_id AND anon_1.branch = chatledger.messages.branch
      AND anon_1.seq = chatledger.messages.seq
    ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
    LIMIT $9::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $10::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

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
          AND chatledger.feedback.user_id = $7::VARCHAR COLLATE "C"
          AND chatledger.feedback.run_id IN ($12::VARCHAR COLLATE "C")
      ) AS anon_2
      WHERE anon_2.recency = $8::INTEGER AND anon_2.retracted IS NULL
    ) AS anon_1
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $9::VARCHAR COLLATE "C"
      AND anon_1.thread_id = chatledger.messages.thread_id AND anon_1.branch = chatledger.messages.branch
      AND anon_1.seq = chatledger.messages.seq
    ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
    LIMIT $10::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $11::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

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
          AND chatledger.feedback.key = $7::VARCHAR
          AND chatledger.feedback.run_id IN (
            SELECT chatledger.runs.run_id
            FROM chatledger.runs
            WHERE chatledger.runs.tenant_id = $8::VARCHAR COLLATE "C"
              AND chatledger.runs.tenant_id = $9::VARCHAR COLLATE "C"
              AND chatledger.runs.thread_id = $10::VARCHAR COLLATE "C"
          )
      ) AS anon_2
      WHERE anon_2.recency = $11::INTEGER AND anon_2.retracted IS NULL
    ) AS anon_1
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $12::VARCHAR COLLATE "C"
      AND anon_1.thread_id = chatledger.messages.thread_id AND anon_1.branch = chatledger.messages.branch
      AND anon_1.seq = chatledger.messages.seq
    ORDER BY anon_1.created_at DESC, anon_1.feedback_id DESC
    LIMIT $13::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $14::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

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
    SELECT chatledger.feedback.feedback_id AS feedback_id, chatledger.feedback.run_id AS run_id,
      chatledger.feedback.key AS key, chatledger.feedback.score AS score,
      chatledger.feedback.kwargs AS kwargs, chatledger.feedback.author AS author,
      chatledger.feedback.source AS source, chatledger.feedback.created_at AS created_at,
      chatledger.feedback.call_idx AS call_idx, chatledger.feedback.user_id AS user_id,
      chatledger.feedback.retracted_at AS retracted_at,
      coalesce(chatledger.feedback.message_id, chatledger.messages.message_id) AS message_id
    FROM chatledger.feedback
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $6::VARCHAR COLLATE "C"
      AND chatledger.feedback.thread_id = chatledger.messages.thread_id
      AND chatledger.feedback.branch = chatledger.messages.branch
      AND chatledger.feedback.seq = chatledger.messages.seq
    WHERE chatledger.feedback.tenant_id = $7::VARCHAR COLLATE "C"
    ORDER BY chatledger.feedback.created_at DESC, chatledger.feedback.feedback_id DESC
    LIMIT $8::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $9::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

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
    SELECT chatledger.feedback.feedback_id AS feedback_id, chatledger.feedback.run_id AS run_id,
      chatledger.feedback.key AS key, chatledger.feedback.score AS score,
      chatledger.feedback.kwargs AS kwargs, chatledger.feedback.author AS author,
      chatledger.feedback.source AS source, chatledger.feedback.created_at AS created_at,
      chatledger.feedback.call_idx AS call_idx, chatledger.feedback.user_id AS user_id,
      chatledger.feedback.retracted_at AS retracted_at,
      coalesce(chatledger.feedback.message_id, chatledger.messages.message_id) AS message_id
    FROM chatledger.feedback
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $6::VARCHAR COLLATE "C"
      AND chatledger.feedback.thread_id = chatledger.messages.thread_id
      AND chatledger.feedback.branch = chatledger.messages.branch
      AND chatledger.feedback.seq = chatledger.messages.seq
    WHERE chatledger.feedback.tenant_id = $7::VARCHAR COLLATE "C"
      AND chatledger.feedback.run_id IN ($10::VARCHAR COLLATE "C")
    ORDER BY chatledger.feedback.created_at DESC, chatledger.feedback.feedback_id DESC
    LIMIT $8::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $9::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

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
    SELECT chatledger.feedback.feedback_id AS feedback_id, chatledger.feedback.run_id AS run_id,
      chatledger.feedback.key AS key, chatledger.feedback.score AS score,
      chatledger.feedback.kwargs AS kwargs, chatledger.feedback.author AS author,
      chatledger.feedback.source AS source, chatledger.feedback.created_at AS created_at,
      chatledger.feedback.call_idx AS call_idx, chatledger.feedback.user_id AS user_id,
      chatledger.feedback.retracted_at AS retracted_at,
      coalesce(chatledger.feedback.message_id, chatledger.messages.message_id) AS message_id
    FROM chatledger.feedback
    LEFT OUTER JOIN chatledger.messages ON chatledger.messages.tenant_id = $6::VARCHAR COLLATE "C"
      AND chatledger.feedback.thread_id = chatledger.messages.thread_id
      AND chatledger.feedback.branch = chatledger.messages.branch
      AND chatledger.feedback.seq = chatledger.messages.seq
    WHERE chatledger.feedback.tenant_id = $7::VARCHAR COLLATE "C"
      AND chatledger.feedback.run_id IN (
        SELECT chatledger.runs.run_id
        FROM chatledger.runs
        WHERE chatledger.runs.tenant_id = $8::VARCHAR COLLATE "C"
          AND chatledger.runs.tenant_id = $9::VARCHAR COLLATE "C"
          AND chatledger.runs.thread_id = $10::VARCHAR COLLATE "C"
      )
    ORDER BY chatledger.feedback.created_at DESC, chatledger.feedback.feedback_id DESC
    LIMIT $11::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $12::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.created_at DESC, sized.feedback_id DESC;

WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3,
    open_calls = regexp_replace(
      $4::text, '"lease":[[][0-9]+', '"lease":['
      || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ), partial_seq = $5
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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
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
        $12::text, $13::text, $14::text, $15::text, $16::text, $17::text, $18::int, $19::text, $20::boolean,
        $21::text, $22::text, $23::text, $24::text, $25::text, $26::bigint, $27::text, $28::text,
        $29::timestamptz
      )
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3,
    open_calls = regexp_replace(
      $4::text, '"lease":[[][0-9]+', '"lease":['
      || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ), partial_seq = $5
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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $15::text, $16::text, $17::text, $18::text, $19::text, $20::text, $21::int, $22::text, $23::boolean,
        $24::text, $25::text, $26::text, $27::text, $28::text, $29::bigint, $30::text, $31::text,
        $32::timestamptz
      )
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
interrupted AS (
  UPDATE "chatledger".messages
  SET state = 'interrupted'
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $12 AND EXISTS (SELECT FROM tip)
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

SELECT chatledger.runs.tenant_id, chatledger.runs.run_id, chatledger.runs.thread_id, chatledger.runs.agent,
  chatledger.runs.model, chatledger.runs.status, chatledger.runs.input, chatledger.runs.input_tokens,
  chatledger.runs.output_tokens, chatledger.runs.total_tokens, chatledger.runs.usage_details,
  chatledger.runs.cost, chatledger.runs.error, chatledger.runs.metadata, chatledger.runs.started_at,
  chatledger.runs.ended_at, chatledger.runs.question_id, chatledger.runs.branch, chatledger.runs.tools_of,
  chatledger.runs.call_secret, chatledger.runs.attempts, chatledger.threads.user_id,
  chatledger.run_leases.attempt AS lease_attempt, chatledger.run_leases.worker_id AS lease_worker_id,
  chatledger.run_leases.paused_at AS lease_paused_at
FROM chatledger.runs
JOIN chatledger.threads ON chatledger.threads.tenant_id = chatledger.runs.tenant_id
  AND chatledger.threads.thread_id = chatledger.runs.thread_id
LEFT OUTER JOIN chatledger.run_leases ON chatledger.run_leases.tenant_id = chatledger.runs.tenant_id
  AND chatledger.run_leases.thread_id = chatledger.runs.thread_id
  AND chatledger.run_leases.run_id = chatledger.runs.run_id
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $2::VARCHAR COLLATE "C"
  AND chatledger.runs.question_id IS NOT NULL;

SELECT chatledger.runs.tenant_id, chatledger.runs.run_id, chatledger.runs.thread_id, chatledger.runs.agent,
  chatledger.runs.model, chatledger.runs.status, chatledger.runs.input, chatledger.runs.input_tokens,
  chatledger.runs.output_tokens, chatledger.runs.total_tokens, chatledger.runs.usage_details,
  chatledger.runs.cost, chatledger.runs.error, chatledger.runs.metadata, chatledger.runs.started_at,
  chatledger.runs.ended_at, chatledger.runs.question_id, chatledger.runs.branch, chatledger.runs.tools_of,
  chatledger.runs.call_secret, chatledger.runs.attempts, chatledger.threads.user_id,
  chatledger.run_leases.attempt AS lease_attempt, chatledger.run_leases.worker_id AS lease_worker_id,
  chatledger.run_leases.paused_at AS lease_paused_at
FROM chatledger.runs
JOIN chatledger.threads ON chatledger.threads.tenant_id = chatledger.runs.tenant_id
  AND chatledger.threads.thread_id = chatledger.runs.thread_id
LEFT OUTER JOIN chatledger.run_leases ON chatledger.run_leases.tenant_id = chatledger.runs.tenant_id
  AND chatledger.run_leases.thread_id = chatledger.runs.thread_id
  AND chatledger.run_leases.run_id = chatledger.runs.run_id
WHERE chatledger.runs.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.runs.thread_id = $2::VARCHAR COLLATE "C" AND chatledger.run_leases.attempt IS NOT NULL
  AND chatledger.runs.question_id IS NOT NULL;

SELECT (
  SELECT count(*) AS count_1
  FROM (
    SELECT $1::INTEGER AS anon_2
    FROM chatledger.run_leases
    WHERE chatledger.run_leases.tenant_id = $2::VARCHAR COLLATE "C"
      AND chatledger.run_leases.thread_id != $3::VARCHAR COLLATE "C"
      AND chatledger.run_leases.user_id = $4::VARCHAR COLLATE "C"
    LIMIT $5::INTEGER
  ) AS anon_1
) AS user_answers,
  (
    SELECT count(*) AS count_2
    FROM (
      SELECT $6::INTEGER AS anon_4
      FROM chatledger.run_leases
      WHERE chatledger.run_leases.tenant_id = $2::VARCHAR COLLATE "C"
        AND chatledger.run_leases.thread_id != $3::VARCHAR COLLATE "C"
      LIMIT $7::INTEGER
    ) AS anon_3
  ) AS tenant_answers,
  (
    SELECT system_identifier || '/'
      || (
        SELECT oid FROM pg_database WHERE datname = current_database()
      )
    FROM pg_control_system()
  ) AS database_id;

INSERT INTO chatledger.runs (
  tenant_id, run_id, thread_id, agent, model, status, input, error, metadata, started_at, ended_at,
  question_id, branch, call_secret, attempts
)
VALUES (
  $1::VARCHAR COLLATE "C", $2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR, $5::VARCHAR,
  $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::TIMESTAMP
  WITH TIME ZONE, $11::TIMESTAMP
  WITH TIME ZONE, $12::VARCHAR COLLATE "C", $13::INTEGER, $14::VARCHAR, $15::INTEGER
)
ON CONFLICT DO NOTHING;

INSERT INTO chatledger.run_leases (
  tenant_id, thread_id, run_id, agent, attempt, worker_id, user_id, place, database_id
)
VALUES (
  $1::VARCHAR COLLATE "C", $2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C",
  $5::INTEGER, $6::VARCHAR COLLATE "C", $7::VARCHAR COLLATE "C", $8::INTEGER, $9::VARCHAR
);

SELECT (
  SELECT count(*) AS count_1
  FROM (
    SELECT $1::INTEGER AS anon_2
    FROM chatledger.run_leases
    WHERE chatledger.run_leases.tenant_id = $2::VARCHAR COLLATE "C"
      AND chatledger.run_leases.thread_id != $3::VARCHAR COLLATE "C" AND chatledger.run_leases.user_id IS NULL
    LIMIT $4::INTEGER
  ) AS anon_1
) AS user_answers,
  (
    SELECT count(*) AS count_2
    FROM (
      SELECT $5::INTEGER AS anon_4
      FROM chatledger.run_leases
      WHERE chatledger.run_leases.tenant_id = $2::VARCHAR COLLATE "C"
        AND chatledger.run_leases.thread_id != $3::VARCHAR COLLATE "C"
      LIMIT $6::INTEGER
    ) AS anon_3
  ) AS tenant_answers,
  (
    SELECT system_identifier || '/'
      || (
        SELECT oid FROM pg_database WHERE datname = current_database()
      )
    FROM pg_control_system()
  ) AS database_id;

UPDATE chatledger.branches
SET stamp=$1::BIGINT
WHERE chatledger.branches.tenant_id = $2::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $3::VARCHAR COLLATE "C" AND chatledger.branches.branch = $4::INTEGER;

DELETE FROM chatledger.run_leases
WHERE chatledger.run_leases.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.run_leases.thread_id = $2::VARCHAR COLLATE "C"
  AND chatledger.run_leases.run_id = $3::VARCHAR COLLATE "C" AND chatledger.run_leases.attempt = $4::INTEGER
  AND chatledger.run_leases.worker_id = $5::VARCHAR COLLATE "C" AND chatledger.run_leases.paused_at IS NULL;

UPDATE chatledger.runs
SET status=$1::VARCHAR, error=$2::VARCHAR, ended_at=$3::TIMESTAMP
WITH TIME ZONE
WHERE chatledger.runs.tenant_id = $4::VARCHAR COLLATE "C" AND chatledger.runs.run_id = $5::VARCHAR COLLATE "C";

SELECT chatledger.threads.active_branch, chatledger.threads.rules
FROM chatledger.threads
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $2::VARCHAR COLLATE "C";

SELECT chatledger.threads.active_branch, chatledger.threads.rules
FROM chatledger.threads
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $2::VARCHAR COLLATE "C" FOR UPDATE;

SELECT max(chatledger.branches.branch) AS max_1
FROM chatledger.branches
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C";

INSERT INTO chatledger.branches (
  tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, created_at, absent
)
VALUES (
  $1::VARCHAR COLLATE "C", $2::VARCHAR COLLATE "C", $3::INTEGER, $4::VARCHAR, $5::BIGINT, $6::BIGINT,
  $7::VARCHAR, $8::VARCHAR, $9::TIMESTAMP
  WITH TIME ZONE, $10::BIGINT
);

UPDATE chatledger.threads
SET active_branch=$1::INTEGER
WHERE chatledger.threads.tenant_id = $2::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $3::VARCHAR COLLATE "C";

SELECT chatledger.workers.lease_until
FROM chatledger.workers
WHERE chatledger.workers.worker_id = $1::VARCHAR COLLATE "C";

SELECT statement_timestamp() AS statement_timestamp_1;

SELECT min(x.seq), max(x.seq), count(*)
FROM (
  SELECT seq
  FROM "chatledger".messages
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  ORDER BY seq ASC
  LIMIT $6
) AS x;

SELECT min(x.seq), max(x.seq), count(*)
FROM (
  SELECT seq
  FROM "chatledger".messages
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq BETWEEN $4 AND $5
  ORDER BY seq DESC
  LIMIT $6
) AS x;

SELECT seq, kind, count(*), min(target_branch), min(target_seq), min(message_id)
FROM "chatledger".revisions
WHERE tenant_id = $1 AND thread_id = $2 AND branch = $3 AND seq > $4 AND seq <= $5
GROUP BY seq, kind
ORDER BY seq
LIMIT $6;

SELECT chatledger.branches.branch, chatledger.branches.last_seq
FROM chatledger.branches
WHERE chatledger.branches.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.branches.thread_id = $2::VARCHAR COLLATE "C" AND chatledger.branches.branch IN ($3::INTEGER)
ORDER BY chatledger.branches.branch;

SELECT chatledger.kv.kind, chatledger.kv.scope_id, chatledger.kv.namespace, chatledger.kv.key,
  chatledger.kv.version, chatledger.kv.updated_at, chatledger.kv.value AS value
FROM chatledger.kv
WHERE chatledger.kv.tenant_id = $1::VARCHAR COLLATE "C" AND chatledger.kv.kind = $2::VARCHAR
  AND chatledger.kv.scope_id = $3::VARCHAR COLLATE "C" AND chatledger.kv.namespace = $4::VARCHAR COLLATE "C"
  AND chatledger.kv.key = $5::VARCHAR COLLATE "C";

SELECT chatledger.kv.kind, chatledger.kv.scope_id, chatledger.kv.namespace, chatledger.kv.key,
  chatledger.kv.version, chatledger.kv.updated_at, chatledger.kv.value AS value, sized.row_bytes,
  sized.rows_found
FROM chatledger.kv
JOIN (
  SELECT first.kind AS kind, first.scope_id AS scope_id, first.namespace AS namespace, first.key AS key,
    first.number AS number, first.row_bytes AS row_bytes,
    sum(first.row_bytes) OVER (
      ORDER BY first.number, first.kind, first.scope_id,
        first.namespace ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total, count(*) OVER (PARTITION BY first.kind, first.scope_id, first.namespace) AS rows_found
  FROM (
    SELECT near.kind AS kind, near.scope_id AS scope_id, near.namespace AS namespace, near.key AS key,
      near.number AS number, near.row_bytes AS row_bytes
    FROM (
      SELECT chatledger.kv.kind AS kind, chatledger.kv.scope_id AS scope_id,
        chatledger.kv.namespace AS namespace, chatledger.kv.key AS key,
        row_number() OVER (
          PARTITION BY chatledger.kv.kind, chatledger.kv.scope_id, chatledger.kv.namespace
          ORDER BY chatledger.kv.key
        ) AS number, coalesce(octet_length(chatledger.kv.value), $1::INTEGER) + $2::INTEGER AS row_bytes
      FROM chatledger.kv
      WHERE chatledger.kv.tenant_id = $3::VARCHAR COLLATE "C" AND chatledger.kv.kind = $4::VARCHAR
        AND chatledger.kv.namespace = $5::VARCHAR COLLATE "C"
        AND chatledger.kv.scope_id IN ($11::VARCHAR COLLATE "C", $12::VARCHAR COLLATE "C")
    ) AS near
    WHERE near.number <= $6::INTEGER
  ) AS first
) AS sized ON chatledger.kv.tenant_id = $7::VARCHAR COLLATE "C" AND chatledger.kv.kind = sized.kind
  AND chatledger.kv.scope_id = sized.scope_id AND chatledger.kv.namespace = sized.namespace
  AND chatledger.kv.key = sized.key
WHERE sized.number <= $8::INTEGER AND (sized.total <= $9::INTEGER OR sized.number = $10::INTEGER)
ORDER BY chatledger.kv.key;

SELECT chatledger.kv.kind, chatledger.kv.scope_id, chatledger.kv.namespace, chatledger.kv.key,
  chatledger.kv.version, chatledger.kv.updated_at, chatledger.kv.value AS value, sized.row_bytes,
  sized.rows_found
FROM chatledger.kv
JOIN (
  SELECT first.kind AS kind, first.scope_id AS scope_id, first.namespace AS namespace, first.key AS key,
    first.number AS number, first.row_bytes AS row_bytes,
    sum(first.row_bytes) OVER (
      ORDER BY first.number, first.kind, first.scope_id,
        first.namespace ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total, count(*) OVER (PARTITION BY first.kind, first.scope_id, first.namespace) AS rows_found
  FROM (
    SELECT near.kind AS kind, near.scope_id AS scope_id, near.namespace AS namespace, near.key AS key,
      near.number AS number, near.row_bytes AS row_bytes
    FROM (
      SELECT chatledger.kv.kind AS kind, chatledger.kv.scope_id AS scope_id,
        chatledger.kv.namespace AS namespace, chatledger.kv.key AS key,
        row_number() OVER (
          PARTITION BY chatledger.kv.kind, chatledger.kv.scope_id, chatledger.kv.namespace
          ORDER BY chatledger.kv.key
        ) AS number, coalesce(octet_length(chatledger.kv.value), $1::INTEGER) + $2::INTEGER AS row_bytes
      FROM chatledger.kv
      WHERE chatledger.kv.tenant_id = $3::VARCHAR COLLATE "C" AND chatledger.kv.kind = $4::VARCHAR
        AND chatledger.kv.namespace = $5::VARCHAR COLLATE "C"
        AND chatledger.kv.scope_id IN ($11::VARCHAR COLLATE "C")
    ) AS near
    WHERE near.number <= $6::INTEGER
  ) AS first
) AS sized ON chatledger.kv.tenant_id = $7::VARCHAR COLLATE "C" AND chatledger.kv.kind = sized.kind
  AND chatledger.kv.scope_id = sized.scope_id AND chatledger.kv.namespace = sized.namespace
  AND chatledger.kv.key = sized.key
WHERE sized.number <= $8::INTEGER AND (sized.total <= $9::INTEGER OR sized.number = $10::INTEGER)
ORDER BY chatledger.kv.key;

WITH made AS (
  INSERT INTO "chatledger".threads (
    tenant_id, thread_id, user_id, title, metadata, rules, kind, created_at, active_at, active_branch
  )
  SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::timestamptz,
    $9::timestamptz, 0
  WHERE NOT EXISTS (
    SELECT 1
    FROM "chatledger".erasures e
    WHERE e.tenant_id = $1 AND e.kind = 'thread'
      AND e.subject IN (
        $10::text,
        (
          SELECT encode(
            sha256(
              decode(substr(k.tombstone_secret, 129), 'hex')
              || sha256(decode(substr(k.tombstone_secret, 1, 128), 'hex') || convert_to($10::text, 'UTF8'))
            ), 'hex'
          )
          FROM "chatledger".tenants k
          WHERE k.tenant_id = $1
        )
      )
  )
    AND NOT EXISTS (
      SELECT 1 FROM "chatledger".threads WHERE tenant_id = $1 AND thread_id = $2
    )
    AND NOT EXISTS (
      SELECT 1
      FROM "chatledger".tenants
      WHERE tenant_id = $1 AND encrypted_at IS NOT NULL
      UNION ALL
      SELECT 1
      FROM "chatledger".chatledger_version
      WHERE encrypted_at IS NOT NULL
    )
  ON CONFLICT DO NOTHING
  RETURNING 1
),
tip AS (
  INSERT INTO "chatledger".branches (
    tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls, partial_seq, created_at
  )
  SELECT $1::text, $2::text, $11::int, $12::text, $13::bigint, $14::bigint, $15::text, $16::text, $17::bigint,
    $8::timestamptz
  FROM made
  RETURNING 1
)
SELECT 1
FROM tip;

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
    AND (
      SELECT count(*)
      FROM "chatledger".kv
      WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key IN ($10)
    ) = 1
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
        $13::text, $14::text, $15::text, $16::text, $17::text, $18::text, $19::int, $20::text, $21::boolean,
        $22::text, $23::text, $24::text, $25::text, $26::text, $27::bigint, $28::text, $29::text,
        $30::timestamptz
      ),
        (
          $31::text, $32::text, $33::text, $34::text, $35::text, $36::text, $37::int, $38::text, $39::boolean,
          $40::text, $41::text, $42::text, $43::text, $44::text, $45::bigint, $46::text, $47::text,
          $48::timestamptz
        ),
        (
          $49::text, $50::text, $51::text, $52::text, $53::text, $54::text, $55::int, $56::text, $57::boolean,
          $58::text, $59::text, $60::text, $61::text, $62::text, $63::bigint, $64::text, $65::text,
          $66::timestamptz
        ),
        (
          $67::text, $68::text, $69::text, $70::text, $71::text, $72::text, $73::int, $74::text, $75::boolean,
          $76::text, $77::text, $78::text, $79::text, $80::text, $81::bigint, $82::text, $83::text,
          $84::timestamptz
        ),
        (
          $85::text, $86::text, $87::text, $88::text, $89::text, $90::text, $91::int, $92::text, $93::boolean,
          $94::text, $95::text, $96::text, $97::text, $98::text, $99::bigint, $100::text, $101::text,
          $102::timestamptz
        )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($103::bigint, $104::int, $105::text, $106::text, $107::text, $108::text, $109::text),
        ($110::bigint, $111::int, $112::text, $113::text, $114::text, $115::text, $116::text)
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($117::bigint, $118::int, $119::bigint, $120::int),
        ($121::bigint, $122::int, $123::bigint, $124::int)
    ) AS u
),
kv0 AS (
  UPDATE "chatledger".kv
  SET value = $11, version = version + 1, updated_at = $12
  WHERE tenant_id = $6 AND kind = 'thread' AND scope_id = $7 AND namespace = '' AND key = $10
    AND EXISTS (SELECT FROM tip)
  RETURNING 1
)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE count(*) / ((SELECT count(*) FROM kv0) = 1)::int END, 0
FROM tip;

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
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $1::text, $2::text, u.*
  FROM tip,
    (
      VALUES ($16::text, $17::text, $18::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $19::text, $20::text, $21::text, $22::text, $23::text, $24::text, $25::int, $26::text, $27::boolean,
        $28::text, $29::text, $30::text, $31::text, $32::text, $33::bigint, $34::text, $35::text,
        $36::timestamptz
      )
    ) AS u
)
SELECT count(*), 0
FROM tip;

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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
messages AS (
  INSERT INTO "chatledger".messages (
    tenant_id, thread_id, branch, content_form, state, created_at, message_id, role, text, seq
  )
  SELECT $6::text, $7::text, $8::int, $12::text, $13::text, $14::timestamptz, u.*
  FROM tip, unnest($15::text[], $16::text[], $17::text[], $18::bigint[]) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3,
    open_calls = regexp_replace(
      $4::text, '"lease":[[][0-9]+', '"lease":['
      || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ), partial_seq = $5
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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $15::text, $16::text, $17::text, $18::text, $19::text, $20::text, $21::int, $22::text, $23::boolean,
        $24::text, $25::text, $26::text, $27::text, $28::text, $29::bigint, $30::text, $31::text,
        $32::timestamptz
      )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($33::bigint, $34::int, $35::text, $36::text, $37::text, $38::text, $39::text)
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
interrupted AS (
  UPDATE "chatledger".messages
  SET state = 'interrupted'
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $12 AND EXISTS (SELECT FROM tip)
),
ended AS (
  UPDATE "chatledger".runs
  SET status = 'cancelled', error = $13, ended_at = $10
  WHERE tenant_id = $6 AND run_id = $14 AND ended_at IS NULL AND EXISTS (SELECT FROM tip)
),
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($15::text, $16::text, $17::timestamptz), ($18::text, $19::text, $20::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $21::text, $22::text, $23::text, $24::text, $25::text, $26::text, $27::int, $28::text, $29::boolean,
        $30::text, $31::text, $32::text, $33::text, $34::text, $35::bigint, $36::text, $37::text,
        $38::timestamptz
      ),
        (
          $39::text, $40::text, $41::text, $42::text, $43::text, $44::text, $45::int, $46::text, $47::boolean,
          $48::text, $49::text, $50::text, $51::text, $52::text, $53::bigint, $54::text, $55::text,
          $56::timestamptz
        )
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($57::bigint, $58::int, $59::bigint, $60::int)
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

WITH tip AS (
  UPDATE "chatledger".branches
  SET last_seq = $1, stamp = $2, last_role = $3,
    open_calls = regexp_replace(
      $4::text, '"lease":[[][0-9]+', '"lease":['
      || (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ), partial_seq = $5
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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
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
        $12::text, $13::text, $14::text, $15::text, $16::text, $17::text, $18::int, $19::text, $20::boolean,
        $21::text, $22::text, $23::text, $24::text, $25::text, $26::bigint, $27::text, $28::text,
        $29::timestamptz
      )
    ) AS u
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($30::bigint, $31::int, $32::text, $33::text, $34::text, $35::text, $36::text)
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

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
message_parts_gone AS (
  DELETE FROM "chatledger".message_parts
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND idx >= $11
    AND EXISTS (SELECT FROM tip)
),
tool_calls_gone AS (
  DELETE FROM "chatledger".tool_calls
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND idx >= $12
    AND EXISTS (SELECT FROM tip)
),
message AS (
  UPDATE "chatledger".messages
  SET state = $13, violations = $14, name = $15, content_form = $16, text = $17, reasoning_form = $18,
    call_count = $19, is_error = $20, format = $21, residual = $22, response_metadata = $23, custom_data = $24
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $10 AND EXISTS (SELECT FROM tip)
),
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $25
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $26 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($27::bigint, $28::int, $29::text, $30::text, $31::text, $32::text, $33::text)
    ) AS u
  ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
    name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
    extras = excluded.extras
)
SELECT count(*)
FROM tip;

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
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $10
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $11 AND EXISTS (SELECT FROM tip)
  RETURNING 1
),
runs AS (
  INSERT INTO "chatledger".runs (tenant_id, thread_id, run_id, status, started_at)
  SELECT $6::text, $7::text, u.*
  FROM tip,
    (
      VALUES ($12::text, $13::text, $14::timestamptz)
    ) AS u
  ON CONFLICT DO NOTHING
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
        $15::text, $16::text, $17::text, $18::text, $19::text, $20::text, $21::int, $22::text, $23::boolean,
        $24::text, $25::text, $26::text, $27::text, $28::text, $29::bigint, $30::text, $31::text,
        $32::timestamptz
      )
    ) AS u
),
tool_results AS (
  INSERT INTO "chatledger".tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($33::bigint, $34::int, $35::bigint, $36::int)
    ) AS u
)
SELECT count(*), (SELECT count(*) FROM touched)
FROM tip;

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
message AS (
  UPDATE "chatledger".messages
  SET state = $10, violations = $11, name = $12, content_form = $13, text = $14, reasoning_form = $15,
    call_count = $16, is_error = $17, format = $18, residual = $19, response_metadata = $20, custom_data = $21
  WHERE tenant_id = $6 AND thread_id = $7 AND branch = $8 AND seq = $22 AND EXISTS (SELECT FROM tip)
),
touched AS (
  UPDATE "chatledger".threads
  SET active_at = $23
  WHERE tenant_id = $6 AND thread_id = $7 AND active_at < $24 AND EXISTS (SELECT FROM tip)
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
        $25::text, $26::text, $27::text, $28::text, $29::text, $30::text, $31::int, $32::text, $33::boolean,
        $34::text, $35::text, $36::text, $37::text, $38::text, $39::bigint, $40::text, $41::text,
        $42::timestamptz
      )
    ) AS u
),
message_parts AS (
  INSERT INTO "chatledger".message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind, text, body)
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($43::bigint, $44::int, $45::text, $46::text, $47::text, $48::text),
        ($49::bigint, $50::int, $51::text, $52::text, $53::text, $54::text)
    ) AS u
  ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET channel = excluded.channel,
    kind = excluded.kind, text = excluded.text, body = excluded.body
),
tool_calls AS (
  INSERT INTO "chatledger".tool_calls (
    tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form, extras
  )
  SELECT $6::text, $7::text, $8::int, u.*
  FROM tip,
    (
      VALUES ($55::bigint, $56::int, $57::text, $58::text, $59::text, $60::text, $61::text)
    ) AS u
  ON CONFLICT (tenant_id, thread_id, branch, seq, idx) DO UPDATE SET call_id = excluded.call_id,
    name = excluded.name, arguments = excluded.arguments, arguments_form = excluded.arguments_form,
    extras = excluded.extras
)
SELECT count(*)
FROM tip;

ROLLBACK TO SAVEPOINT savepoint;

SELECT 1
FROM "chatledger".branches b
WHERE b.tenant_id = $1 AND b.thread_id = $2
  AND b.branch IN (
    $3::int,
    (
      SELECT t.active_branch FROM "chatledger".threads t WHERE t.tenant_id = $1 AND t.thread_id = $2
    )
  )
ORDER BY b.branch <> (
  SELECT t.active_branch FROM "chatledger".threads t WHERE t.tenant_id = $1 AND t.thread_id = $2
), b.branch FOR UPDATE;
