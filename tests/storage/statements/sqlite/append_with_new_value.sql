-- Sent when a new value of the thread is written together with a message. It needs two statements in a
-- transaction: another one may just have deleted a value of that key, and the new one takes a higher version.
BEGIN IMMEDIATE;

UPDATE branches
SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role, open_calls = :open_calls,
  partial_seq = :partial_seq
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND stamp = :stamp
  AND NOT EXISTS (
    SELECT 1
    FROM tenants
    WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM chatledger_version
    WHERE encrypted_at IS NOT NULL
  )
RETURNING 1;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
VALUES (:tenant, :kind, :scope_id, :namespace, :key, :value, :version, :now)
ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE SET value = excluded.value,
  version = s.version + 1, updated_at = excluded.updated_at
RETURNING version;

UPDATE kv
SET version = (
  SELECT t.kv_version FROM tenants t WHERE t.tenant_id = :tenant
) + 1
WHERE tenant_id = :tenant AND kind = :kind AND scope_id = :scope_id AND namespace = :namespace AND key = :key
  AND version <= (
    SELECT t.kv_version FROM tenants t WHERE t.tenant_id = :tenant
  )
RETURNING version;

COMMIT;
