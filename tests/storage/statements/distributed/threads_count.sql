-- Sent when `threads.count` counts the threads of a tenant.
SELECT count(*)
FROM "chatledger".threads t
WHERE t.tenant_id = $1::VARCHAR COLLATE "C" AND t.archived_at IS NULL;
