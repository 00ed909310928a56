-- Sent when `threads.list` reads the oldest threads of a kind, those that are put away too.
BEGIN;

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
WHERE t.tenant_id = ? AND t.kind = ?
ORDER BY t.created_at ASC, t.thread_id ASC
LIMIT ?;

COMMIT;
