-- Sent when `runs.list` reads the first page of a tenant.
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
    ORDER BY chatledger.runs.run_id
    LIMIT $10::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $11::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.run_id;
