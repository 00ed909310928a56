SELECT x.agent, x.model, r.thread_id, r.branch, r.message_id, r.role, r.name, r.content_form, r.text,
  r.reasoning_form, r.call_count, r.tool_call_id, r.is_error, r.run_id, r.format, r.residual, r.response_metadata,
  r.custom_data, r.seq, r.state, r.violations, r.created_at
FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) AS g (thread_id, branch, first, last)
CROSS JOIN LATERAL (SELECT *
FROM "chatledger".messages r
WHERE r.tenant_id = $5 AND r.thread_id = g.thread_id AND r.branch = g.branch AND r.seq BETWEEN g.first AND g.last
  OFFSET 0) r
LEFT JOIN "chatledger".runs x ON x.tenant_id = r.tenant_id AND x.run_id = r.run_id
