SELECT t.tenant_id, t.thread_id, t.active_branch, b.last_seq, b.stamp
FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS f (tenant_id, thread_id) JOIN "chatledger".threads t ON
  t.tenant_id = f.tenant_id AND t.thread_id = f.thread_id JOIN "chatledger".branches b ON b.tenant_id = t.tenant_id
  AND b.thread_id = t.thread_id AND b.branch = t.active_branch
