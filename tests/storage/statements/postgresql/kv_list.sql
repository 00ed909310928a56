-- Sent when `kv.list` reads the values of a thread.
SELECT chatledger.threads.thread_id
FROM chatledger.threads
WHERE chatledger.threads.tenant_id = $1::VARCHAR COLLATE "C"
  AND chatledger.threads.thread_id = $2::VARCHAR COLLATE "C";

SELECT sized.kind, sized.scope_id, sized.namespace, sized.key, sized.version, sized.updated_at, sized.value,
  sized.row_bytes, sized.rows_found
FROM (
  SELECT near.kind AS kind, near.scope_id AS scope_id, near.namespace AS namespace, near.key AS key,
    near.version AS version, near.updated_at AS updated_at, near.value AS value,
    coalesce(octet_length(near.value), $1::INTEGER) + coalesce(octet_length(near.kind), $2::INTEGER)
    + $3::INTEGER AS row_bytes,
    sum(
      coalesce(octet_length(near.value), $1::INTEGER) + coalesce(octet_length(near.kind), $2::INTEGER)
      + $3::INTEGER
    ) OVER (ORDER BY near.key ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total,
    count(*) OVER () AS rows_found
  FROM (
    SELECT chatledger.kv.kind AS kind, chatledger.kv.scope_id AS scope_id,
      chatledger.kv.namespace AS namespace, chatledger.kv.key AS key, chatledger.kv.version AS version,
      chatledger.kv.updated_at AS updated_at, chatledger.kv.value AS value
    FROM chatledger.kv
    WHERE chatledger.kv.tenant_id = $4::VARCHAR COLLATE "C" AND chatledger.kv.kind = $5::VARCHAR
      AND chatledger.kv.scope_id = $6::VARCHAR COLLATE "C"
      AND chatledger.kv.namespace = $7::VARCHAR COLLATE "C"
    ORDER BY chatledger.kv.key
    LIMIT $8::INTEGER
  ) AS near
) AS sized
WHERE sized.total <= $9::INTEGER OR sized.total = sized.row_bytes
ORDER BY sized.key;
