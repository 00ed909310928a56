-- Sent when `kv.list` reads the values of a thread.
BEGIN;

SELECT main.threads.thread_id
FROM main.threads
WHERE main.threads.tenant_id = ? AND main.threads.thread_id = ?;

SELECT main.kv.kind, main.kv.scope_id, main.kv.namespace, main.kv."key", main.kv.version, main.kv.updated_at,
  main.kv.value AS value, coalesce(length(CAST(main.kv.value AS BLOB)), ?)
  + coalesce(length(CAST(main.kv.kind AS BLOB)), ?) + ? AS row_bytes, ? AS rows_found
FROM main.kv
WHERE main.kv.tenant_id = ? AND main.kv.kind = ? AND main.kv.scope_id = ? AND main.kv.namespace = ?
ORDER BY main.kv."key"
LIMIT ?
OFFSET ?;

COMMIT;
