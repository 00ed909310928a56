-- Sent when `threads.count` counts the threads of a tenant.
BEGIN;

SELECT count(*) FROM threads t WHERE t.tenant_id = ? AND typeof(t.archived_at) <> 'integer';

COMMIT;
