-- Sent when `messages.search` looks for words in all threads.
BEGIN;

SELECT main.threads.thread_id, main.threads.title, main.threads.active_at, main.threads.created_at,
  main.threads.active_branch, main.branches.lineage, main.branches.last_seq,
  coalesce(length(CAST(main.branches.lineage AS BLOB)), ?)
  + coalesce(length(CAST(main.threads.title AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.threads
LEFT OUTER JOIN main.branches ON main.branches.tenant_id = main.threads.tenant_id
  AND main.branches.thread_id = main.threads.thread_id AND main.branches.branch = main.threads.active_branch
WHERE main.threads.tenant_id = ?
ORDER BY main.threads.active_at DESC, main.threads.thread_id DESC
LIMIT ?
OFFSET ?;

SELECT r.thread_id, r.branch, r.seq, r.message_id, r.role, r.text, r.content_form, r.call_count, r.created_at,
  g.key, g.key
FROM json_each(:pieces) g
CROSS JOIN messages r ON r.tenant_id = :tenant AND r.thread_id = json_extract(g.value, '$[0]')
  AND r.branch = json_extract(g.value, '$[1]')
  AND r.seq BETWEEN json_extract(g.value, '$[2]') AND json_extract(g.value, '$[3]');

SELECT r.thread_id, r.branch, r.seq, r.idx, r.name, r.arguments, g.key, g.key
FROM json_each(:pieces) g
CROSS JOIN tool_calls r ON r.tenant_id = :tenant AND r.thread_id = json_extract(g.value, '$[0]')
  AND r.branch = json_extract(g.value, '$[1]')
  AND r.seq BETWEEN json_extract(g.value, '$[2]') AND json_extract(g.value, '$[3]');

COMMIT;
