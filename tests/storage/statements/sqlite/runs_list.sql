-- Sent when `runs.list` reads the first page of a tenant.
BEGIN;

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
WHERE main.runs.tenant_id = ?
ORDER BY main.runs.run_id
LIMIT ?
OFFSET ?;

COMMIT;
